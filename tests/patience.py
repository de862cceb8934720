"""Time for tests that need more of it than unit tests do."""

from collections.abc import Iterable
from pathlib import Path

import pytest

__all__ = ("allow",)


def allow(items: Iterable[pytest.Item], folder: Path, seconds: float) -> None:
    """So long for each test below the folder, unless it says itself how long."""
    for item in items:
        if item.path.is_relative_to(folder) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(seconds))
