"""One pod through time: order of containers, delays, crashes, pulls, endings, and the status that a kubelet would write."""

from typing import Any

import pytest

from sim.kubelet.behaviour import Behaviour
from sim.kubelet.distributions import Delay
from sim.kubelet.lifecycle import NEVER, end, next_at, stop
from tests.unit.sim.kubeletworld import Life, container, pod, stamp

SLOW = Behaviour(pull=Delay("constant", (2.0,)), start=Delay("constant", (1.0,)), ready=Delay("constant", (5.0,)))


def test_without_delays_a_pod_is_ready_at_once() -> None:
    life = Life(pod())
    assert life.patch() == {
        "phase": "Running",
        "startTime": stamp(0),
        "hostIP": "172.16.0.1",
        "hostIPs": [{"ip": "172.16.0.1"}],
        "podIP": "10.0.1.1",
        "podIPs": [{"ip": "10.0.1.1"}],
        "observedGeneration": 1,
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": stamp(0)}
            for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
        ],
        "containerStatuses": [
            {
                "name": "main",
                "image": "main:1",
                "imageID": "simulated@main:1",
                "containerID": "simulated://uid-p/main/0",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": stamp(0)}},
                "lastState": {},
            }
        ],
    }
    assert next_at(life.run, 0) == NEVER


def test_a_slow_pod_goes_through_all_phases() -> None:
    life = Life(pod(), SLOW)
    assert (life.phase, life.shown(), life.condition("Ready")) == ("Pending", "ContainerCreating", ("False", "ContainersNotReady"))
    life.to(3)
    assert (life.phase, life.shown(), life.condition("Ready")) == ("Running", "running", ("False", "ContainersNotReady"))
    assert life.status["containerStatuses"][0]["state"] == {"running": {"startedAt": stamp(3)}}
    life.to(8)
    assert life.condition("Ready") == ("True", "")
    assert next(c for c in life.status["conditions"] if c["type"] == "Ready")["lastTransitionTime"] == stamp(8)
    assert next(c for c in life.status["conditions"] if c["type"] == "Initialized")["lastTransitionTime"] == stamp(0)


def test_only_what_changed_is_sent() -> None:
    life = Life(pod(), SLOW)
    life.patch()
    assert life.patch() == {}
    life.to(3)
    assert set(life.patch()) == {"phase", "containerStatuses"}
    life.to(8)
    sent = life.patch()
    assert set(sent) == {"conditions", "containerStatuses"}
    assert {c["type"] for c in sent["conditions"]} == {"Ready", "ContainersReady"}


def test_init_containers_run_one_after_another() -> None:
    life = Life(pod(init=(container("a"), container("b"))), Behaviour(init=Delay("constant", (2.0,))))
    assert (life.shown("a"), life.shown("b"), life.shown()) == ("running", "PodInitializing", "PodInitializing")
    assert life.condition("Initialized") == ("False", "ContainersNotInitialized")
    life.to(2)
    assert (life.shown("a"), life.shown("b"), life.shown()) == ("Completed", "running", "PodInitializing")
    assert life.status["conditions"][1]["message"] == "containers with incomplete status: [b]"
    life.to(4)
    assert (life.phase, life.shown("b"), life.shown()) == ("Running", "Completed", "running")
    assert life.condition("Initialized") == ("True", "")
    assert [c["ready"] for c in life.status["initContainerStatuses"]] == [True, True]


def test_a_sidecar_holds_the_next_one_only_until_it_runs() -> None:
    life = Life(pod(init=(container("side", restartPolicy="Always"), container("b"))), SLOW)
    assert (life.shown("side"), life.shown("b")) == ("PodInitializing", "PodInitializing")
    life.to(3)
    assert (life.shown("side"), life.shown("b")) == ("running", "PodInitializing")
    life.to(6)
    assert (life.shown("side"), life.shown("b"), life.shown()) == ("running", "Completed", "PodInitializing")
    life.to(9)
    assert (life.phase, life.condition("Ready")[0]) == ("Running", "False")
    life.to(14)
    assert life.condition("Ready")[0] == "True"


