"""Faults as data: what goes wrong in a run is a list, which can be drawn from a seed, printed, read again and made shorter."""
