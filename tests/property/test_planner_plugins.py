"""The breaker as a state machine, and the schedule of plugins against a model of it that only reads the rules."""

import contextlib
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controllers.planner.merge import Kind, PluginResult, TargetType, merge
from controllers.planner.pipeline import Verdict, baseline_of, run_sync
from controllers.planner.plugins.breaker import Breaker, CircuitState
from controllers.planner.plugins.records import ACCEPT, HoldPolicy, PluginStage, PredictResponse, StageResponse
from controllers.planner.plugins.registry import Registration
from controllers.planner.plugins.wire.convert import WireError, decode_response, parse, registration
from controllers.planner.plugins.wire.plugin_pb2 import RegisterRequest
from tests.unit.planner.planner_plugins import EMPTY, REJECT, WORKERS, Scripted, context, override, registry


class BreakerMachine(RuleBasedStateMachine):
    """Model: failures since the last success, and when the circuit opened."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = Breaker()
        self.now = 0.0
        self.row = 0
        self.opened: float | None = None

    @rule(seconds=st.sampled_from((0.0, 0.5, 5.0, 29.5, 30.0, 100.0)))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def succeed(self) -> None:
        self.breaker.succeeded()
        self.row, self.opened = 0, None

    @rule()
    def fail(self) -> None:
        opened = self.breaker.failed(self.now)
        if self.opened is not None and self.now < self.opened + 30:
            assert not opened
            return
        self.row += 1
        assert opened == (self.opened is not None or self.row >= 5)
        if opened:
            self.opened = self.now

    @invariant()
    def says_what_the_model_says(self) -> None:
        if self.opened is None:
            assert self.breaker.state(self.now) is CircuitState.CLOSED
            assert self.row < 5
        else:
            expected = CircuitState.OPEN if self.now < self.opened + 30 else CircuitState.HALF_OPEN
            assert self.breaker.state(self.now) is expected


TestBreaker = pytest.mark.timeout(60)(BreakerMachine.TestCase)
TestBreaker.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)

TYPES = st.sampled_from(TargetType)
TARGETS = st.lists(st.tuples(st.sampled_from(("prefill", "decode", "other")), st.none() | st.integers(-2, 9), TYPES), max_size=3)
OVERRIDES = st.builds(lambda targets, final: override(*targets, final=final), TARGETS, st.booleans())
ANSWERS = st.one_of(st.just(ACCEPT), st.just(EMPTY), st.just(REJECT), st.just(None), OVERRIDES)


@dataclass
class Modelled:
    """A plugin of PROPOSE, and what the rules say of it."""

    plugin_id: str
    priority: int
    interval: int
    holds: bool
    script: list[StageResponse | None]
    anchor: float = 0.0
    held: StageResponse | None = None
    row: int = 0
    opened: float | None = None

    def results(self, now: float) -> tuple[list[PluginResult], list[PluginResult]]:
        """What it answers on a tick, and what is inherited of it."""
        if self.opened is not None and now < self.opened + 30:
            return [], []
        if self.interval and now - self.anchor < self.interval:
            return [], [self.result(self.held, final=False)] if self.held is not None else []
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if answer is None:
            self.row += 1
            if self.row >= 5 or self.opened is not None:
                self.opened, self.held = now, None
            return [], []
        self.row, self.opened, self.anchor = 0, None, now
        if answer.kind is Kind.OVERRIDE and self.holds:
            self.held = answer
        return [] if answer.kind is None else [self.result(answer, final=answer.final)], []

    def result(self, answer: StageResponse, *, final: bool) -> PluginResult:
        assert answer.kind is not None
        return PluginResult(self.plugin_id, self.priority, answer.kind, tuple(answer.targets), answer.reason, final)


MODELS = st.lists(
    st.tuples(st.integers(-1, 3), st.sampled_from((0, 5, 10, 25)), st.booleans(), st.lists(ANSWERS, min_size=1, max_size=6)),
    min_size=1,
    max_size=4,
)


@given(MODELS, st.lists(st.sampled_from((5.0, 6.5, 40.0)), min_size=1, max_size=20))
@settings(max_examples=150, deadline=None)
def test_what_is_merged_follows_from_when_plugins_were_asked(models: list, steps: list[float]) -> None:
    made = registry()
    modelled: list[Modelled] = []
    for number, (priority, interval, holds, script) in enumerate(models):
        modelled.append(Modelled(f"p{number}", priority, interval, holds, list(script)))
        policy = HoldPolicy.HOLD_LAST if holds else HoldPolicy.ACCEPT_WHEN_IDLE
        made.register_internal(f"p{number}", "propose", priority, Scripted(*script), 0.0, interval_s=interval, hold_policy=policy)
    now = 0.0
    for step in steps:
        now += step
        answered = [model.results(now) for model in modelled]
        expected = merge(
            [*(result for due, _ in answered for result in due), *(result for _, held in answered for result in held)],
            baseline_of(WORKERS),
            set_allowed=True,
        )
        outcome = run_sync(context(), made, now)
        if expected.short_circuited:
            assert (outcome.verdict, outcome.reason) == (Verdict.SHORT_CIRCUIT, expected.short_circuit_reason)
        else:
            assert outcome.verdict is Verdict.APPLY
            assert {target.component: target.replicas for target in outcome.targets} == {
                **baseline_of(WORKERS),
                **expected.replicas(),
            }


@given(st.binary(max_size=60), st.sampled_from(("predict", "propose", "reconcile", "constrain")))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_response_or_refused(data: bytes, stage: PluginStage) -> None:
    with contextlib.suppress(WireError):
        assert isinstance(decode_response(stage, data), PredictResponse if stage == "predict" else StageResponse)
    with contextlib.suppress(WireError):
        assert isinstance(registration(parse(RegisterRequest, data)), Registration)


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_the_same_inputs_give_the_same_outcome(data: st.DataObject) -> None:
    script = data.draw(st.lists(ANSWERS, min_size=1, max_size=6))
    times = sorted(data.draw(st.lists(st.integers(0, 200), max_size=8, unique=True)))

    def outcomes() -> list:
        made = registry()
        made.register_internal("p", "propose", 1, Scripted(*script), 0.0, interval_s=10.0, hold_policy=HoldPolicy.HOLD_LAST)
        return [run_sync(context(), made, float(now)) for now in times]

    assert outcomes() == outcomes()
