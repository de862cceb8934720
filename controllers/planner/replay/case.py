"""Files of a replay: a case (configuration, capabilities, plugins) and a trace (what is read at each tick)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf, isnan, nan
from typing import Any, Literal, TypeAlias, TypeVar, cast

import msgspec

from controllers.planner.config.load import ConfigError, parse_config
from controllers.planner.config.model import PlannerConfig
from controllers.planner.config.parts import HoldPolicy, PluginStage
from controllers.planner.fpm import Fpm
from controllers.planner.merge import Kind, Target, TargetType
from controllers.planner.plugins.records import Prediction, PredictResponse, StageRequest, StageResponse
from controllers.planner.types import (
    Capabilities,
    FpmObservations,
    Role,
    RoleCapabilities,
    ScheduledTick,
    TickInput,
    TrafficObservation,
    WorkerCounts,
)

__all__ = ("Case", "CaseError", "Line", "Scripted", "ScriptedPlugin", "parse_case", "parse_line")

T = TypeVar("T")
_NUMBERS = {"nan": nan, "inf": inf, "+inf": inf, "-inf": -inf, "infinity": inf, "-infinity": -inf}


class CaseError(ValueError):
    """A file of a replay that cannot be used. The text names what is wrong; the caller knows file and line."""


class Traffic(msgspec.Struct, frozen=True):
    """Of one window. Null in one of the first three: there was nothing to read."""

    num_req: float | None = None
    isl: float | None = None
    osl: float | None = None
    kv_hit_rate: float | None = None
    accept_length: float | None = None
    duration_s: float | None = None

    def observation(self, duration_s: float) -> TrafficObservation | None:
        """duration_s: unless the window says itself how long it was."""
        if self.num_req is None or self.isl is None or self.osl is None:
            return None
        length = duration_s if self.duration_s is None else self.duration_s
        return TrafficObservation(length, self.num_req, self.isl, self.osl, self.kv_hit_rate, self.accept_length)


class Replicas(msgspec.Struct, frozen=True):
    """What is known of the replicas of one role."""

    active: int | None = None
    expected: int | None = None
    scaling: bool = False


class Workers(msgspec.Struct, frozen=True):
    """A number is a role's ready replicas; those that there should be are as many if `stable`, else not known."""

    prefill: int | Replicas | None = None
    decode: int | Replicas | None = None
    stable: bool = True

    def counts(self, roles: Sequence[Role]) -> WorkerCounts:
        """Of these roles only."""
        prefill, decode = (
            self._replicas(given) if role in roles else Replicas() for role, given in (("prefill", self.prefill), ("decode", self.decode))
        )
        return WorkerCounts(prefill.active, decode.active, prefill.expected, decode.expected, prefill.scaling, decode.scaling)

    def _replicas(self, given: int | Replicas | None) -> Replicas:
        if isinstance(given, Replicas):
            return given
        return Replicas(given, given if self.stable else None, given is not None and not self.stable)


class FpmLists(msgspec.Struct, frozen=True):
    """Metrics by role; null: none. `agg` is for the bootstrap of aggregated engines only."""

    prefill: tuple[Fpm, ...] | None = None
    decode: tuple[Fpm, ...] | None = None
    agg: tuple[Fpm, ...] | None = None

    def observations(self) -> FpmObservations:
        """Of several messages of a rank the last one counts."""
        prefill, decode = (
            None if fpms is None else {(fpm.worker_id, fpm.dp_rank): fpm for fpm in fpms} for fpms in (self.prefill, self.decode)
        )
        return FpmObservations(prefill, decode)


class CapabilityPair(msgspec.Struct, frozen=True):
    prefill: dict[str, Any] | None = None
    decode: dict[str, Any] | None = None

    def capabilities(self) -> Capabilities:
        """CaseError for a value that is none. Unknown names are left out."""
        return Capabilities(_role_capabilities("prefill", self.prefill), _role_capabilities("decode", self.decode))


