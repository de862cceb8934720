"""Validation of what decides where a pod may run: affinity, tolerations, gates, spread constraints."""

from collections.abc import Iterator
from typing import Any, Final

from api.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required
from sim.apiserver.builtin.names import bad_labels, bad_value, qualified
from sim.apiserver.objects import Object

__all__ = ("affinity_errors", "gate_errors", "label_selector_errors", "node_term_errors", "spread_errors", "toleration_errors")

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_LISTING: Final = ("In", "NotIn")
_BARE: Final = ("Exists", "DoesNotExist")
_COMPARING: Final = ("Gt", "Lt")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_TERM = "must have at least one node selector term"


def toleration_errors(path: str, tolerations: list[Object]) -> Iterator[FieldError]:
    for i, toleration in enumerate(tolerations):
        at = f"{path}[{i}]"
        key, operator = toleration.get("key"), toleration.get("operator") or ""
        effect, value = toleration.get("effect") or "", toleration.get("value") or ""
        if key:
            for text in qualified(key):
                yield invalid(f"{at}.key", key, text)
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{at}.operator", operator, text)
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            yield invalid(f"{at}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
        if operator in ("Equal", ""):
            yield from bad_value(f"{at}.operator", value)
        elif operator == "Exists":
            if value:
                yield invalid(f"{at}.operator", value, "value must be empty when `operator` is 'Exists'")
        else:
            yield not_supported(f"{at}.operator", operator, ("Equal", "Exists"))
        if effect and effect not in _EFFECTS:
            yield not_supported(f"{at}.effect", effect, _EFFECTS)


def gate_errors(path: str, gates: list[Object]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, gate in enumerate(gates):
        name = gate.get("name") or ""
        for text in qualified(name):
            yield invalid(f"{path}[{i}]", name, text)
        if name in seen:
            yield duplicate(f"{path}[{i}]", name)
        seen.add(name)


def spread_errors(path: str, constraints: list[Object]) -> Iterator[FieldError]:
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(constraints):
        at = f"{path}[{i}]"
        skew, key, when = constraint.get("maxSkew") or 0, constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""
        if skew <= 0:
            yield invalid(f"{at}.maxSkew", skew, "must be greater than zero")
        if not key:
            yield required(f"{at}.topologyKey", "can not be empty")
        else:
            for text in qualified(key):
                yield invalid(f"{at}.topologyKey", key, text)
        if when not in ("DoNotSchedule", "ScheduleAnyway"):
            yield not_supported(f"{at}.whenUnsatisfiable", when, ("DoNotSchedule", "ScheduleAnyway"))
        if (key, when) in seen:
            yield duplicate(f"{at}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {when}}}")
        seen.add((key, when))
        if domains := constraint.get("minDomains"):
            if domains <= 0:
                yield invalid(f"{at}.minDomains", domains, "must be greater than zero")
            if when != "DoNotSchedule":
                text = "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
                yield invalid(f"{at}.minDomains", domains, text)
        if selector := constraint.get("labelSelector"):
            yield from label_selector_errors(f"{at}.labelSelector", selector)


def affinity_errors(path: str, affinity: Object) -> Iterator[FieldError]:
    if node := affinity.get("nodeAffinity"):
        at = f"{path}.nodeAffinity"
        if (needed := node.get(_REQUIRED)) is not None:
            terms: list[Object] = needed.get("nodeSelectorTerms") or []
            if not terms:
                yield required(f"{at}.{_REQUIRED}.nodeSelectorTerms", _NO_TERM)
            for i, term in enumerate(terms):
                yield from node_term_errors(f"{at}.{_REQUIRED}.nodeSelectorTerms[{i}]", term)
        for i, wish in enumerate(node.get(_PREFERRED) or ()):
            yield from _weight(f"{at}.{_PREFERRED}[{i}]", wish)
            yield from node_term_errors(f"{at}.{_PREFERRED}[{i}].preference", wish.get("preference") or {})
    for kind in ("podAffinity", "podAntiAffinity"):
        if pods := affinity.get(kind):
            for i, term in enumerate(pods.get(_REQUIRED) or ()):
                yield from _pod_term(f"{path}.{kind}.{_REQUIRED}[{i}]", term)
            for i, wish in enumerate(pods.get(_PREFERRED) or ()):
                yield from _weight(f"{path}.{kind}.{_PREFERRED}[{i}]", wish)
                yield from _pod_term(f"{path}.{kind}.{_PREFERRED}[{i}].podAffinityTerm", wish.get("podAffinityTerm") or {})


def node_term_errors(path: str, term: Object) -> Iterator[FieldError]:
    """A node selector term."""
    for i, wanted in enumerate(term.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{i}]"
        operator, values = wanted.get("operator") or "", wanted.get("values") or []
        if operator in _LISTING:
            if not values:
                yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in _BARE:
            if values:
                yield forbidden(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        elif operator in _COMPARING:
            if len(values) != 1:
                yield required(f"{at}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        else:
            yield invalid(f"{at}.operator", operator, "not a valid selector operator")
        for text in qualified(wanted.get("key") or ""):
            yield invalid(f"{at}.key", wanted.get("key") or "", text)


def label_selector_errors(path: str, selector: Object) -> Iterator[FieldError]:
    """A metav1.LabelSelector."""
    if labels := selector.get("matchLabels"):
        yield from bad_labels(f"{path}.matchLabels", labels)
    for i, wanted in enumerate(selector.get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{i}]"
        operator: str = wanted.get("operator") or ""
        values: list[str] = wanted.get("values") or []
        if operator in _LISTING:
            if not values:
                yield required(f"{at}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in _BARE:
            if values:
                yield forbidden(f"{at}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        else:
            yield invalid(f"{at}.operator", operator, "not a valid selector operator")
        for text in qualified(wanted.get("key") or ""):
            yield invalid(f"{at}.key", wanted.get("key") or "", text)
        for j, value in enumerate(values):
            yield from bad_value(f"{at}.values[{j}]", value)


def _pod_term(path: str, term: Object) -> Iterator[FieldError]:
    for key in ("labelSelector", "namespaceSelector"):
        if selector := term.get(key):
            yield from label_selector_errors(f"{path}.{key}", selector)
    topology = term.get("topologyKey") or ""
    if not topology:
        yield required(f"{path}.topologyKey", "can not be empty")
    for text in qualified(topology):
        yield invalid(f"{path}.topologyKey", topology, text)


def _weight(path: str, wish: Object) -> Iterator[FieldError]:
    weight: Any = wish.get("weight") or 0
    if not 0 < weight <= 100:
        yield invalid(f"{path}.weight", weight, "must be in the range 1-100")
