"""Bootstrap sources: what they give, why they cannot, and which is used."""

import json
from collections.abc import Callable
from io import BytesIO
from math import nan
from typing import Any

import numpy as np
import pytest

from controllers.planner.fpm import Fpm, Scheduled
from controllers.planner.perfmodel.bootstrap import (
    Attempt,
    Measured,
    SweepPlan,
    Unavailable,
    first_measured,
    from_profile,
    from_self_benchmark,
    from_sweep,
)
from controllers.planner.types import Role


def _fpm(requests: int = 0, kv: int = 0, wall: float = 0.1, prefill: int = 0) -> Fpm:
    work = Scheduled(
        num_prefill_requests=1 if prefill else 0, sum_prefill_tokens=prefill, num_decode_requests=requests, sum_decode_kv_tokens=kv
    )
    return Fpm(wall_time=wall, scheduled_requests=work)


def _benchmark() -> dict[str, Any]:
    return {
        "status": "ok",
        "results": [
            {"point": {"point_type": "prefill", "x": 1}, "fpms": [{"wall_time": 0.1, "scheduled_requests": {"num_prefill_requests": 1}}]},
            {"point": {"point_type": "decode"}, "fpms": [{"wall_time": 0.0}, {"wall_time": 0.2, "worker_id": "w", "later": 1}]},
        ],
    }


@pytest.mark.parametrize("encode", [lambda p: p, json.dumps, lambda p: json.dumps(p).encode()], ids=["decoded", "text", "bytes"])
def test_self_benchmark_gives_points_of_the_role(encode: Callable[[Any], object]) -> None:
    payload = encode(_benchmark())
    assert from_self_benchmark(payload, "prefill") == Measured((Fpm(wall_time=0.1, scheduled_requests=Scheduled(num_prefill_requests=1)),))
    assert from_self_benchmark(payload, "decode") == Measured((Fpm(wall_time=0.2, worker_id="w"),))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        ("{", "cannot be read"),
        (b"\xff", "cannot be read"),
        (None, "cannot be read"),
        ([1], "cannot be read"),
        ({"results": 3}, "cannot be read"),
        ({"results": [{"fpms": [{"wall_time": "soon"}]}]}, "cannot be read"),
        ({"status": "error", "message": "busy"}, "busy"),
        ({}, "no results"),
        ({"results": []}, "no iteration"),
        ({"results": [{"point": {"point_type": "prefill"}, "fpms": [{"wall_time": -1.0}]}]}, "no iteration"),
    ],
    ids=repr,
)
def test_self_benchmark_that_is_none(payload: object, reason: str) -> None:
    found = from_self_benchmark(payload, "prefill")
    assert isinstance(found, Unavailable)
    assert reason in found.reason


class Sweep:
    """Times of 1 ms per 100 tokens; a length may be refused."""

    def __init__(self, kv_tokens: int = 2400, refused: tuple[int, ...] = ()) -> None:
        self.kv_tokens, self.refused = kv_tokens, refused
        self.batches: list[tuple[int, int]] = []

    def prefill_ms(self, isl: int) -> float:
        if isl in self.refused:
            raise ValueError("no data")
        return isl / 100

    def decode_ms(self, isl: int, osl: int, batch_per_rank: int) -> float:
        assert osl == 500
        self.batches.append((isl, batch_per_rank))
        return nan if isl in self.refused else float(batch_per_rank)

    def max_kv_tokens_per_rank(self) -> int:
        if not self.kv_tokens:
            raise ValueError("unknown")
        return self.kv_tokens


def test_prefill_sweep() -> None:
    # Longest 1012 - 512 = 500, steps of (500 - 100) // 4 = 100 from 100 on.
    found = from_sweep(Sweep(refused=(200,)), SweepPlan(1012, 4), "prefill")
    assert found == Measured(tuple(_fpm(prefill=isl, wall=isl / 1e5) for isl in (100, 300, 400)))


def test_decode_sweep() -> None:
    # Lengths 100 and 450 (step 700 // 2), each with 1 and most requests: 2400 // 600 = 4 and 2400 // 950 = 2.
    sweep = Sweep()
    found = from_sweep(sweep, SweepPlan(1200, 2), "decode")
    assert sweep.batches == [(100, 1), (100, 4), (450, 1), (450, 2)]
    assert found == Measured(
        (_fpm(1, 350, 0.001), _fpm(4, 1400, 0.004), _fpm(1, 700, 0.001), _fpm(2, 1400, 0.002)),
    )


def test_decode_sweep_over_ranks() -> None:
    sweep = Sweep(kv_tokens=1800)
    found = from_sweep(sweep, SweepPlan(640, 3, attention_dp=2), "decode")
    # 3600 // 600 = 6 requests at most: 1, 3.5 rounded to even, 6, on two ranks.
    assert sweep.batches == [(100, 1), (100, 2), (100, 3)]
    assert isinstance(found, Measured)
    assert [fpm.scheduled_requests.num_decode_requests for fpm in found.fpms] == [1, 4, 6]


