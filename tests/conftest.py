"""Hypothesis profiles. Default: quick; `HYPOTHESIS_PROFILE=ci` or `nightly` looks longer."""

import gc
import os

import pytest
from hypothesis import settings

# Wall-clock deadlines fail at random on a busy machine; pytest-timeout bounds every test instead.
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=200, print_blob=True)
settings.register_profile("nightly", deadline=None, max_examples=5000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") == "true" else "dev"))


def pytest_collection_finish() -> None:
    """Spares the garbage collector thousands of tests and modules: going through them holds a test up for longer than a lease may."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """For tests/contract; here, because pytest wants options from a conftest that it loads at the start."""
    parser.addoption("--server", choices=("embedded", "real", "both"), default="embedded", help="which API server tests/contract asks")
