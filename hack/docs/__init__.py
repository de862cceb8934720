"""The code blocks of the documentation, as something that runs."""
