"""Recorded cases of Planner 1.5.1: configuration, what was read at each tick, what was decided; and the comparison that belongs to them."""

import importlib.util
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controllers.planner.replay.case import parse_case
from controllers.planner.replay.run import play, record_of, to_json

AS_RECORDED = {"max_throughput_scaling_replicas": None, "pending_aware_scale_down": False}
"""Settings that the recorded version had not."""


def folder() -> Path:
    """Where they lie. Skips the module where there are none; fails where CI promised them."""
    root = Path(os.environ.get("GROVEKEEPER_SHARED", Path(__file__).parents[2].parent / "shared"))
    path = root / "cases" / "planner"
    if not path.is_dir():
        if os.environ.get("CI") == "true" and os.environ.get("GROVEKEEPER_SHARED"):
            raise FileNotFoundError(f"GROVEKEEPER_SHARED is set but has no {path}")
        pytest.skip("the recorded cases are not here; set GROVEKEEPER_SHARED", allow_module_level=True)
    return path


def names() -> list[str]:
    return sorted(path.name.removesuffix(".trace.jsonl") for path in folder().glob("*.trace.jsonl"))


def played(name: str) -> list[dict[str, Any]]:
    """Lines of output, as a reader of them sees them."""
    case = parse_case((folder() / f"{name}.json").read_bytes(), AS_RECORDED)
    with (folder() / f"{name}.trace.jsonl").open("rb") as lines:
        return [json.loads(to_json(record_of(tick))) for tick in play(case, lines)]


def expected(name: str) -> list[dict[str, Any]]:
    with (folder() / f"{name}.expected.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def walk() -> Callable[[str, Any, Any, float, list[str]], None]:
    """The comparison of compare.py: path, expected, actual, relative tolerance, and the list that takes the differences."""
    spec = importlib.util.spec_from_file_location("planner_compare", folder() / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.walk
