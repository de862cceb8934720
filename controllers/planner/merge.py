"""Merges what plugins of one stage answered into one proposal. Source: planner.md §6."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, NamedTuple, TypeAlias

__all__ = ("MERGED", "Clamp", "Kind", "MergeOutcome", "PluginResult", "Target", "TargetType", "merge")

MERGED = "merged"


class Kind(StrEnum):
    """What a plugin answered: no opinion, targets, or that nothing may be scaled."""

    ACCEPT = "accept"
    OVERRIDE = "override"
    REJECT = "reject"


class TargetType(StrEnum):
    """How a target is meant: exactly, as a floor, as a ceiling."""

    SET = "SET"
    AT_LEAST = "AT_LEAST"
    AT_MOST = "AT_MOST"


@dataclass(frozen=True, slots=True)
class Target:
    """Replicas of a component; None is no opinion. Components are free strings; only prefill and decode are ever scaled."""

    component: str
    replicas: int | None
    type: TargetType = TargetType.SET


@dataclass(frozen=True, slots=True)
class PluginResult:
    """One answer. The smaller priority is the stronger; `final` ends the discussion."""

    plugin_id: str
    priority: int
    kind: Kind
    targets: Sequence[Target] = ()
    reason: str = ""
    final: bool = False


class Clamp(NamedTuple):
    """A plugin whose bound moved a recommendation."""

    component: str
    bound: Literal["floor", "ceiling"]
    plugin_id: str


@dataclass(frozen=True, slots=True)
class MergeOutcome:
    """The proposal, or with `short_circuited` none and why. `targets` follow the first mention, then the baseline.

    source: MERGED or the plugin whose final answer was taken whole (also `used_final_from`); "" when short-circuited.
    set_dropped: components of SET targets that were not allowed, one entry each. `clamped` is for counters only.
    """

    targets: tuple[Target, ...] = ()
    source: str = ""
    short_circuited: bool = False
    short_circuit_reason: str = ""
    used_final_from: str = ""
    set_dropped: tuple[str, ...] = ()
    clamped: tuple[Clamp, ...] = ()

    def replicas(self) -> dict[str, int]:
        """Replicas by component without those of no opinion; a later target of the same component wins."""
        return {target.component: target.replicas for target in self.targets if target.replicas is not None}


Claim: TypeAlias = tuple[PluginResult, Target, int]


def merge(results: Sequence[PluginResult], baseline: Mapping[str, int], *, set_allowed: bool) -> MergeOutcome:
    """The first reject wins, then the strongest final override, else per component max(floor, min(ceiling, recommendation)).

    baseline: replicas where no plugin sets them. `set_allowed` false (CONSTRAIN): only floors and ceilings count.
    """
    for result in results:
        if result.kind is Kind.REJECT:
            return MergeOutcome(short_circuited=True, short_circuit_reason=f"{result.plugin_id}: {result.reason}")
    overrides = [result for result in results if result.kind is Kind.OVERRIDE]
    # min keeps the first of equals.
    final = min((result for result in overrides if result.final), key=_priority, default=None)
    if final is not None:
        return _final(final, baseline, set_allowed=set_allowed)
    return _merged(overrides, baseline, set_allowed=set_allowed)


def _priority(result: PluginResult) -> int:
    return result.priority


def _final(result: PluginResult, baseline: Mapping[str, int], *, set_allowed: bool) -> MergeOutcome:
    kept, dropped = _allowed(result, set_allowed=set_allowed)
    mentioned = {target.component for target in kept}
    rest = [Target(component, replicas) for component, replicas in baseline.items() if component not in mentioned]
    return MergeOutcome((*kept, *rest), source=result.plugin_id, used_final_from=result.plugin_id, set_dropped=tuple(dropped))


def _allowed(result: PluginResult, *, set_allowed: bool) -> tuple[list[Target], list[str]]:
    """Targets that count, and components of the SET ones that do not."""
    if set_allowed:
        return list(result.targets), []
    kept = [target for target in result.targets if target.type is not TargetType.SET]
    return kept, [target.component for target in result.targets if target.type is TargetType.SET]


def _merged(overrides: Sequence[PluginResult], baseline: Mapping[str, int], *, set_allowed: bool) -> MergeOutcome:
    claims: dict[str, list[Claim]] = {}
    dropped: list[str] = []
    for result in overrides:
        # An unknown count may name a SET too, and is no reason to say that one was dropped.
        for target in result.targets:
            if target.replicas is None:
                continue
            if target.type is TargetType.SET and not set_allowed:
                dropped.append(target.component)
            else:
                claims.setdefault(target.component, []).append((result, target, target.replicas))
    targets: list[Target] = []
    clamped: list[Clamp] = []
    for component in (*claims, *(name for name in baseline if name not in claims)):
        replicas, clamp = _resolve(component, claims.get(component, ()), baseline.get(component, 0))
        targets.append(Target(component, replicas))
        if clamp is not None:
            clamped.append(clamp)
    return MergeOutcome(tuple(targets), source=MERGED, set_dropped=tuple(dropped), clamped=tuple(clamped))


def _resolve(component: str, claims: Sequence[Claim], baseline: int) -> tuple[int, Clamp | None]:
    """Replicas of one component, and whose bound moved them from what was recommended."""
    sets = [claim for claim in claims if claim[1].type is TargetType.SET]
    floors = [claim for claim in claims if claim[1].type is TargetType.AT_LEAST]
    ceilings = [claim for claim in claims if claim[1].type is TargetType.AT_MOST]
    recommended = min(sets, key=lambda claim: claim[0].priority)[2] if sets else baseline
    floor = max(floors, key=_count, default=None)
    ceiling = min(ceilings, key=_count, default=None)
    replicas = recommended if ceiling is None else min(recommended, ceiling[2])
    replicas = max(0 if floor is None else floor[2], replicas)
    if ceiling is not None and replicas < recommended:
        return replicas, Clamp(component, "ceiling", ceiling[0].plugin_id)
    if floor is not None and replicas > recommended:
        return replicas, Clamp(component, "floor", floor[0].plugin_id)
    return replicas, None


def _count(claim: Claim) -> int:
    return claim[2]