@pytest.mark.parametrize(
    ("sweep", "plan", "role", "reason"),
    [
        (Sweep(), SweepPlan(612, 4), "prefill", "too short"),
        (Sweep(refused=(200, 300)), SweepPlan(1012, 4), "prefill", "2 usable points"),
        (Sweep(refused=(100, 450)), SweepPlan(1200, 2), "decode", "0 usable points"),
        (Sweep(kv_tokens=0), SweepPlan(1200, 2), "decode", "KV cache"),
        (Sweep(kv_tokens=5), SweepPlan(1200, 2), "decode", "0 usable points"),
    ],
    ids=["short", "few", "not finite", "cache unknown", "cache too small"],
)
def test_sweep_that_fails(sweep: Sweep, plan: SweepPlan, role: Role, reason: str) -> None:
    found = from_sweep(sweep, plan, role)
    assert isinstance(found, Unavailable)
    assert reason in found.reason


def _npz(**arrays: Any) -> bytes:
    stream = BytesIO()
    np.savez(stream, allow_pickle=False, **{name: np.array(values) for name, values in arrays.items()})
    return stream.getvalue()


PREFILL_NPZ = "selected_prefill_interpolation/raw_data.npz"
DECODE_NPZ = "selected_decode_interpolation/raw_data.npz"


def test_prefill_profile_prefers_npz() -> None:
    files = {
        PREFILL_NPZ: _npz(prefill_isl=[100.0, 200.9, nan], prefill_ttft=[10.0, 20.0, 30.0]),
        "prefill_raw_data.json": b"nonsense",
    }
    assert from_profile(files, "prefill") == Measured((_fpm(prefill=100, wall=0.01), _fpm(prefill=200, wall=0.02)))


def test_prefill_profile_from_json() -> None:
    files = {"prefill_raw_data.json": b'{"prefill_isl": [100], "prefill_ttft": [10.0]}'}
    assert from_profile(files, "prefill") == Measured((_fpm(prefill=100, wall=0.01),))


@pytest.mark.parametrize("most", [[1000], 1000], ids=["array", "scalar"])
def test_decode_profile(most: Any) -> None:
    arrays = {"x_kv_usage": [0.5, 0.25, 0.1], "y_context_length": [100, 100, 0], "z_itl": [10, 20, 30], "max_kv_tokens": most}
    expected = Measured((_fpm(5, 500, 0.01), _fpm(2, 250, 0.02), _fpm(1, 100, 0.03)))
    assert from_profile({DECODE_NPZ: _npz(**arrays)}, "decode") == expected
    assert from_profile({"decode_raw_data.json": json.dumps(arrays).encode()}, "decode") == expected


@pytest.mark.parametrize(
    ("files", "role", "reason"),
    [
        ({}, "prefill", "is there"),
        ({PREFILL_NPZ: b"not a zip"}, "prefill", "cannot be read"),
        ({"prefill_raw_data.json": b"[1]"}, "prefill", "cannot be read"),
        ({"prefill_raw_data.json": b'{"prefill_isl": [1]}'}, "prefill", "prefill_ttft is missing"),
        ({"prefill_raw_data.json": b'{"prefill_isl": [1], "prefill_ttft": []}'}, "prefill", "differ in length"),
        ({"prefill_raw_data.json": b'{"prefill_isl": ["x"], "prefill_ttft": [1]}'}, "prefill", "no iteration"),
        ({"decode_raw_data.json": b'{"x_kv_usage": [1], "y_context_length": [1], "z_itl": [1]}'}, "decode", "max_kv_tokens"),
        ({"decode_raw_data.json": b'{"max_kv_tokens": []}'}, "decode", "max_kv_tokens"),
    ],
    ids=str,
)
def test_profile_that_fails(files: dict[str, bytes], role: Role, reason: str) -> None:
    found = from_profile(files, role)
    assert isinstance(found, Unavailable)
    assert reason in found.reason


def test_npz_with_objects_is_refused() -> None:
    stream = BytesIO()
    np.savez(stream, allow_pickle=True, prefill_isl=np.array([{}], dtype=object), prefill_ttft=np.array([1.0]))
    assert isinstance(from_profile({PREFILL_NPZ: stream.getvalue()}, "prefill"), Unavailable)


def test_first_source_that_answers_is_used() -> None:
    asked: list[str] = []

    def source(name: str, answer: Attempt) -> tuple[str, Callable[[], Attempt]]:
        def ask() -> Attempt:
            asked.append(name)
            return answer

        return name, ask

    found = first_measured([source("a", Unavailable("off")), source("b", Measured((Fpm(),))), source("c", Measured(()))])
    assert (found.fpms, found.source, found.failures) == ((Fpm(),), "b", ("a: off",))
    assert asked == ["a", "b"]
    none = first_measured([source("a", Unavailable("off")), source("b", Unavailable("gone"))])
    assert (none.fpms, none.source, none.failures) == ((), None, ("a: off", "b: gone"))
