"""Past traffic from recorded requests."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from controllers.planner.predict.tracefiles import read_warmup_traffic, trace_files
from controllers.planner.predict.warmup import TraceLines, WarmupError, warmup_traffic
from controllers.planner.types import TrafficObservation


def stamp(time_ms: float, isl: float, osl: float) -> dict[str, Any]:
    return {"timestamp": time_ms, "input_length": isl, "output_length": osl}


def event(isl: float, osl: float, received: float | None = None, **rest: Any) -> dict[str, Any]:
    request = {"replay": {"input_length": isl}, "output_tokens": osl, "request_received_ms": received}
    return {"schema": "dynamo.request.trace.v1", "event_type": "request_end", "request": request, **rest}


def traffic(*entries: object, interval: float = 10.0) -> list[TrafficObservation]:
    return warmup_traffic([TraceLines("a.jsonl", [json.dumps(entry) for entry in entries])], interval)


def idle() -> TrafficObservation:
    return TrafficObservation(10.0, 0.0, 0.0, 0.0)


def test_timestamps_count_from_zero_and_gaps_are_idle() -> None:
    found = traffic(stamp(39_999, 30, 3), stamp(12_000, 10, 1), stamp(19_999, 20, 2))
    assert found == [TrafficObservation(10.0, 2.0, 15.0, 1.5), idle(), TrafficObservation(10.0, 1.0, 30.0, 3.0)]


def test_events_count_from_the_first_of_all_files() -> None:
    lines = [
        [json.dumps({"event": event(10, 1, 1_700_000_015_000)}), "", json.dumps(event(20, 2, event_time_unix_ms=1_700_000_005_000))],
        [json.dumps({"schema": "dynamo.request.trace.v1", "event_type": "request_start"})],
    ]
    found = warmup_traffic([TraceLines(str(i), given) for i, given in enumerate(lines)], 10.0)
    assert found == [TrafficObservation(10.0, 1.0, 20.0, 2.0), TrafficObservation(10.0, 1.0, 10.0, 1.0)]


def test_no_request_is_no_traffic() -> None:
    assert traffic() == []


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (stamp(-1, 1, 1), "a.jsonl:1: timestamp is negative or not finite: -1.0"),
        (stamp(float("nan"), 1, 1), "a.jsonl:1: timestamp is negative or not finite: nan"),
        ({"timestamp": 1, "input_length": "7", "output_length": 1}, 'a.jsonl:1: input_length is not a number: "7"'),
        ({"timestamp": 1, "input_length": True, "output_length": 1}, "a.jsonl:1: input_length is not a number: true"),
        ({"timestamp": 1, "input_length": 1}, "a.jsonl:1: output_length is not a number: null"),
        ({"timestamp": 10**400, "input_length": 1, "output_length": 1}, "a.jsonl:1: timestamp is too large"),
        ([1], "a.jsonl:1: not an object"),
        ({"schema": "other"}, "a.jsonl:1: neither `timestamp` nor an event of schema dynamo.request.trace.v1"),
        ({"event": 3}, "a.jsonl:1: event is not an object"),
        (event(1, 1), "a.jsonl:1: event_time_unix_ms is not a number: null"),
        ({**event(1, 1, 1), "request": {"output_tokens": 1}}, "a.jsonl:1: replay is not an object"),
    ],
)
def test_bad_line_is_named(entry: object, message: str) -> None:
    with pytest.raises(WarmupError) as error:
        traffic(entry)
    assert str(error.value) == message


def test_mixed_formats_are_refused() -> None:
    with pytest.raises(WarmupError, match=r"^a.jsonl:2: lines with `timestamp` and events are mixed$"):
        traffic(stamp(0, 1, 1), event(1, 1, 1))


def test_truncated_line_is_named() -> None:
    with pytest.raises(WarmupError, match=r"^b:2: not JSON: "):
        warmup_traffic([TraceLines("b", [json.dumps(stamp(0, 1, 1)), '{"timestamp": 3,'])], 10.0)


def test_directory_pattern_and_compressed_files(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "one.jsonl").write_text(json.dumps(stamp(0, 1, 1)))
    (tmp_path / "notes.txt").write_text("no trace")
    with gzip.open(tmp_path / "sub" / "two.jsonl.gz", "wt") as file:
        file.write(json.dumps(stamp(0, 3, 3)))
    expected = [TrafficObservation(10.0, 2.0, 2.0, 2.0)]
    assert read_warmup_traffic(str(tmp_path), 10.0) == expected
    assert read_warmup_traffic(str(tmp_path / "**" / "*.jsonl*"), 10.0) == expected
    assert [path.name for path in trace_files(str(tmp_path / "one.jsonl"))] == ["one.jsonl"]


def test_a_file_twice_is_refused(tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.jsonl.gz"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(WarmupError, match=r"a\.jsonl\.gz: is there without compression too$"):
        trace_files(str(tmp_path))


@pytest.mark.parametrize("name", ["missing.jsonl", "*.jsonl", "."])
def test_nothing_there_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(WarmupError, match=r"no trace file is there$"):
        trace_files(str(tmp_path / name))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"timestamp": 1' + "0" * 5000 + "}"])
def test_a_line_that_no_reader_takes_is_named(text: str) -> None:
    with pytest.raises(WarmupError, match=r"^a:1: not usable: "):
        warmup_traffic([TraceLines("a", [text])], 10.0)


def test_times_in_another_unit_do_not_fill_the_memory() -> None:
    with pytest.raises(WarmupError, match=r"^requests span 100000000000001 windows of 10 s, .* milliseconds\?$"):
        traffic(stamp(0, 1, 1), stamp(10**18, 1, 1))


def test_a_byte_order_mark_is_no_part_of_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(stamp(0, 3, 3)).encode() + b"\r\n")
    assert read_warmup_traffic(str(tmp_path), 10.0) == [TrafficObservation(10.0, 1.0, 3.0, 3.0)]


def test_a_name_that_no_file_can_have_is_an_error() -> None:
    with pytest.raises(WarmupError, match=r"^xxx.*File name too long") as error:
        trace_files("x" * 5000)
    assert len(str(error.value)) < 500


def test_compressed_data_that_were_changed_are_named(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(json.dumps(stamp(0, 1, 1)).encode() * 99))
    data[15:30] = bytes(15)
    (tmp_path / "a.jsonl.gz").write_bytes(data)
    with pytest.raises(WarmupError, match=r"a\.jsonl\.gz:1: Error -3 while decompressing"):
        read_warmup_traffic(str(tmp_path), 10.0)


def test_damaged_compression_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(json.dumps(stamp(0, 1, 1)).encode() * 99)[:30])
    with pytest.raises(WarmupError, match=r"a\.jsonl\.gz:1: "):
        read_warmup_traffic(str(tmp_path), 10.0)