class ScriptedTarget(msgspec.Struct, frozen=True):
    component: str
    replicas: int | None = None
    type: TargetType = TargetType.SET


class Scripted(msgspec.Struct, frozen=True):
    """One answer of a plugin."""

    kind: Literal["accept", "reject", "override", "empty", "raise", "predict"] = "accept"
    reason: str = ""
    final: bool = False
    targets: tuple[ScriptedTarget, ...] = ()
    num_req: float | None = None
    isl: float | None = None
    osl: float | None = None
    kv_hit_rate: float | None = None
    accept_length: float | None = None


class ScriptedPlugin(msgspec.Struct, frozen=True):
    """Answers in turn, one per call; the last one repeats. Without any it accepts."""

    plugin_id: str
    plugin_type: PluginStage
    priority: int
    execution_interval_seconds: float = 0.0
    hold_policy: str | int = "ACCEPT_WHEN_IDLE"
    needs: tuple[str, ...] = ()
    requires_produced_fields: tuple[str, ...] = ()
    observation_window_seconds: float = 0.0
    script: tuple[Scripted, ...] = ()

    @property
    def holds(self) -> HoldPolicy:
        """ValueError."""
        return HoldPolicy.parse(self.hold_policy)


class ScriptedInstance:
    """The object that is called."""

    def __init__(self, plugin: ScriptedPlugin) -> None:
        self._plugin = plugin
        self._calls = 0

    def predict(self, request: StageRequest) -> PredictResponse:
        answer = self._next()
        if answer.kind != "predict":
            return PredictResponse() if answer.kind == "empty" else PredictResponse(None, answer.reason, answer.final)
        source = self._plugin.plugin_id
        prediction = Prediction(answer.num_req, answer.isl, answer.osl, source, answer.kv_hit_rate, answer.accept_length)
        return PredictResponse(prediction, answer.reason, answer.final)

    def propose(self, request: StageRequest) -> StageResponse:
        answer = self._next()
        if answer.kind in ("empty", "predict"):
            return StageResponse(None)
        targets = tuple(Target(target.component, target.replicas, target.type) for target in answer.targets)
        return StageResponse(Kind(answer.kind), targets if answer.kind == "override" else (), answer.reason, answer.final)

    reconcile = propose
    constrain = propose

    def _next(self) -> Scripted:
        script = self._plugin.script
        answer = script[min(self._calls, len(script) - 1)] if script else Scripted()
        self._calls += 1
        if answer.kind == "raise":
            raise RuntimeError(answer.reason or "scripted failure")
        return answer


class _CaseFile(msgspec.Struct, frozen=True):
    planner_config: dict[str, Any] = {}
    capabilities: CapabilityPair = CapabilityPair()
    bootstrap_fpms: FpmLists = FpmLists()
    warmup_traffic: tuple[Traffic, ...] = ()
    scripted_plugins: tuple[ScriptedPlugin, ...] = ()
    start_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Case:
    """What a replay starts from."""

    config: PlannerConfig
    capabilities: Capabilities
    bootstrap: Mapping[Role, Sequence[Fpm]]
    history: Sequence[TrafficObservation] = ()
    plugins: Sequence[ScriptedPlugin] = ()
    start_s: float = 0.0


