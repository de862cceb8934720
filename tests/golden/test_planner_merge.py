"""Merging against recorded merges."""

from typing import Any

import pytest

from controllers.planner.replay.vectors import call_again
from tests.golden.planner_vectors import vectors


@pytest.mark.parametrize("vector", vectors("merge", "type_aware_merge"))
def test_merge(vector: dict[str, Any]) -> None:
    assert call_again("type_aware_merge", vector["in"], vector["out"]) == vector["out"]
