"""The life of a simulated pod: how often one looks does not change it, time only goes forward, and what is over stays over."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sim.kubelet.behaviour import ALWAYS, Behaviour
from sim.kubelet.containers import NEVER, State
from sim.kubelet.distributions import Delay
from sim.kubelet.lifecycle import PodRun, advance, is_over, next_at, phase_of, start
from sim.kubelet.status import patch_of, status_of
from tests.unit.sim.kubeletworld import container, pod, stamp

DELAYS = st.integers(0, 40).map(lambda s: Delay("constant", (s / 4,)))
COUNTS = st.sampled_from([0, 1, 3, ALWAYS])
BEHAVIOURS = st.builds(
    Behaviour,
    pull=DELAYS,
    start=DELAYS,
    ready=DELAYS,
    init=DELAYS,
    run_time=st.none() | st.integers(1, 3000).map(lambda s: Delay("constant", (s / 4,))),
    exit_code=st.none() | st.integers(0, 3),
    crashes=COUNTS,
    pull_errors=COUNTS,
    container=st.sampled_from(["", "i", "m"]),
).map(lambda b: b if b.run_time is not None or not b.crashes else Behaviour(run_time=Delay("constant", (1.0,)), crashes=b.crashes))
PODS = st.builds(
    lambda init, restart: pod(init=tuple(init), main=(container("m"), container("n")), restart=restart),
    st.sampled_from([[], [container("i")], [container("s", restartPolicy="Always"), container("i")], [container("i"), container("j")]]),
    st.sampled_from(["Always", "OnFailure", "Never"]),
)


def begun(found: dict[str, Any], behaviour: Behaviour) -> PodRun:
    return start(found, behaviour, 0, ip="10.0.1.1", host_ip="172.16.0.1", now=0.0)


@given(PODS, BEHAVIOURS, st.integers(0, 4000).map(lambda s: s / 2))
def test_looking_at_every_moment_or_once_makes_no_difference(found: dict[str, Any], behaviour: Behaviour, until: float) -> None:
    often, once = begun(found, behaviour), begun(found, behaviour)
    now, looks = 0.0, 0
    while True:
        advance(often, now, is_released=False)
        following = next_at(often, now)
        assert following > now
        looks += 1
        assert looks < 20_000
        if following > until:
            break
        now = following
    advance(often, until, is_released=False)
    advance(once, until, is_released=False)
    assert (often.init, often.main) == (once.init, once.main)
    assert phase_of(often) == phase_of(once)


@given(PODS, BEHAVIOURS, st.lists(st.integers(0, 400), min_size=1, max_size=20))
def test_patches_add_up_to_the_status_and_an_unchanged_status_sends_nothing(
    found: dict[str, Any], behaviour: Behaviour, steps: list[int]
) -> None:
    run, now = begun(found, behaviour), 0.0
    fields: dict[str, Any] = {}
    conditions: dict[str, Any] = {}
    was_over = False
    for step in steps:
        now += step / 4
        advance(run, now, is_released=False)
        status = status_of(run, found, now, stamp)
        patch = patch_of(run, status)
        run.sent = status
        assert patch_of(run, status_of(run, found, now, stamp)) == {}
        conditions |= {c["type"]: c for c in patch.pop("conditions", ())}
        fields |= patch
        assert fields == {k: v for k, v in status.items() if k != "conditions"}
        assert list(conditions.values()) == status["conditions"]
        assert not was_over or is_over(run)
        was_over = is_over(run)
        is_ready = all(c.is_ready(now) for c in run.main) and phase_of(run) == "Running"
        assert conditions["ContainersReady"]["status"] == "True" or not is_ready
        if was_over:
            assert next_at(run, now) == NEVER
            assert phase_of(run) == "Failed" or all(c.state is State.ENDED for c in run.main)