def test_the_waiter_waits_for_its_parents_and_never_again() -> None:
    life = Life(pod(init=(container("user"), container("grove-initc", args=["--podcliques=a:1"]))))
    assert (life.phase, life.shown("user"), life.shown("grove-initc")) == ("Pending", "Completed", "running")
    life.to(100)
    assert life.phase == "Pending"
    life.is_released = True
    life.to(101)
    assert (life.phase, life.shown("grove-initc"), life.condition("Ready")[0]) == ("Running", "Completed", "True")
    life.is_released = False
    life.to(200)
    assert life.phase == "Running"


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        (0, "running"),
        (1, "running 1"),
        (2, "CrashLoopBackOff 1"),
        (11.9, "CrashLoopBackOff 1"),
        (12, "running 2"),
        (13, "CrashLoopBackOff 2"),
        (33, "running 3"),
        (34, "CrashLoopBackOff 3"),
        (74, "running 4"),
        (75, "CrashLoopBackOff 4"),
    ],
)
def test_a_crash_loop_backs_off_from_ten_seconds_on(at: float, shown: str) -> None:
    life = Life(pod(annotations={"crash": "always", "exit-code": "137"}))
    life.to(at)
    assert life.shown() == shown
    assert life.phase == "Running"


def test_a_crash_is_told_with_code_pause_and_last_state() -> None:
    life = Life(pod(annotations={"crash": "always", "exit-code": "137"}))
    life.to(2)
    (found,) = life.status["containerStatuses"]
    assert found["state"]["waiting"]["message"] == "back-off 10s restarting failed container=main pod=p_ns(uid-p)"
    assert found["lastState"]["terminated"] | {"containerID": ""} == {
        "exitCode": 137,
        "reason": "Error",
        "startedAt": stamp(1),
        "finishedAt": stamp(2),
        "containerID": "",
    }
    assert life.condition("Ready") == ("False", "ContainersNotReady")


def test_the_longest_pause_is_five_minutes_and_a_long_run_is_forgiven() -> None:
    life = Life(pod(annotations={"crash": "always"}))
    life.to(3000)
    assert life.run.main[0].backoff_s == 300
    patient = Life(pod(annotations={"crash": "always", "run-time": "11m"}))
    patient.to(5 * 660)
    assert patient.shown() == "running 5"


def test_a_container_that_crashes_three_times_stays_up_then() -> None:
    life = Life(pod(annotations={"crash": "3"}))
    life.to(1000)
    assert (life.shown(), life.condition("Ready")[0]) == ("running 3", "True")


@pytest.mark.parametrize(
    ("at", "shown"), [(0, "ErrImagePull"), (1, "ImagePullBackOff"), (9.9, "ImagePullBackOff"), (10, "ErrImagePull"), (30, "running")]
)
def test_pulls_that_fail_back_off(at: float, shown: str) -> None:
    life = Life(pod(annotations={"pull-error": "2"}))
    life.to(at)
    assert life.shown() == shown
    assert life.phase == ("Running" if shown == "running" else "Pending")


@pytest.mark.parametrize(
    ("restart", "annotations", "phase", "shown"),
    [
        ("Never", {"run-time": "5s"}, "Succeeded", "Completed"),
        ("OnFailure", {"run-time": "5s"}, "Succeeded", "Completed"),
        ("Always", {"run-time": "5s"}, "Running", "running 1"),
        ("Never", {"run-time": "5s", "exit-code": "3"}, "Failed", "Error"),
        ("OnFailure", {"run-time": "5s", "exit-code": "3"}, "Running", "running 1"),
        ("Never", {"crash": "1"}, "Failed", "Error"),
    ],
)
def test_how_a_pod_ends(restart: str, annotations: dict[str, str], phase: str, shown: str) -> None:
    life = Life(pod(restart=restart, annotations=annotations))
    life.to(6)
    assert (life.phase, life.shown()) == (phase, shown)
    if phase != "Running":
        assert life.condition("Ready") == ("False", "PodCompleted" if phase == "Succeeded" else "PodFailed")
        assert next_at(life.run, 6) == NEVER


