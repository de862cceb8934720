"""What the scheduler says about a gang: the gang's status, the PodScheduled condition of pods that wait, and events on transitions.

Pure. Everything is compared with what the API shows, so nothing is written or announced twice (scheduler.md §8, reliability.md S9).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from api.conditions import Wanted, merged
from api.core import Node, Pod
from api.plan import ApplyStatus, Emit, Manifest, Op, PatchStatus, Ref, Why
from api.podgang import PodGang
from api.reasons import Reason
from api.timestamps import rfc3339

__all__ = ("GangState", "minimums_met", "report")

SCHEDULED = "Scheduled"
MAX_MESSAGE = 1024
ORDINARY_WAITS = (Reason.WAITING_FOR_PODS, Reason.WAITING_FOR_GATES, Reason.WAITING_FOR_BASE_GANG, Reason.GATED, Reason.QUEUED_BEHIND)
"""Stations of every gang's life, shown in its status; nobody has to act, so no event announces them."""


@dataclass(frozen=True, slots=True)
class GangState:
    """What is known of a gang after a round.

    pods: its live pods. why: what it waits for, None when every pod has a node. score: placement score of its last plan, None if unknown.
    levels: node label keys of its topology, broad to narrow. nodes: by name, at least those of bound pods. foreign: uids of pods that
    another scheduler speaks for.
    """

    podgang: PodGang
    pods: Sequence[Pod]
    why: Why | None
    score: float | None
    levels: tuple[str, ...]
    nodes: Mapping[str, Node]
    foreign: frozenset[str] = frozenset()


def report(state: GangState, now: datetime) -> tuple[Op, ...]:
    """Status writes and events that are due."""
    if state.podgang.status is None or not state.podgang.status.phase:
        return ()  # the PodGang controller writes first: phase is required
    status = _status(state, now)
    ops: list[Op] = []
    if status != _ours(state.podgang):
        ops.append(ApplyStatus(Ref.of(state.podgang), status))
        ops += _events(state, status)
    if state.why is not None:
        ours = (pod for pod in state.pods if pod.metadata.uid not in state.foreign)
        ops += [_unschedulable(pod, state.why, now) for pod in ours if _silent(pod, state.why)]
    return tuple(ops)


def minimums_met(state: GangState) -> bool:
    """Every pod group has as many listed pods on nodes as it needs."""
    bound = {pod.metadata.name for pod in state.pods if pod.spec.node_name}
    return all(sum(r.name in bound for r in g.pod_references) >= g.min_replicas for g in state.podgang.spec.podgroups)


def _status(state: GangState, now: datetime) -> Manifest:
    bound = [pod for pod in state.pods if pod.spec.node_name]
    if minimums_met(state):
        wanted = Wanted(SCHEDULED, "True", "GangBound", f"{len(bound)} of {len(state.pods)} pods have a node")
    elif state.why is not None:
        wanted = Wanted(SCHEDULED, "False", state.why.reason, state.why.message[:MAX_MESSAGE])
    else:
        wanted = Wanted(SCHEDULED, "False", "Binding", f"{len(bound)} of {len(state.pods)} pods have a node")
    live = state.podgang.status
    before = [c.to_manifest() for c in (live.conditions or ())] if live else []
    status: Manifest = {"pods": len(state.pods), "bound": len(bound), "conditions": merged(before, [wanted], now)}
    if domain := _domain(bound, state.levels, state.nodes):
        status["domain"] = domain
    score = state.score if state.score is not None else live.placement_score if live else None
    if score is not None and bound:
        status["placementScore"] = round(score, 4)
    if state.why is not None:
        status["blocked"] = str(state.why.reason)
        same = live is not None and live.blocked == status["blocked"] and live.blocked_since is not None
        status["blockedSince"] = rfc3339(live.blocked_since if same and live and live.blocked_since else now)
    return status


def _domain(bound: Iterable[Pod], levels: tuple[str, ...], nodes: Mapping[str, Node]) -> str:
    """The narrowest domain that holds all bound pods, by its label value; "" when there is none."""
    labels = [nodes[p.spec.node_name].metadata.labels if p.spec.node_name in nodes else {} for p in bound]
    found = ""
    for key in levels:
        values = {of_node.get(key, "") for of_node in labels}
        if len(values) != 1 or "" in values:
            break
        (found,) = values
    return found


def _ours(podgang: PodGang) -> Manifest | None:
    """The part of the live status that the scheduler writes."""
    status = podgang.status
    if status is None:
        return None
    mine = status.to_manifest()
    kept = {k: mine[k] for k in ("pods", "bound", "domain", "placementScore", "blocked", "blockedSince") if k in mine}
    return {**kept, "conditions": [c.to_manifest() for c in status.conditions or () if c.type == SCHEDULED]}


def _events(state: GangState, status: Manifest) -> tuple[Op, ...]:
    """One event when the gang becomes placed, one when the reason for which it waits changes."""
    before = {c.type: c for c in (state.podgang.status.conditions or ())} if state.podgang.status else {}
    was = before.get(SCHEDULED)
    (now,) = [c for c in status["conditions"] if c["type"] == SCHEDULED]
    if now["status"] == "True" and (was is None or was.status != "True"):
        where = f" in {status['domain']}" if "domain" in status else ""
        return (Emit(Ref.of(state.podgang), "GangBound", f"{status['bound']} of {status['pods']} pods have a node{where}"),)
    waits = state.why is None or state.why.reason in ORDINARY_WAITS
    if state.why is not None and not waits and now["status"] != "True" and (was is None or was.reason != now["reason"]):
        return (Emit(Ref.of(state.podgang), str(state.why.reason), state.why.message[:MAX_MESSAGE], "Warning"),)
    return ()


def _silent(pod: Pod, why: Why) -> bool:
    """True for a pod that waits for a node, has no gate, and does not yet say why."""
    if pod.spec.node_name or pod.gates or pod.metadata.deleting or pod.finished:
        return False
    said = pod.condition("PodScheduled")
    return said is None or (said.status, said.reason, said.message) != ("False", "Unschedulable", why.message[:MAX_MESSAGE])


def _unschedulable(pod: Pod, why: Why, now: datetime) -> PatchStatus:
    """PodScheduled=False with reason Unschedulable, which cluster autoscalers act on."""
    wanted = Wanted("PodScheduled", "False", "Unschedulable", why.message[:MAX_MESSAGE])
    said = pod.condition("PodScheduled")
    since = said.last_transition_time if said is not None and said.status == "False" else None
    (condition,) = merged((), [wanted], since or now)
    return PatchStatus(Ref.of(pod), {"conditions": [condition]})
