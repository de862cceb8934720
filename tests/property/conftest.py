"""Tests over generated inputs compute for long on a busy machine."""

from pathlib import Path

import pytest

from tests.patience import allow

TIMEOUT_S = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    allow(items, Path(__file__).parent, TIMEOUT_S)
