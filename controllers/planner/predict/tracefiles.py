"""Finds and opens the files of a recorded trace: planner.md §11.7."""

import gzip
import zlib
from collections.abc import Iterator
from glob import glob, has_magic
from pathlib import Path

from controllers.planner.predict.warmup import TraceLines, WarmupError, warmup_traffic
from controllers.planner.types import TrafficObservation

__all__ = ("read_warmup_traffic", "trace_files")

SUFFIXES = (".jsonl", ".jsonl.gz")


def read_warmup_traffic(place: str, interval_s: float) -> list[TrafficObservation]:
    """Traffic of the trace in a file, in all files that a pattern matches, or in a directory and those below it. WarmupError."""
    return warmup_traffic((TraceLines(str(path), _lines(path)) for path in trace_files(place)), interval_s)


def trace_files(place: str) -> list[Path]:
    """In the order of their names. WarmupError: there are none, or one is there both compressed and plain."""
    try:
        files = sorted(file for file in _found(place) if file.is_file())
    except (OSError, ValueError) as error:  # A name that is too long, or none.
        raise WarmupError(f"{place:.200}: {error!s:.200}") from None
    if not files:
        raise WarmupError(f"{place}: no trace file is there")
    for file in files:
        if file.suffix == ".gz" and file.with_suffix("") in files:
            raise WarmupError(f"{file}: is there without compression too")
    return files


def _found(place: str) -> list[Path]:
    path = Path(place)
    if path.is_dir():
        return [file for file in path.rglob("*") if file.name.endswith(SUFFIXES)]
    if path.is_file():
        return [path]
    return [Path(name) for name in glob(place, recursive=True)] if has_magic(place) else []


def _lines(path: Path) -> Iterator[str]:
    """Opened when the first line is asked for. OSError also for compressed data that are damaged."""
    if path.suffix == ".gz":
        try:
            with gzip.open(path, "rt", encoding="utf-8-sig") as file:
                yield from file
        except zlib.error as error:
            raise OSError(str(error)) from error
    else:
        with path.open(encoding="utf-8-sig") as file:
            yield from file