def test_sidecars_end_with_their_pod() -> None:
    life = Life(pod(restart="Never", init=(container("side", restartPolicy="Always"),), annotations={"run-time": "5s"}))
    life.to(6)
    assert (life.phase, life.shown("side")) == ("Succeeded", "Completed")


@pytest.mark.parametrize(("restart", "phase"), [("Never", "Failed"), ("Always", "Pending")])
def test_an_init_container_that_fails(restart: str, phase: str) -> None:
    life = Life(pod(restart=restart, init=(container("a"),), annotations={"container": "a", "crash": "always"}))
    life.to(5)
    assert life.phase == phase
    assert life.shown("a") == ("Error" if restart == "Never" else "CrashLoopBackOff 1")
    assert life.condition("Initialized")[0] == "False"


def test_an_annotation_that_cannot_be_used_keeps_the_pod_from_starting() -> None:
    life = Life(pod(annotations={"start-delay": "soon"}))
    (found,) = life.status["containerStatuses"]
    assert found["state"]["waiting"]["reason"] == "CreateContainerConfigError"
    assert "sim.grovekeeper.io/start-delay" in found["state"]["waiting"]["message"]
    life.to(100)
    assert life.phase == "Pending"


def test_readiness_gates_hold_ready_back() -> None:
    gated = pod(readinessGates=[{"conditionType": "example.com/open"}])
    life = Life(gated)
    assert (life.condition("ContainersReady")[0], life.condition("Ready")) == ("True", ("False", "ReadinessGatesNotReady"))
    gated["status"]["conditions"] = [{"type": "example.com/open", "status": "True"}]
    life.to(1)
    assert life.condition("Ready")[0] == "True"


def test_delays_depend_on_the_seed_and_the_pod_only() -> None:
    delays = Behaviour(start=Delay("exponential", (10.0,)), ready=Delay("lognormal", (5.0, 0.5)))

    def ready_at(name: str, seed: int) -> float:
        life = Life(pod(name=name), delays, seed)
        life.to(1000)
        return life.run.main[0].ready_at

    assert ready_at("a", 1) == ready_at("a", 1)
    assert len({ready_at("a", 1), ready_at("b", 1), ready_at("a", 2)}) == 3


@pytest.mark.parametrize(("stop_delay", "grace_s", "ends_at"), [("0s", 30, 10), ("4s", 30, 14), ("1h", 30, 40), ("4s", 0, 10)])
def test_stopping_takes_its_time_up_to_the_grace_period(stop_delay: str, grace_s: float, ends_at: float) -> None:
    life = Life(pod(annotations={"stop-delay": stop_delay}))
    life.to(10)
    assert stop(life.run, 10, grace_s) == ends_at


def test_a_shorter_grace_period_shortens_a_stop_and_a_later_look_does_not_lengthen_it() -> None:
    life = Life(pod(annotations={"stop-delay": "1m"}))
    assert stop(life.run, 0, 100) == 60
    assert stop(life.run, 5, 95) == 60
    assert stop(life.run, 10, 2) == 12


def test_what_has_not_started_stops_at_once() -> None:
    life = Life(pod(annotations={"stop-delay": "1m"}), SLOW)
    assert stop(life.run, 0, 100) == 0


def test_a_pod_that_has_stopped_shows_how() -> None:
    life = Life(pod())
    end(life.run, 5)
    life.to(5)
    found: Any = life.status["containerStatuses"][0]["state"]["terminated"]
    assert (life.phase, found["exitCode"]) == ("Failed", 143)
