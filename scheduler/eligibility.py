"""Which nodes a pod may be on: node selector, required node affinity, taints, cordon, readiness; and label selectors.

Follows kube-scheduler: a cordoned node counts as tainted node.kubernetes.io/unschedulable, and one whose Ready condition is not True
as tainted node.kubernetes.io/not-ready, so pods that tolerate those taints may use such nodes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from api.core import LabelSelector, Node, NodeSelectorTerm, Pod, SelectorRequirement, Taint, Toleration

__all__ = ("Cause", "NodeFacts", "Rules", "exclusion", "facts_of", "rules_of", "selects")

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
NOT_READY = Taint(key="node.kubernetes.io/not-ready", effect="NoSchedule")
BLOCKING = ("NoSchedule", "NoExecute")


class Cause(IntEnum):
    """Why a node is excluded for a pod. NONE: it is not."""

    NONE = 0
    ABSENT = 1
    NOT_READY = 2
    CORDONED = 3
    TAINT = 4
    SELECTOR = 5
    AFFINITY = 6


@dataclass(frozen=True, slots=True)
class Rules:
    """A pod's rules about nodes. `affinity`: any of the terms has to hold; None when there is no rule."""

    selector: tuple[tuple[str, str], ...] = ()
    affinity: tuple[NodeSelectorTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What rules look at. `blocking`: taints that keep pods away, with the virtual ones of a cordoned or unready node."""

    name: str
    labels: Mapping[str, str]
    blocking: tuple[Taint, ...] = ()


def rules_of(pod: Pod) -> Rules:
    """The rules of a pod."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return Rules(
        selector=tuple(sorted(pod.spec.node_selector.items())),
        affinity=None if required is None else required.node_selector_terms,
        tolerations=pod.spec.tolerations,
    )


def facts_of(node: Node) -> NodeFacts:
    """The facts of a node. A node that has not reported readiness yet counts as ready; its taints tell otherwise if need be."""
    taints = [t for t in node.spec.taints if t.effect in BLOCKING]
    if node.spec.unschedulable:
        taints.append(UNSCHEDULABLE)
    if any(c.type == "Ready" and c.status != "True" for c in node.status.conditions):
        taints.append(NOT_READY)
    return NodeFacts(node.metadata.name, node.metadata.labels, tuple(taints))


def exclusion(rules: Rules, facts: NodeFacts) -> Cause:
    """Why a pod with these rules may not be on that node, or NONE."""
    for taint in facts.blocking:
        if not any(_tolerates(t, taint) for t in rules.tolerations):
            return _taint_cause(taint)
    if any(facts.labels.get(key) != value for key, value in rules.selector):
        return Cause.SELECTOR
    if rules.affinity is not None and not any(_term_holds(t, facts) for t in rules.affinity):
        return Cause.AFFINITY
    return Cause.NONE


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """True when a label selector matches; an empty one matches everything."""
    pairs = all(labels.get(key) == value for key, value in selector.match_labels.items())
    return pairs and all(_holds(e, labels) for e in selector.match_expressions)


def _taint_cause(taint: Taint) -> Cause:
    if taint.key == UNSCHEDULABLE.key:
        return Cause.CORDONED
    return Cause.NOT_READY if taint.key in (NOT_READY.key, "node.kubernetes.io/unreachable") else Cause.TAINT


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.value == taint.value


def _term_holds(term: NodeSelectorTerm, facts: NodeFacts) -> bool:
    """A term without any requirement matches no node."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": facts.name}
    return _all_hold(term.match_expressions, facts.labels) and _all_hold(term.match_fields, fields)


def _all_hold(requirements: Iterable[SelectorRequirement], labels: Mapping[str, str]) -> bool:
    return all(_holds(r, labels) for r in requirements)


def _holds(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    """One expression. An unknown operator holds for nothing, so that a rule we cannot read never lets a pod in."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
        case _:
            return False


def _compares(requirement: SelectorRequirement, value: str | None) -> bool:
    try:
        have, want = int(value or ""), int(requirement.values[0])
    except (ValueError, IndexError):
        return False
    return have > want if requirement.operator == "Gt" else have < want
