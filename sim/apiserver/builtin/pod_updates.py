"""What may change of a pod after its creation."""

from typing import Any, Final

from api.fielderrors import FieldError, forbidden, invalid
from sim.apiserver.builtin.failures import forbidden_change
from sim.apiserver.builtin.parts import items, part
from sim.apiserver.builtin.pod_diff import spec_diff
from sim.apiserver.objects import Object

__all__ = ("ephemeral_errors", "resize_errors", "spec_update_errors")

_REFUSED: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)
_REFUSED_RESIZE: Final = "only cpu and memory resources are mutable\n"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_LISTS: Final = ("containers", "initContainers")


def spec_update_errors(spec: Object, old: Object) -> list[FieldError]:
    """Of a write of the pod itself, in the order of the server."""
    for key, what in (("containers", "containers"), ("initContainers", "init containers")):
        if len(items(spec, key)) != len(items(old, key)):
            return [forbidden(f"spec.{key}", f"pod updates may not add or remove {what}")]
    out = _deadline(spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    out += _added_tolerations(items(spec, "tolerations"), items(old, "tolerations"))
    out += _removed_gates(items(spec, "schedulingGates"), items(old, "schedulingGates"))
    allowed = {**spec}
    for key in _LISTS:
        if key in spec:
            allowed[key] = [{**c, "image": o.get("image")} for c, o in zip(spec[key], old[key], strict=True)]
    for key in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        _restore(allowed, old, key)
    if old.get("schedulingGates"):
        out += _narrowed(allowed, old)
    if old.get("terminationGracePeriodSeconds", 0) < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        _restore(allowed, old, "terminationGracePeriodSeconds")
    if allowed != old:
        out.append(forbidden_change("spec", _REFUSED + spec_diff(old, allowed)))
    return out


def ephemeral_errors(spec: Object, old: Object) -> list[FieldError]:
    """Of a write of ephemeralcontainers: they may only be added."""
    new = {c.get("name"): c for c in items(spec, "ephemeralContainers")}
    out: list[FieldError] = []
    for container in items(old, "ephemeralContainers"):
        name = container.get("name")
        if name not in new:
            out.append(forbidden_change("spec.ephemeralContainers", f'existing ephemeral containers "{name}" may not be removed\n'))
        elif new[name] != container:
            out.append(forbidden_change("spec.ephemeralContainers", f'existing ephemeral containers "{name}" may not be changed\n'))
    return out


def resize_errors(spec: Object, old: Object) -> list[FieldError]:
    """Of a write of resize: cpu and memory of containers."""
    allowed = {**spec}
    for key in _LISTS:
        if len(items(spec, key)) != len(items(old, key)):
            return [forbidden("spec", "containers may not be added or removed on resize")]
        if key in spec:
            allowed[key] = [_with_old_amounts(c, o) for c, o in zip(spec[key], old[key], strict=True)]
    return [] if allowed == old else [forbidden_change("spec", _REFUSED_RESIZE + spec_diff(old, allowed))]


def _with_old_amounts(container: Object, old: Object) -> Object:
    resources: Object = {**container["resources"]}
    was: Object = old["resources"]
    for key in ("limits", "requests"):
        amounts = {k: v for k, v in part(resources, key).items() if k not in ("cpu", "memory")}
        amounts |= {k: v for k, v in part(was, key).items() if k in ("cpu", "memory")}
        if amounts:
            resources[key] = amounts
        else:
            resources.pop(key, None)
    return {**container, "resources": resources}


def _restore(spec: Object, old: Object, key: str) -> None:
    if key in old:
        spec[key] = old[key]
    else:
        spec.pop(key, None)


def _deadline(new: int | None, old: int | None) -> list[FieldError]:
    if old is not None and new is None:
        return [invalid("spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value")]
    if new is not None and old is not None and new > old:
        return [invalid("spec.activeDeadlineSeconds", new, "must be less than or equal to previous value")]
    return []


def _added_tolerations(new: list[Object], old: list[Object]) -> list[FieldError]:
    """Tolerations may be added, and change their seconds."""
    bare = [_without_seconds(t) for t in new]
    if all(_without_seconds(t) in bare for t in old):
        return []
    return [forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")]


def _without_seconds(toleration: Object) -> Object:
    return {k: v for k, v in toleration.items() if k != "tolerationSeconds"}


def _removed_gates(new: list[Object], old: list[Object]) -> list[FieldError]:
    had = {g.get("name") for g in old}
    return [
        forbidden(f"spec.schedulingGates[{i}].name", f"only deletion is allowed, but found new scheduling gate '{g.get('name')}'")
        for i, g in enumerate(new)
        if g.get("name") not in had
    ]


def _narrowed(spec: Object, old: Object) -> list[FieldError]:
    """While a pod is gated, its node selector and required node affinity may become stricter. Puts the old ones back into `spec`."""
    out: list[FieldError] = []
    new_labels: Object = spec.get("nodeSelector") or {}
    if any(new_labels.get(k) != v for k, v in part(old, "nodeSelector").items()):
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        out.append(invalid("spec.nodeSelector", new_labels or None, text))
    _restore(spec, old, "nodeSelector")
    was: Any = part(old, "affinity").get("nodeAffinity")
    now: Any = part(spec, "affinity").get("nodeAffinity")
    if now != was:
        out += _affinity_changes(part(now, _REQUIRED), part(was, _REQUIRED))
        _restore_affinity(spec, old, now)
    return out


def _restore_affinity(spec: Object, old: Object, now: Any) -> None:
    """Puts back nodeAffinity, and nothing else of affinity."""
    affinity: Object = {**part(spec, "affinity")}
    affinity.pop("nodeAffinity", None)
    rest = {k: v for k, v in part(old, "affinity").items() if k != "nodeAffinity"}
    if affinity == rest or (not affinity and now is not None and "affinity" not in old):
        _restore(spec, old, "affinity")
    elif was := part(old, "affinity").get("nodeAffinity"):
        spec["affinity"] = {**affinity, "nodeAffinity": was}
    else:
        spec["affinity"] = affinity


def _affinity_changes(new: Object, old: Object) -> list[FieldError]:
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    terms, old_terms = items(new, "nodeSelectorTerms"), items(old, "nodeSelectorTerms")
    if not old_terms:
        return []
    if len(terms) != len(old_terms):
        return [invalid(path, [_shown(t) for t in terms] or None, "no additions/deletions to non-empty NodeSelectorTerms list are allowed")]
    text = "only additions are allowed (no mutations or deletions)"
    return [
        invalid(f"{path}[{i}]", _shown(term), text)
        for i, (term, was) in enumerate(zip(terms, old_terms, strict=True))
        if not _extends(term, was)
    ]


def _extends(term: Object, was: Object) -> bool:
    """Whether a term begins with all requirements of the old one."""
    return all(items(term, key)[: len(items(was, key))] == items(was, key) for key in ("matchExpressions", "matchFields"))


def _shown(term: Object) -> Object:
    def requirement(wanted: Object) -> Object:
        return {"Key": wanted.get("key", ""), "Operator": wanted.get("operator", ""), "Values": wanted.get("values")}

    return {
        go: [requirement(r) for r in term[key]] if term.get(key) else None
        for go, key in (("MatchExpressions", "matchExpressions"), ("MatchFields", "matchFields"))
    }