class _LineFile(msgspec.Struct, frozen=True):
    workers: Workers | None = None
    traffic: Traffic | None = None
    fpm: FpmLists | None = None
    capabilities: CapabilityPair | None = None
    set_config: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """What one tick may read, and what changes before it."""

    content: _LineFile
    capabilities: Capabilities | None

    @property
    def set_config(self) -> Mapping[str, Any]:
        return self.content.set_config or {}

    def given(self, tick: ScheduledTick, now_s: float, config: PlannerConfig) -> TickInput:
        """Only what the tick asks for."""
        content = self.content
        return TickInput(
            now_s,
            self._traffic(tick, config) if tick.need_traffic_metrics and content.traffic is not None else None,
            None if content.workers is None else content.workers.counts(config.roles),
            content.fpm.observations() if tick.need_worker_fpm and content.fpm is not None else None,
        )

    def _traffic(self, tick: ScheduledTick, config: PlannerConfig) -> TrafficObservation | None:
        """Where no window is needed, only the cache hit rate and the accept length are read."""
        traffic = cast("Traffic", self.content.traffic)
        if tick.use_full_traffic_metrics:
            return traffic.observation(float(config.throughput_adjustment_interval_seconds))
        return TrafficObservation(tick.traffic_metrics_duration_s, 0.0, 0.0, 0.0, traffic.kv_hit_rate, traffic.accept_length)


def parse_case(text: str, changes: Mapping[str, Any]) -> Case:
    """A case, or a planner configuration alone. `changes` are put over the configuration. CaseError.

    A case without `pending_aware_scale_down` has it off, because recordings know nothing of it. The environment has no say in a replay.
    """
    content = _json(text)
    if not isinstance(content, dict):
        raise CaseError("must be a JSON object")
    raw = cast("dict[str, Any]", content)
    case = _converted(raw if "planner_config" in raw else {"planner_config": raw}, _CaseFile)
    settings = {"pending_aware_scale_down": False, **case.planner_config, **changes}
    try:
        config = parse_config(settings, {})
    except ConfigError as error:
        raise CaseError(f"planner_config: {error}") from None
    _check_plugins(case.scripted_plugins)
    interval_s = float(config.throughput_adjustment_interval_seconds)
    return Case(
        config,
        case.capabilities.capabilities(),
        _bootstrap(case.bootstrap_fpms, config),
        [window for traffic in case.warmup_traffic if (window := traffic.observation(interval_s)) is not None],
        case.scripted_plugins,
        case.start_s,
    )


def parse_line(text: str) -> Line:
    """A line of a trace. CaseError names the field."""
    content = _json(text)
    if not isinstance(content, dict):
        raise CaseError("must be a JSON object")
    line = _converted(cast("dict[str, Any]", content), _LineFile)
    return Line(line, None if line.capabilities is None else line.capabilities.capabilities())


def _bootstrap(lists: FpmLists, config: PlannerConfig) -> Mapping[Role, Sequence[Fpm]]:
    if config.mode == "agg":
        return {"decode": lists.decode or () if lists.agg is None else lists.agg}
    return {role: (lists.prefill if role == "prefill" else lists.decode) or () for role in config.roles}


def _check_plugins(plugins: Sequence[ScriptedPlugin]) -> None:
    for number, plugin in enumerate(plugins):
        try:
            _ = plugin.holds
        except ValueError as error:
            raise CaseError(f"scripted_plugins[{number}].hold_policy: {error}") from None


def _role_capabilities(role: Role, given: Mapping[str, Any] | None) -> RoleCapabilities | None:
    if given is None:
        return None
    known = {name.name: given[name.name] for name in fields(RoleCapabilities) if name.name in given}
    for name, value in known.items():
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise CaseError(f"capabilities.{role}.{name}: must be a whole number or null, is {value!r:.40}")
    return RoleCapabilities(**known)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CaseError(f"no JSON: {error}") from None


def _converted(raw: dict[str, Any], kind: type[T]) -> T:
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        try:
            return msgspec.convert(_with_numbers(raw), kind)
        except msgspec.ValidationError:
            problem, _, path = str(error).partition(" - at `$")
            raise CaseError(f"{path.strip('.`')}: {problem}" if path else problem) from None


def _with_numbers(value: object) -> object:
    """With the names of numbers that JSON has not, as numbers."""
    if isinstance(value, dict):
        return {key: _with_numbers(item) for key, item in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [_with_numbers(item) for item in cast("list[object]", value)]
    return _NUMBERS.get(value.lower(), value) if isinstance(value, str) else value
