"""Which Grovekeeper this is."""

import os

__all__ = ("VERSION", "version_line")

VERSION = "0.1.0"
"""As in pyproject.toml. Written here because the image holds sources, no installed distribution that knows its version."""


def version_line() -> str:
    """For --version: the version, and in an image the commit that it was built from."""
    revision = os.environ.get("GROVEKEEPER_REVISION")
    return f"grovekeeper {VERSION}" + (f" ({revision})" if revision else "")
