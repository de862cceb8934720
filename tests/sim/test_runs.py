"""Whole runs: the same seed gives the same event log in every process; seeds with faults keep every promise; what is reported when not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from api.operatorconfig import OperatorConfiguration
from cli.main import main
from cli.programs import PROGRAMS
from sim.cluster.cluster import Setup
from sim.faults.plan import DEFAULT_KINDS, Fault, FaultKind, parse
from sim.sweeps.runner import drawn, run_scenario
from sim.sweeps.scenarios import SCENARIOS

pytestmark = pytest.mark.timeout(120)

ROOT = Path(__file__).parents[2]
CONFIG = str(ROOT / "manifests" / "config" / "controllers.yaml")


@pytest.mark.parametrize("scenario", ["scale-up", "churn"])
def test_the_event_log_depends_on_the_seed_only(scenario: str) -> None:
    arguments = [sys.executable, "-m", "cli.main", "sim", "--config", CONFIG, "--scenario", scenario, "--seed", "5", "--log"]
    logs = set[bytes]()
    for hash_seed in ("0", "1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(arguments, cwd=ROOT, env=environment, capture_output=True, check=True)  # noqa: S603 - ourselves
        *log, verdict = done.stdout.splitlines()
        assert b"every promise was kept" in verdict
        logs.add(b"\n".join(log))
    assert len(logs) == 1
    assert len(logs.pop().splitlines()) > 300


def test_another_seed_is_another_run(config: OperatorConfiguration) -> None:
    setup = Setup(PROGRAMS, config)
    one, same, other = (run_scenario(setup, "create", seed) for seed in (1, 1, 2))
    assert one.violation is None
    assert one.digest == same.digest != other.digest


def test_a_calm_run_reaches_the_same_state(config: OperatorConfiguration) -> None:
    setup = Setup(PROGRAMS, config)
    assert run_scenario(setup, "scale-up", None).state == run_scenario(setup, "scale-up", 9).state != {}


@pytest.mark.parametrize("seed", range(6))
def test_seeds_with_faults(config: OperatorConfiguration, seed: int) -> None:
    setup, name = Setup(PROGRAMS, config, replicas=2), list(SCENARIOS)[seed]
    faults = drawn(setup, SCENARIOS[name], seed, DEFAULT_KINDS, 8)
    assert run_scenario(setup, name, seed, faults).violation is None


def test_faults_leave_traces_in_the_log(config: OperatorConfiguration) -> None:
    fault = Fault(FaultKind.CRASH, "controllers-0", nth=3, seconds=1.0)
    result = run_scenario(Setup(PROGRAMS, config), "create", 1, [fault])
    assert result.violation is None
    assert any(line.endswith(f"fault: {fault}") for line in result.log)


def test_a_broken_promise_is_reported(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("controllers.runtime.requests._delete_options", lambda op: {"kind": "DeleteOptions", "apiVersion": "v1"})
    code = main(["sim", "--config", CONFIG, "--scenario", "scale-down", "--seed", "3", "--count", "3"])
    output = capsys.readouterr().out
    assert code == 1
    assert "seed 3, scenario scale-down: DeleteWithPrecondition at" in output
    assert "with 0 of 3 faults" in output
    assert f"grovekeeper sim --config {CONFIG} --scenario scale-down --seed 3 --replicas 2 --rest 600 --faults none" in output


@pytest.mark.parametrize(
    "arguments", [["--faults", "bad"], ["--fault", "crash nth=x"], ["--fault", "crash process=nobody"], ["--config", "missing.yaml"]]
)
def test_arguments_that_cannot_be_used(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", *arguments]) == 4
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(
    "arguments", [["--seeds", "0"], ["--seed", "-1"], ["--count", "x"], ["--replicas", "0"], ["--every", "0"], ["--rest", "nan"]]
)
def test_numbers_out_of_bounds(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["sim", *arguments])
    assert ended.value.code == 2
    assert "is not a " in capsys.readouterr().err


def test_without_arguments_about_it_the_shipped_configuration_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sim", "--scenario", "create", "--faults", "none"]) == 0
    assert "every promise was kept" in capsys.readouterr().out


def test_a_sweep_over_a_run_that_fails_without_faults_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("controllers.runtime.requests._delete_options", lambda op: {"kind": "DeleteOptions", "apiVersion": "v1"})
    assert main(["sim", "--scenario", "scale-down", "--sweep", "crashes"]) == 1
    assert capsys.readouterr().err.startswith("error: scale-down fails without faults: DeleteWithPrecondition at")


def test_a_lost_request_is_a_disturbance_until_it_is_given_up(config: OperatorConfiguration) -> None:
    """Six requests in a row are lost, each for as long as its growing deadline: meanwhile a gang stays half-bound."""
    faults = [
        parse("freeze process=controllers-1 resource=pods nth=6 seconds=11.625"),
        parse("timeout-before process=scheduler-0 nth=10 count=6"),
    ]
    assert run_scenario(Setup(PROGRAMS, config, replicas=2), "scale-up", 25, faults, rest_s=10.0).violation is None
