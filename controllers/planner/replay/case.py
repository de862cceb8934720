"""Files of a replay: a case (configuration, capabilities, plugins) and a trace (what is read at each tick)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite
from typing import Annotated, Any, TypeAlias, cast

import msgspec

from controllers.planner.config.load import ConfigError, parse_config
from controllers.planner.config.model import PlannerConfig
from controllers.planner.fpm import Fpm
from controllers.planner.replay.decode import CaseError, convert, read_object
from controllers.planner.replay.script import ScriptedPlugin
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

__all__ = ("Case", "Line", "parse_case", "parse_line")


SMALLEST, LARGEST = -(2**63), 2**63 - 1
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=SMALLEST, le=LARGEST)]
"""Within 64 bits: products and sums of larger ones may not be printable."""


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

    active: Count | None = None
    expected: Count | None = None
    scaling: bool = False


class Workers(msgspec.Struct, frozen=True):
    """A number is a role's ready replicas; those that there should be are as many if `stable`, else not known."""

    prefill: Count | Replicas | None = None
    decode: Count | Replicas | None = None
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
    """Metrics by role; null: none. `agg` are aggregated engines, which else stand under decode."""

    prefill: tuple[Fpm, ...] | None = None
    decode: tuple[Fpm, ...] | None = None
    agg: tuple[Fpm, ...] | None = None

    def observations(self) -> FpmObservations:
        """Of several messages of a rank the last one counts."""
        lists = self.prefill, self.agg if self.decode is None else self.decode
        prefill, decode = (None if fpms is None else {(fpm.worker_id, fpm.dp_rank): fpm for fpm in fpms} for fpms in lists)
        return FpmObservations(prefill, decode)


class CapabilityPair(msgspec.Struct, frozen=True):
    prefill: dict[str, Any] | None = None
    decode: dict[str, Any] | None = None

    def capabilities(self) -> Capabilities:
        """CaseError for a value that is none. Unknown names are left out."""
        return Capabilities(_role_capabilities("prefill", self.prefill), _role_capabilities("decode", self.decode))


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


def parse_case(text: str | bytes, changes: Mapping[str, Any]) -> Case:
    """A case, or a planner configuration alone. `changes` are put over the configuration. CaseError.

    A case without `pending_aware_scale_down` has it off, because recordings know nothing of it. The environment has no say in a replay.
    """
    raw = read_object(text)
    case = convert(raw if "planner_config" in raw else {"planner_config": raw}, _CaseFile)
    settings = {"pending_aware_scale_down": False, **case.planner_config, **changes}
    try:
        config = parse_config(settings, {})
    except ConfigError as error:
        raise CaseError(f"planner_config: {error}") from None
    _check_plugins(case.scripted_plugins)
    if not isfinite(case.start_s):
        raise CaseError(f"start_s: must be a finite number, is {case.start_s}")
    interval_s = float(config.throughput_adjustment_interval_seconds)
    return Case(
        config.with_notes(_unknown_keys(raw)),
        case.capabilities.capabilities(),
        _bootstrap(case.bootstrap_fpms, config),
        [window for traffic in case.warmup_traffic if (window := traffic.observation(interval_s)) is not None],
        case.scripted_plugins,
        case.start_s,
    )


def _unknown_keys(raw: Mapping[str, Any]) -> list[str]:
    """Warnings. Of a configuration alone nothing, because the configuration tells of its own."""
    if "planner_config" not in raw:
        return []
    unknown = [key for key in raw if key not in (*_CaseFile.__struct_fields__, "note")]
    names = [name.name for name in fields(RoleCapabilities)]
    for role, given in raw.get("capabilities", {}).items():
        if role not in CapabilityPair.__struct_fields__:
            unknown.append(f"capabilities.{role}")
        elif given is not None:
            unknown.extend(f"capabilities.{role}.{key}" for key in given if key not in names)
    return [f"{key:.80} is ignored: a case has no such key" for key in unknown]


def parse_line(text: str | bytes) -> Line:
    """A line of a trace. CaseError names the field."""
    line = convert(read_object(text), _LineFile)
    return Line(line, None if line.capabilities is None else line.capabilities.capabilities())


def _bootstrap(lists: FpmLists, config: PlannerConfig) -> Mapping[Role, Sequence[Fpm]]:
    if config.mode == "agg":
        return {"decode": lists.decode or () if lists.agg is None else lists.agg}
    return {role: (lists.prefill if role == "prefill" else lists.decode) or () for role in config.roles}


def _check_plugins(plugins: Sequence[ScriptedPlugin]) -> None:
    for number, plugin in enumerate(plugins):
        if (problem := plugin.problem()) is not None:
            raise CaseError(f"scripted_plugins[{number}].{problem}")


def _role_capabilities(role: Role, given: Mapping[str, Any] | None) -> RoleCapabilities | None:
    if given is None:
        return None
    known: dict[str, Any] = {name.name: given[name.name] for name in fields(RoleCapabilities) if name.name in given}
    for name, value in known.items():
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value or value % 1:
            raise CaseError(f"capabilities.{role}.{name}: must be a whole number or null, is {value!r:.40}")
        if not SMALLEST <= value <= LARGEST:
            raise CaseError(f"capabilities.{role}.{name}: must be a whole number of 64 bits, is {value!r:.40}")
        known[name] = int(value)
    return RoleCapabilities(**known)
