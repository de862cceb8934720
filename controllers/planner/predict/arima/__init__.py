"""ARIMA models by exact maximum likelihood, in plain floats: filter, optimiser, choice of order."""
