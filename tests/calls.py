"""What something costs, in a unit that no other program on the machine changes."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

__all__ = ("Calls", "counting_calls")


@dataclass(slots=True)
class Calls:
    """How many functions, Python's and C's, were called."""

    count: int = 0


@contextmanager
def counting_calls() -> Generator[Calls]:
    """Counts what this thread calls inside the block. Tests bound this instead of seconds; what C code does in a call it does not see."""
    calls = Calls()

    def note(_frame: FrameType, event: str, _argument: Any) -> None:
        if event in ("call", "c_call"):
            calls.count += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)
