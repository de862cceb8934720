"""Recorded calls of the pure functions of Planner 1.5.1: where they lie and how to read them."""

import json
import os
from pathlib import Path
from typing import Any

import pytest


def vectors(group: str, function: str) -> list[dict[str, Any]]:
    """Calls of a function, each with "in" and "out". Skips the module where there are none; fails where CI promised them."""
    root = Path(os.environ.get("GROVEKEEPER_SHARED", Path(__file__).parents[2].parent / "shared"))
    path = root / "cases" / "planner" / "vectors" / f"{group}.jsonl"
    if not path.is_file():
        if os.environ.get("CI") == "true" and os.environ.get("GROVEKEEPER_SHARED"):
            raise FileNotFoundError(f"GROVEKEEPER_SHARED is set but has no {path}")
        pytest.skip("the recorded calls are not here; set GROVEKEEPER_SHARED", allow_module_level=True)
    with path.open(encoding="utf-8") as lines:
        return [call for call in map(json.loads, lines) if call["fn"] == function]
