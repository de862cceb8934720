"""Programs that tests need and a machine may lack."""

import os
from collections.abc import Callable
from typing import TypeVar

import pytest

from hack.kube.cache import BinariesMissing

__all__ = ("needed",)

T = TypeVar("T")


def needed(find: Callable[[], T]) -> T:
    """What `find` finds. Where it raises BinariesMissing the test is skipped with the reason, and in CI fails."""
    try:
        return find()
    except BinariesMissing as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs what is missing: {error}")
        pytest.skip(str(error))
