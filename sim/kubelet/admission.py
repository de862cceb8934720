"""What a kubelet checks before it runs a pod: that the node has what is asked for, and that the pod may be there.

Written apart from the scheduler on purpose: it catches the scheduler's mistakes.
"""

from collections.abc import Mapping

from api.quantity import QuantityError, nano
from sim.apiserver.objects import Object, mapping, maps
from sim.kubelet.lifecycle import Refusal

__all__ = ("Amounts", "allocatable_of", "refusal_of", "requests_of", "tolerates")

Amounts = Mapping[str, int]
"""Nano units by resource name."""

PODS = "pods"
GIGA = 10**9


def allocatable_of(node: Object) -> Amounts:
    """What pods on the node may use together."""
    return {name: _nano(quantity) for name, quantity in mapping(node, "status", "allocatable").items()}


def requests_of(pod: Object) -> dict[str, int]:
    """What a pod takes while it is not over: the larger of its app containers with sidecars and of each init container with the sidecars
    before it, and its overhead."""
    spec = pod["spec"]
    running: dict[str, int] = {}
    highest: dict[str, int] = {}
    for container in maps(spec, "initContainers"):
        own = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(running, own)
            _raise(highest, running)
        else:
            _raise(highest, _sum(running, own))
    for container in spec["containers"]:
        _add(running, _requests(container))
    _raise(highest, running)
    _add(highest, {name: _nano(quantity) for name, quantity in mapping(spec, "overhead").items()})
    highest[PODS] = GIGA
    return highest


def refusal_of(pod: Object, node: Object, wanted: Amounts, used: Amounts, allocatable: Amounts) -> Refusal | None:
    """Why the node does not run the pod; None: it does."""
    if not _may_be_on(pod["spec"], node):
        return Refusal("NodeAffinity", "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector")
    taint = _untolerated(pod["spec"], node)
    if taint:
        return Refusal("TaintToleration", f"Pod was rejected: Predicate TaintToleration failed: node(s) had untolerated taint {{{taint}}}")
    for name, amount in wanted.items():
        capacity = allocatable.get(name, 0)
        if amount > 0 and used.get(name, 0) + amount > capacity:
            scale = 10**6 if name == "cpu" else GIGA
            figures = f"requested: {amount // scale}, used: {used.get(name, 0) // scale}, capacity: {capacity // scale}"
            return Refusal(f"OutOf{name}", f"Pod was rejected: Node didn't have enough resource: {name}, {figures}")
    return None


def _nano(quantity: str) -> int:
    try:
        return nano(quantity)
    except QuantityError:
        return 0  # the API server refuses such quantities


def _requests(container: Object) -> dict[str, int]:
    asked = {**mapping(container, "resources", "limits"), **mapping(container, "resources", "requests")}
    return {name: _nano(quantity) for name, quantity in asked.items()}


def _add(into: dict[str, int], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        into[name] = into.get(name, 0) + amount


def _sum(first: Amounts, second: Amounts) -> dict[str, int]:
    out = dict(first)
    _add(out, second)
    return out


def _raise(into: dict[str, int], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        into[name] = max(into.get(name, 0), amount)


def _may_be_on(spec: Object, node: Object) -> bool:
    labels = mapping(node, "metadata", "labels")
    if any(labels.get(key) != value for key, value in mapping(spec, "nodeSelector").items()):
        return False
    affinity = mapping(spec, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    terms = maps(affinity, "nodeSelectorTerms")
    fields = {"metadata.name": node["metadata"]["name"]}
    return not affinity or any(_matches(term, labels, fields) for term in terms)


def _matches(term: Object, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    by_label, by_field = maps(term, "matchExpressions"), maps(term, "matchFields")
    if not by_label and not by_field:
        return False
    return all(_holds(e, labels) for e in by_label) and all(_holds(e, fields) for e in by_field)


def _holds(expression: Object, values: Mapping[str, str]) -> bool:
    value = values.get(expression["key"])
    wanted: list[str] = expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in wanted
        case "NotIn":
            return value not in wanted
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            try:
                have, bound = int(value or ""), int(wanted[0])
            except (ValueError, IndexError):
                return False
            return have > bound if operator == "Gt" else have < bound
        case _:
            return False


def _untolerated(spec: Object, node: Object) -> str:
    """The first NoExecute taint that the pod does not tolerate, as `key: value`."""
    tolerations = maps(spec, "tolerations")
    for taint in maps(node, "spec", "taints"):
        if taint.get("effect") == "NoExecute" and not any(tolerates(t, taint) for t in tolerations):
            return f"{taint['key']}: {taint.get('value', '')}"
    return ""


def tolerates(toleration: Object, taint: Object) -> bool:
    """Whether a toleration covers a taint."""
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    key, operator = toleration.get("key") or "", toleration.get("operator") or "Equal"
    if operator == "Exists":
        return key in ("", taint["key"])
    return key == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or "")
