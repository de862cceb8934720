"""Iterations measured before Planner starts: from the engine's own benchmark, from AI Configurator, from files of a profiling run.

Planner behaviour: planner.md §16. Every source gives iterations of single ranks or says why it cannot; reading sockets and files is
for the caller.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from math import isfinite
from typing import Any, Protocol, TypeAlias, cast
from zipfile import BadZipFile

import msgspec
import numpy as np

from controllers.planner.fpm import Fpm, Scheduled
from controllers.planner.types import Role

__all__ = (
    "PROFILE_FILES",
    "Attempt",
    "Bootstrap",
    "Measured",
    "SweepEstimator",
    "SweepPlan",
    "Unavailable",
    "first_measured",
    "from_profile",
    "from_self_benchmark",
    "from_sweep",
)

_SHORTEST_ISL = 100
_PREFILL_RESERVE = 512
_DECODE_OSL = 500
_FEWEST_POINTS = 3

PROFILE_FILES: Mapping[Role, tuple[str, str]] = {
    "prefill": ("selected_prefill_interpolation/raw_data.npz", "prefill_raw_data.json"),
    "decode": ("selected_decode_interpolation/raw_data.npz", "decode_raw_data.json"),
}
"""Names below profile_results_dir, the first that is there is used."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Iterations, at least one."""

    fpms: tuple[Fpm, ...]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why a source has nothing."""

    reason: str


Attempt: TypeAlias = Measured | Unavailable


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """What the first source that had something gave (empty: none had), its name, and "name: reason" of those before it."""

    fpms: tuple[Fpm, ...]
    source: str | None
    failures: tuple[str, ...]


def first_measured(attempts: Iterable[tuple[str, Callable[[], Attempt]]]) -> Bootstrap:
    """Tries named sources in order; later ones are not asked once one has answered."""
    failures: list[str] = []
    for name, attempt in attempts:
        match attempt():
            case Measured(fpms):
                return Bootstrap(fpms, name, tuple(failures))
            case Unavailable(reason):
                failures.append(f"{name}: {reason}")
    return Bootstrap((), None, tuple(failures))


class _Point(msgspec.Struct, frozen=True):
    point_type: str = ""


class _Result(msgspec.Struct, frozen=True):
    point: _Point = _Point()
    fpms: tuple[Fpm, ...] = ()


class _SelfBenchmark(msgspec.Struct, frozen=True):
    status: str = ""
    message: str = ""
    results: tuple[_Result, ...] | None = None


def from_self_benchmark(payload: object, role: Role) -> Attempt:
    """The answer of get_perf_metrics: decoded, or a string of JSON. Only points of the role, only iterations that took time."""
    try:
        if isinstance(payload, str | bytes):
            answer = msgspec.json.decode(payload, type=_SelfBenchmark)
        else:
            answer = msgspec.convert(payload, _SelfBenchmark)
    except (msgspec.MsgspecError, UnicodeError) as err:
        return Unavailable(f"the engine's benchmark cannot be read: {err}")
    if answer.status == "error":
        return Unavailable(f"the engine reports an error: {answer.message}" if answer.message else "the engine reports an error")
    if answer.results is None:
        return Unavailable("the engine's benchmark has no results")
    return _measured(fpm for result in answer.results if result.point.point_type == role for fpm in result.fpms)


def _measured(fpms: Iterable[Fpm]) -> Attempt:
    kept = tuple(fpm for fpm in fpms if isfinite(fpm.wall_time) and fpm.wall_time > 0)
    return Measured(kept) if kept else Unavailable("no iteration of this role took time")


class SweepEstimator(Protocol):
    """AI Configurator for one role. Times in milliseconds; ValueError for a point that it cannot tell."""

    def prefill_ms(self, isl: int) -> float: ...

    def decode_ms(self, isl: int, osl: int, batch_per_rank: int) -> float: ...

    def max_kv_tokens_per_rank(self) -> int: ...


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """From aic_interpolation: longest context in tokens, steps of lengths and of concurrency, attention data parallelism of the pick."""

    max_context_length: int
    granularity: int
    attention_dp: int = 1


def from_sweep(estimator: SweepEstimator, plan: SweepPlan, role: Role) -> Attempt:
    """Asks for a grid of points; those that cannot be told are left out, and at least three must remain."""
    longest = plan.max_context_length - (_PREFILL_RESERVE if role == "prefill" else _DECODE_OSL)
    if longest <= _SHORTEST_ISL:
        return Unavailable(f"sweep_max_context_length {plan.max_context_length} is too short for a sweep")
    try:
        points = list(_prefill_points(estimator, plan, longest) if role == "prefill" else _decode_points(estimator, plan, longest))
    except ValueError as err:
        return Unavailable(f"AI Configurator cannot tell the size of the KV cache: {err}")
    if len(points) < _FEWEST_POINTS:
        return Unavailable(f"AI Configurator gave {len(points)} usable points, {_FEWEST_POINTS} are needed")
    return Measured(tuple(points))


def _prefill_points(estimator: SweepEstimator, plan: SweepPlan, longest: int) -> Iterator[Fpm]:
    for isl in range(_SHORTEST_ISL, longest, max(1, (longest - _SHORTEST_ISL) // plan.granularity)):
        seconds = _seconds(lambda isl=isl: estimator.prefill_ms(isl))
        if seconds is not None:
            yield _prefill_fpm(isl, seconds)


def _decode_points(estimator: SweepEstimator, plan: SweepPlan, longest: int) -> Iterator[Fpm]:
    kv_tokens = estimator.max_kv_tokens_per_rank() * plan.attention_dp
    for isl in range(_SHORTEST_ISL, longest, max(1, longest // plan.granularity)):
        for requests in _concurrencies(kv_tokens // (isl + _DECODE_OSL), plan.granularity):
            batch = max(1, requests // plan.attention_dp)
            seconds = _seconds(lambda isl=isl, batch=batch: estimator.decode_ms(isl, _DECODE_OSL, batch))
            if seconds is not None:
                yield _decode_fpm(requests, round(requests * (isl + _DECODE_OSL / 2)), seconds)


def _concurrencies(most: int, granularity: int) -> Sequence[int]:
    if most < 1:
        return ()
    if granularity == 1:
        return (most,)
    if most <= granularity:
        return range(1, most + 1)
    return sorted({round(1 + i * (most - 1) / (granularity - 1)) for i in range(granularity)})


def _seconds(ask: Callable[[], float]) -> float | None:
    try:
        ms = ask()
    except ValueError:
        return None
    return ms / 1000.0 if isfinite(ms) and ms > 0 else None


class _ProfileError(Exception):
    """A file of a profiling run is not what it should be."""


def from_profile(files: Mapping[str, bytes], role: Role) -> Attempt:
    """From the files of profile_results_dir, by name relative to it (PROFILE_FILES)."""
    for name in PROFILE_FILES[role]:
        if name not in files:
            continue
        try:
            arrays = _npz(files[name]) if name.endswith(".npz") else _json(files[name])
            points = _prefill_profile(arrays) if role == "prefill" else _decode_profile(arrays)
        except _ProfileError as err:
            return Unavailable(f"{name}: {err}")
        return _measured(points)
    return Unavailable(f"neither {' nor '.join(PROFILE_FILES[role])} is there")


def _npz(content: bytes) -> Mapping[str, Any]:
    try:
        with np.load(BytesIO(content), allow_pickle=False) as loaded:
            return {name: np.ravel(loaded[name]).tolist() for name in loaded.files}
    except (ValueError, OSError, EOFError, BadZipFile) as err:
        raise _ProfileError(f"cannot be read: {err}") from err


def _json(content: bytes) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError) as err:
        raise _ProfileError(f"cannot be read: {err}") from err


def _numbers(arrays: Mapping[str, object], names: Sequence[str]) -> Iterator[tuple[float, ...]]:
    """Rows of equally long arrays; a row with something that is no finite number is left out. Raises _ProfileError."""
    columns: list[list[object]] = []
    for name in names:
        column = arrays.get(name)
        if not isinstance(column, list):
            raise _ProfileError(f"{name} is missing")
        columns.append(cast("list[object]", column))
    if len({len(column) for column in columns}) != 1:
        raise _ProfileError(f"{', '.join(names)} differ in length")
    for row in zip(*columns, strict=True):
        values = tuple(float(value) for value in row if isinstance(value, int | float) and isfinite(value))
        if len(values) == len(names):
            yield values


def _prefill_profile(arrays: Mapping[str, object]) -> list[Fpm]:
    return [_prefill_fpm(int(isl), ttft / 1000.0) for isl, ttft in _numbers(arrays, ("prefill_isl", "prefill_ttft")) if isl >= 0]


def _decode_profile(arrays: Mapping[str, object]) -> list[Fpm]:
    most = arrays.get("max_kv_tokens")
    if isinstance(most, list):
        most = next(iter(cast("list[object]", most)), None)
    if not isinstance(most, int | float) or not (isfinite(most) and most > 0):
        raise _ProfileError("max_kv_tokens is missing or no positive number")
    found: list[Fpm] = []
    for usage, context, itl in _numbers(arrays, ("x_kv_usage", "y_context_length", "z_itl")):
        kv = round(usage * most)
        if kv >= 0:
            found.append(_decode_fpm(max(1, round(kv / context)) if context > 0 else 1, kv, itl / 1000.0))
    return found


def _prefill_fpm(isl: int, seconds: float) -> Fpm:
    return Fpm(wall_time=seconds, scheduled_requests=Scheduled(num_prefill_requests=1, sum_prefill_tokens=isl))


def _decode_fpm(requests: int, kv_tokens: int, seconds: float) -> Fpm:
    return Fpm(wall_time=seconds, scheduled_requests=Scheduled(num_decode_requests=requests, sum_decode_kv_tokens=kv_tokens))
