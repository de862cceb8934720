"""Files of replays: what may stand in them, and what is said of what may not; scripted plugins; the command line."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.main import main
from controllers.planner.replay.case import parse_case, parse_line
from controllers.planner.replay.decode import CaseError
from controllers.planner.replay.run import TraceError, play, to_json
from controllers.planner.replay.script import ScriptedInstance, ScriptedPlugin
from controllers.planner.types import WorkerCounts
from tests.unit.planner.replaying import ENGINE, case_text, decodes, idle, line, prefills, records, scaled, started, ticks


@pytest.mark.parametrize(
    ("workers", "wanted"),
    [
        ({"prefill": 2, "decode": 3}, WorkerCounts(2, 3, 2, 3)),
        ({"prefill": 2, "decode": 3, "stable": False}, WorkerCounts(2, 3, None, None, True, True)),
        ({"prefill": {"active": 1, "expected": 4}, "decode": 3}, WorkerCounts(1, 3, 4, 3)),
        ({"prefill": {"active": 1, "scaling": True}, "decode": None}, WorkerCounts(1, None, None, None, True)),
        ({"decode": 0}, WorkerCounts(None, 0, None, 0)),
        ({}, WorkerCounts()),
    ],
)
def test_counts(workers: dict[str, Any], wanted: WorkerCounts) -> None:
    (played,) = ticks(started({}), [{"workers": workers}])
    assert played.given.worker_counts == wanted


def test_only_what_a_tick_asks_for_is_read() -> None:
    full = idle(1, 1, traffic={"num_req": 5, "isl": 6, "osl": 7, "kv_hit_rate": 0.5})
    (easy,) = ticks(started({}), [full])
    assert easy.given.traffic is None
    assert easy.given.fpm_observations is not None
    cheap_config = {"optimization_target": "sla", "enable_throughput_scaling": False, "enable_load_scaling": True}
    (cheap,) = ticks(started(cheap_config), [full])
    traffic = cheap.given.traffic
    assert traffic is not None
    assert (traffic.num_req, traffic.isl, traffic.osl, traffic.kv_hit_rate, traffic.duration_s) == (0, 0, 0, 0.5, 5)


def test_the_last_message_of_a_rank_counts() -> None:
    (record,) = records({"mode": "prefill"}, [line(1, None, {"prefill": [*prefills(20_000), *prefills(5000)]})])
    assert record["diagnostics"]["load_decision_reason"] == "no_change"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"workers": {"prefill": 1', "no JSON: Expecting ',' delimiter"),
        ("", "no JSON: Expecting value"),
        (b'{"a": "\xff"}', "no JSON: 'utf-8' codec can't decode"),
        ("[" * 100_000, "no JSON: "),
        ("[1]", "must be a JSON object"),
        ('{"workers": {"prefill": "two"}}', "workers.prefill: Expected"),
        ('{"workers": {"prefill": {"active": 1.5}}}', "workers.prefill.active: Expected"),
        ('{"fpm": {"prefill": [{"worker_id": 1}]}}', r"fpm.prefill\[0\].worker_id: Expected"),
        ('{"fpm": {"decode": [{"scheduled_requests": []}]}}', r"fpm.decode\[0\].scheduled_requests: Expected"),
        ('{"traffic": {"isl": "long"}}', "traffic.isl: Expected"),
        ('{"traffic": 3}', "traffic: Expected"),
        ('{"capabilities": {"decode": {"max_num_seqs": "many"}}}', "capabilities.decode.max_num_seqs: must be a whole number or null"),
        ('{"set_config": ["min_endpoint"]}', "set_config: Expected"),
    ],
)
def test_lines_that_cannot_be_used(text: str | bytes, problem: str) -> None:
    with pytest.raises(CaseError, match=f"^{problem}"):
        parse_line(text)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"planner_config": {"mode": "all"}}, "planner_config: mode: must be"),
        ({"planner_config": {"optimization_target": "sla", "load_predictor": "oracle"}}, "load_predictor: there is no 'oracle'"),
        ({"bootstrap_fpms": {"prefill": [{"wall_time": "x"}]}}, r"bootstrap_fpms.prefill\[0\].wall_time: Expected"),
        ({"scripted_plugins": [{"plugin_id": "a"}]}, r"scripted_plugins\[0\]: Object missing required field"),
        (
            {"scripted_plugins": [{"plugin_id": "a", "plugin_type": "propose", "priority": 1, "hold_policy": "FOREVER"}]},
            r"scripted_plugins\[0\].hold_policy: ",
        ),
        (
            {"scripted_plugins": [{"plugin_id": "a", "plugin_type": "propose", "priority": 1, "script": [{"kind": "overide"}]}]},
            r"scripted_plugins\[0\].script\[0\].kind: must be one of accept, ",
        ),
        ({"scripted_plugins": [{"plugin_id": "a", "plugin_type": "propose", "priority": 1}] * 2}, "plugin 'a' is registered already"),
        (
            {
                "planner_config": {
                    "plugin_registration": {
                        "in_process_plugins": [
                            {
                                **dict.fromkeys(("module", "class"), "nowhere.at_all"),
                                "plugin_id": "x",
                                "plugin_type": "propose",
                                "priority": 1,
                            }
                        ]
                    }
                }
            },
            "^plugin 'x': cannot import nowhere.at_all: ModuleNotFoundError: No module named 'nowhere'",
        ),
    ],
)
def test_cases_that_cannot_be_used(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(CaseError, match=problem):
        list(play(parse_case(json.dumps({"planner_config": {}, **change}), {}), []))


def test_a_configuration_alone_is_a_case() -> None:
    case = parse_case('{"max_gpu_budget": 5}', {"min_endpoint": 2})
    assert (case.config.max_gpu_budget, case.config.min_endpoint) == (5, 2)
    assert not case.config.pending_aware_scale_down
    assert parse_case('{"pending_aware_scale_down": true}', {}).config.pending_aware_scale_down


def test_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYN_NAMESPACE", "elsewhere")
    assert parse_case("{}", {}).config.namespace == "dynamo"


def test_a_refused_minimum_changes_nothing_but_is_told() -> None:
    replay = started({"mode": "prefill"})
    played = ticks(replay, [line(1, set_config={"decode_min_endpoint": 2}), line(1, set_config={"min_endpoint": -1})])
    assert [len(tick.notes) for tick in played] == [1, 1]
    assert "refused (422)" in played[0].notes[0]
    assert replay.engine.config.min_endpoint == 1


def test_an_impossible_setting_is_an_error() -> None:
    with pytest.raises(CaseError, match="set_config: there is no field min_endpiont"):
        ticks(started({}), [line(1, 1, set_config={"min_endpiont": 1})])


def test_a_trace_stops_at_the_line_that_cannot_be_used() -> None:
    good = json.dumps(idle(1, 1))
    played = play(parse_case(case_text({}), {}), [good, "", good, good[:-5], good])
    assert [next(played).index for _ in range(2)] == [0, 1]
    with pytest.raises(TraceError) as stopped:
        next(played)
    assert stopped.value.number == 4


def test_numbers_that_json_has_not() -> None:
    assert parse_line('{"traffic": {"isl": NaN, "osl": "inf", "num_req": 1}}').content.traffic is not None
    assert json.loads(to_json({"a": math.nan, "b": [math.inf, 1.0], "c": {"d": -math.inf}})) == {
        "a": "nan",
        "b": ["inf", 1.0],
        "c": {"d": "-inf"},
    }


@pytest.mark.parametrize(
    "bad",
    [
        {"wall_time": math.nan},
        {"wall_time": -1.0},
        {"wall_time": 1e308},
        {"version": 2},
        {"worker_id": ""},
        {"scheduled_requests": {"num_prefill_requests": -1, "sum_prefill_tokens": -100}},
        {"queued_requests": {"sum_prefill_tokens": -5}},
        {"queued_requests": {"sum_prefill_tokens": 10**30}},
        {"scheduled_requests": {"sum_decode_kv_tokens": 5}},
        {"scheduled_requests": {"var_prefill_length": math.inf}},
    ],
)
@pytest.mark.parametrize("target", ["throughput", "sla"])
def test_metrics_that_cannot_be(bad: dict[str, Any], target: str) -> None:
    """Are held on or ignored, and never end a replay."""
    config = {"optimization_target": target, "enable_load_scaling": True, "enable_throughput_scaling": False}
    spoiled = [{**fpm, **bad} for fpm in prefills(20_000)]
    found = records(config, [line(1, 1, {"prefill": spoiled, "decode": decodes(10)})] * 3)
    assert all(record["diagnostics"]["execute_action"] == "apply" for record in found)
    assert all(record["scale_to"] is None or record["scale_to"]["prefill"] in (1, 2) for record in found)


def scripted(stage: str, *script: dict[str, Any]) -> ScriptedInstance:
    return ScriptedInstance(ScriptedPlugin("p", stage, 1, script=tuple(json_scripts(script))))  # pyright: ignore[reportArgumentType]


def json_scripts(script: tuple[dict[str, Any], ...]) -> Any:
    plugin = {"plugin_id": "p", "plugin_type": "predict", "priority": 1, "script": list(script)}
    return parse_case(case_text({}, scripted_plugins=[plugin]), {}).plugins[0].script


def test_scripts_are_answered_in_turn_and_the_last_one_repeats() -> None:
    plugin = scripted("propose", {"kind": "accept"}, {"kind": "raise", "reason": "down"}, {"kind": "reject", "reason": "no"})
    request: Any = None
    assert plugin.propose(request).kind == "accept"
    with pytest.raises(RuntimeError, match="down"):
        plugin.propose(request)
    assert [plugin.constrain(request).reason for _ in range(2)] == ["no", "no"]
    assert scripted("propose").propose(request).kind == "accept"
    assert scripted("propose", {"kind": "empty"}).reconcile(request).kind is None


@pytest.mark.parametrize("kind", ["accept", "reject", "override", "none at all"])
def test_a_predict_plugin_that_answers_something_else_predicts_nothing(kind: str) -> None:
    request: Any = None
    answer = scripted("predict", {"kind": kind, "reason": "r", "final": True}).predict(request)
    assert (answer.predictions, answer.reason, answer.final) == (None, "r", True)


@pytest.mark.parametrize(
    ("plugin", "wanted"),
    [
        ({"hold_policy": "HOLD_LAST"}, [(5, 1), (5, 1), (5, 1)]),
        ({"hold_policy": "hold_last"}, [(5, 1), (5, 1), (5, 1)]),
        ({"hold_policy": 1}, [(5, 1), (5, 1), (5, 1)]),
        ({"hold_policy": "ACCEPT_WHEN_IDLE"}, [(5, 1), None, (5, 1)]),
        ({}, [(5, 1), None, (5, 1)]),
        ({"requires_produced_fields": ["predictions"]}, [None, None, None]),
        ({"requires_produced_fields": ["observations.fpm", "observations.workers.ready_prefill"]}, [(5, 1), None, (5, 1)]),
        ({"execution_interval_seconds": 0}, [(5, 1), (5, 1), (5, 1)]),
        ({"plugin_type": "reconcile"}, [(5, 1), None, (5, 1)]),
        ({"plugin_type": "constrain"}, [None, None, None]),
    ],
)
def test_scripted_plugins_are_scheduled_as_others(plugin: dict[str, Any], wanted: list[Any]) -> None:
    script = [{"kind": "override", "targets": [{"component": "prefill", "replicas": 5}]}]
    whole = {"plugin_id": "p", "plugin_type": "propose", "priority": 3, "execution_interval_seconds": 10, "script": script, **plugin}
    first, second, third = wanted
    fpm = {"prefill": prefills(5000), "decode": decodes(70_000)}
    found = records({"scheduling": {"scale_interval_seconds": 5}}, [line(1, 1, fpm)] * 4, scripted_plugins=[whole])
    # An interval of 10 s counts from the start, so the first tick is one that it is not due on.
    assert [scaled(record) for record in found[1:]] == [first, second, third]


def write(path: Path, *lines: Any) -> str:
    path.write_text("".join((text if isinstance(text, str) else json.dumps(text)) + "\n" for text in lines))
    return str(path)


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> tuple[str, str]:
    busy = line(1, 1, {"prefill": prefills(20_000), "decode": decodes(70_000)})
    return write(tmp_path / "case.json", case_text({})), write(tmp_path / "trace.jsonl", busy, idle(2, 1), idle(2, 1))


def test_replay_prints_a_line_for_each_tick(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["planner", "replay", *files]) == 0
    printed = capsys.readouterr()
    lines = [json.loads(text) for text in printed.out.splitlines()]
    assert [text["scale_to"] for text in lines] == [{"prefill": 2, "decode": 1}, None, None]
    assert printed.out.splitlines()[0] == json.dumps(lines[0], sort_keys=True, separators=(",", ":"))
    assert printed.err == ""


def test_settings_stand_over_the_configuration(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["planner", "replay", *files, "--set", "min_endpoint=3", "--set", "mode=prefill"]) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert first["scale_to"] == {"prefill": 3, "decode": None}


def test_expected_output_is_compared(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["planner", "replay", *files])
    lines = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    same = write(tmp_path / "same.jsonl", *lines)
    assert main(["planner", "replay", *files, "--expected", same]) == 0
    assert capsys.readouterr().out == "3 ticks, 0 differences\n"
    lines[1]["diagnostics"]["load_decision_reason"] = "scale_up"
    other = write(tmp_path / "other.jsonl", *lines)
    assert main(["planner", "replay", *files, "--expected", other, "--decisions-only"]) == 0
    assert main(["planner", "replay", *files, "--expected", other]) == 1
    assert "tick 1.diagnostics.load_decision_reason: 'scale_up' != 'no_change'\n3 ticks, 1 differences" in capsys.readouterr().out
    assert main(["planner", "replay", *files, "--expected", write(tmp_path / "short.jsonl", *lines[:1])]) == 1


def test_what_was_printed_before_a_bad_line_stays(files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = write(tmp_path / "cut.jsonl", idle(1, 1), idle(1, 1), '{"workers": {"prefill": "x"}}', idle(1, 1))
    assert main(["planner", "replay", files[0], cut]) == 4
    printed = capsys.readouterr()
    assert len(printed.out.splitlines()) == 2
    assert all(json.loads(text) for text in printed.out.splitlines())
    assert printed.err.startswith(f"error: {cut}:3: workers.prefill: Expected")


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (["replay", "missing.json", "missing.jsonl"], 4, "missing.json: No such file"),
        (["replay"], 2, "give CONFIG and TRACE"),
        (["replay", "missing.json"], 2, "give CONFIG and TRACE"),
        (["replay", "--vectors", "missing.jsonl"], 4, "missing.jsonl: No such file"),
        (["explain", "missing.json", "missing.jsonl", "--tick", "0"], 4, "missing.json: No such file"),
    ],
)
def test_files_and_arguments_that_there_are_not(arguments: list[str], code: int, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["planner", *arguments]) == code
    assert f"error: {problem}" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--set", "min_endpoint"], ["--set", "=3"], ["--rtol", "x"], ["--rtol", "2"]])
def test_arguments_that_cannot_be_read(files: tuple[str, str], arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["planner", "replay", *files, *arguments])
    assert ended.value.code == 2


def test_recorded_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right = {
        "fn": "proportional_clamp_single",
        "in": {"desired": 7, "engine_gpu": 2, "max_gpus": -1, "min_endpoint": 3, "min_gpus": 16},
        "out": 8,
    }
    wrong = {**right, "out": 7}
    file = write(tmp_path / "v.jsonl", right, wrong, {"fn": "other", "in": {}, "out": 1})
    assert main(["planner", "replay", "--vectors", file]) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines() == [
        f"{file}:1: proportional_clamp_single: ok",
        f"{file}:2: proportional_clamp_single: differs: out: 7 != 8",
        f"{file}:3: other: unknown: no such function here",
    ]
    assert printed.err == "1 ok, 1 differs, 0 skipped, 1 unknown\n"
    assert main(["planner", "replay", "--vectors", write(tmp_path / "w.jsonl", right)]) == 0
    for bad in ({"fn": "regression"}, {**right, "in": {"desired": 1}}, {**right, "in": 3}, "{"):
        assert main(["planner", "replay", "--vectors", write(tmp_path / "x.jsonl", bad)]) == 4


def test_notes_of_the_configuration_are_told(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["planner", "replay", *files, "--set", "max_gpu_bugdet=1"]) == 0
    assert capsys.readouterr().err == "note: max_gpu_bugdet is ignored: there is no such key; is max_gpu_budget meant?\n"


def test_engines_are_as_the_case_says() -> None:
    case = parse_case(case_text({}, capabilities={"decode": {**ENGINE, "gpu_cost_per_replica": 4, "unheard_of": 1}}), {})
    assert case.capabilities.prefill is None
    assert case.capabilities.decode is not None
    assert case.capabilities.decode.gpu_cost == 4


def test_explain_tells_one_tick(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["planner", "explain", *files, "--tick", "0"]) == 0
    first = capsys.readouterr().out
    assert first.startswith("tick 0 at 5 s, mode disagg, target throughput\n")
    assert "prefill: 1 ready -> 2\n" in first
    assert main(["planner", "explain", *files, "--tick", "-3"]) == 0
    assert capsys.readouterr().out == first
    for missing in ("3", "-4"):
        assert main(["planner", "explain", *files, "--tick", missing]) == 4
        assert f"there is no tick {missing}" in capsys.readouterr().err


def test_heavy_packages_are_not_imported() -> None:
    """Whatever the predictor, a decision needs none of them but Prophet, and that only when a fit is run."""
    program = (
        "import sys, cli.planner, controllers.planner.predict.traffic; "
        "print(*sorted({'scipy', 'pandas', 'statsmodels', 'pmdarima', 'prophet', 'grpc', 'ortools', 'aiohttp'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])  # noqa: S603
    assert done.stdout.strip() == ""
