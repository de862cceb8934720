"""Replays of files that were damaged or made up, and what is said to people, terminals and closed pipes."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from controllers.planner.replay.case import parse_case, parse_line
from controllers.planner.replay.decode import CaseError
from tests.unit.planner.replaying import ENGINE, SLA, case_text, idle, line

ROOT = Path(__file__).parents[3]
PLUGIN = {"plugin_id": "p", "plugin_type": "propose", "priority": 1}


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> tuple[str, str]:
    case, trace = tmp_path / "case.json", tmp_path / "trace.jsonl"
    case.write_text(case_text({}))
    trace.write_text("".join(json.dumps(text) + "\n" for text in (idle(1, 1), idle(2, 1), idle(2, 1))))
    return str(case), str(trace)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"fpm": ' + "[" * 900 + "]" * 900 + "}", "fpm: Expected"),
        ('{"workers": {"prefill": 1' + "0" * 400 + "}}", "workers.prefill: Expected `int` <="),
        ('{"workers": {"prefill": {"expected": -1' + "0" * 400 + "}}}", "workers.prefill.expected: Expected `int` >="),
        ('{"capabilities": {"decode": {"num_gpu": 1' + "0" * 400 + "}}}", "capabilities.decode.num_gpu: must be a whole number of 64 bits"),
        ('{"capabilities": {"decode": {"num_gpu": 1e300}}}', "capabilities.decode.num_gpu: must be a whole number of 64 bits"),
        ('{"capabilities": {"decode": {"num_gpu": NaN}}}', "capabilities.decode.num_gpu: must be a whole number or null"),
        ('{"capabilities": {"decode": {"num_gpu": Infinity}}}', "capabilities.decode.num_gpu: must be a whole number"),
        ('{"capabilities": {"decode": {"num_gpu": 1.5}}}', "capabilities.decode.num_gpu: must be a whole number or null"),
    ],
)
def test_lines_that_went_too_far(text: str, problem: str) -> None:
    with pytest.raises(CaseError, match=f"^{problem}"):
        parse_line(text)


def test_whole_numbers_may_be_written_as_floats() -> None:
    found = parse_line('{"capabilities": {"decode": {"num_gpu": 2.0, "max_num_seqs": null}}}').capabilities
    assert found is not None
    assert found.decode is not None
    assert (found.decode.num_gpu, type(found.decode.num_gpu), found.decode.max_num_seqs) == (2, int, None)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"start_s": float("nan")}, "start_s: must be a finite number, is nan"),
        ({"start_s": float("inf")}, "start_s: must be a finite number, is inf"),
        (
            {"scripted_plugins": [{**PLUGIN, "execution_interval_seconds": -1}]},
            r"scripted_plugins\[0\].execution_interval_seconds: must be",
        ),
        ({"scripted_plugins": [{**PLUGIN, "execution_interval_seconds": float("nan")}]}, r".*execution_interval_seconds: must be a finite"),
        ({"scripted_plugins": [{**PLUGIN, "plugin_id": ""}]}, r"scripted_plugins\[0\].plugin_id: must not be empty"),
    ],
)
def test_cases_that_went_too_far(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(CaseError, match=f"^{problem}"):
        parse_case(json.dumps({"planner_config": {}, **change}), {})


def test_keys_that_a_case_has_not_are_told() -> None:
    engines = {"decode": {**ENGINE, "max_kv": 1}, "deocde": {}, "prefill": None}
    case = parse_case(json.dumps({"planner_config": {}, "note": "", "capabilites": {}, "capabilities": engines}), {})
    assert case.config.notes == (
        "capabilites is ignored: a case has no such key",
        "capabilities.decode.max_kv is ignored: a case has no such key",
        "capabilities.deocde is ignored: a case has no such key",
    )


def test_a_setting_that_no_float_can_say(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    huge = f"1{'0' * 400}"
    settings = [f"speculative_nextn={huge}", f"min_endpoint={huge}", *(f"{key}={json.dumps(value)}" for key, value in SLA.items())]
    arguments = [part for setting in settings for part in ("--set", setting)]
    assert main(["planner", "replay", *files, *arguments]) == 0
    assert main(["planner", "explain", *files, "--tick", "0", *arguments]) == 0
    assert f"minimum of prefill: {huge}" in capsys.readouterr().out


def test_explain_names_what_cannot_be_used(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut, wrong = tmp_path / "cut.jsonl", tmp_path / "wrong.json"
    cut.write_text(json.dumps(idle(1, 1)) + '\n{"workers"')
    for tick in ("1", "-1"):
        assert main(["planner", "explain", files[0], str(cut), "--tick", tick]) == 4
        assert capsys.readouterr().err.startswith(f"error: {cut}:2: no JSON: ")
    wrong.write_text(case_text({}, scripted_plugins=[PLUGIN, PLUGIN]))
    assert main(["planner", "explain", str(wrong), files[1], "--tick", "0"]) == 4
    assert capsys.readouterr().err == f"error: {wrong}: plugin 'p' is registered already\n"


def test_explain_reads_standard_input_once_only(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["planner", "explain", files[0], "-", "--tick", "-1"]) == 4
    assert capsys.readouterr().err == "error: --tick: standard input is read once only, so count from the start of it\n"


def test_what_only_a_replay_accepts_is_told(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["planner", "replay", *files, "--set", "max_num_fpm_samples=0"]) == 0
    assert capsys.readouterr().err == "note: outside a replay this is refused: max_num_fpm_samples: must be at least 1, is 0\n"


def test_an_empty_trace_is_told(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    assert main(["planner", "replay", files[0], str(empty)]) == 0
    assert capsys.readouterr().err == f"note: {empty} is empty, so there is no tick\n"


def test_texts_of_others_do_not_steer_the_terminal(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case, call = tmp_path / "case.json", tmp_path / "call.jsonl"
    reason = "no\n  decode: stays 9\x1b[2J\ud800"
    case.write_text(case_text({}, scripted_plugins=[{**PLUGIN, "script": [{"kind": "reject", "reason": reason}]}]))
    assert main(["planner", "explain", str(case), files[1], "--tick", "0"]) == 0
    told = capsys.readouterr().out
    assert r"a plugin rejected, p: no\n  decode: stays 9\x1b[2J\ud800" in told
    assert "\n  decode: stays 9" not in told
    call.write_text(json.dumps({"fn": "\x1b\ud800", "in": {}, "out": {}}))
    assert main(["planner", "replay", "--vectors", str(call)]) == 1
    assert r": \x1b\ud800: unknown: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "call",
    [
        {"fn": "regression_options", "in": {}, "out": None},
        {"fn": "regression", "in": {"options": [], "steps": [], "probes": []}, "out": []},
        {"fn": "find_engine_capacity_rps", "in": {"worker_type": "decode", "capabilities": {}, "bootstrap": [{"dp_rank": "x"}]}, "out": {}},
        {"fn": "predictor", "in": {"config": {}, "values": [10**400], "reset_idle_skip_before": None}, "out": []},
        {"fn": "type_aware_merge", "in": {"results": [1], "baseline": [[1]]}, "out": {}},
    ],
)
def test_calls_that_cannot_be_made(call: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "call.jsonl"
    file.write_text(json.dumps(call))
    assert main(["planner", "replay", "--vectors", str(file)]) == 4
    assert capsys.readouterr().err.startswith(f"error: {file}:1: in: ")


def test_a_recorded_number_that_no_float_can_say_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "call.jsonl"
    given = {"config": {"load_predictor": "constant"}, "values": [1.5], "reset_idle_skip_before": None}
    file.write_text(json.dumps({"fn": "predictor", "in": given, "out": [[10**400, 1.5]]}))
    assert main(["planner", "replay", "--vectors", str(file)]) == 1
    assert "predictor: differs: out[0][0]: 1000" in capsys.readouterr().out


def run(arguments: Sequence[str], shell: str) -> subprocess.CompletedProcess[str]:
    """The command with redirections as a shell makes them; output is buffered as it is for users."""
    command = [sys.executable, "-m", "cli.main", "planner", *arguments]
    script = f'set -o pipefail; "$@" {shell}'
    environment = {"PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": ""}
    return subprocess.run(["bash", "-c", script, "-", *command], capture_output=True, text=True, cwd=ROOT, env=environment, timeout=15)  # noqa: S603, S607


def test_output_that_nobody_takes(files: tuple[str, str]) -> None:
    ended = run(["replay", *files], "| (exec <&-; sleep 0.1)")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_output_that_cannot_be_written(files: tuple[str, str]) -> None:
    ended = run(["replay", *files], "> /dev/full")
    assert (ended.returncode, ended.stderr) == (4, "error: standard output: No space left on device\n")


def test_input_that_is_closed(files: tuple[str, str]) -> None:
    ended = run(["replay", files[0], "-"], "<&-")
    assert (ended.returncode, ended.stderr) == (4, "error: standard input is closed\n")


def test_a_trace_from_standard_input_in_the_habits_of_windows(files: tuple[str, str]) -> None:
    Path(files[1]).write_bytes(b"\xef\xbb\xbf" + json.dumps(line(1, 1)).encode() + b"\r\n\r\n")
    ended = run(["replay", files[0], "-"], f"< {files[1]}")
    assert (ended.returncode, ended.stderr, len(ended.stdout.splitlines())) == (0, "", 1)
