"""HorizontalPodAutoscalers: kept as autoscaling/v2, served as v1 too."""

import json
from typing import Any, Final

from api.fielderrors import FieldError, forbidden, invalid, not_supported, required
from sim.apiserver.builtin.amounts import canonical
from sim.apiserver.builtin.base import Builtin
from sim.apiserver.builtin.names import path_segment, subdomain_name
from sim.apiserver.builtin.parts import items, part
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context

__all__ = ("AutoscalerStrategy",)

_SOURCES: Final = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_UP: Final = ({"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15})
_DOWN: Final = ({"type": "Percent", "value": 100, "periodSeconds": 15},)
_PREFIX: Final = "autoscaling.alpha.kubernetes.io/"
_LOST: Final = ("metrics", "behavior", "conditions", "current-metrics")
_DEFAULT_CPU: Final = 80


class AutoscalerStrategy(Builtin):
    """HPAs."""

    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        spec: Object = {**(obj.get("spec") or {})}
        obj["spec"] = spec
        spec.setdefault("scaleTargetRef", {"kind": "", "name": ""})
        spec.setdefault("maxReplicas", 0)
        if spec.get("minReplicas") is None:
            spec["minReplicas"] = 1
        spec["metrics"] = [_metric(m) for m in items(spec, "metrics")] or [_cpu(_DEFAULT_CPU)]
        if behavior := spec.get("behavior"):
            up, down = part(behavior, "scaleUp"), part(behavior, "scaleDown")
            spec["behavior"] = {
                "scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max", "policies": [dict(p) for p in _UP], **up},
                "scaleDown": {"selectPolicy": "Max", "policies": [dict(p) for p in _DOWN], **down},
            }
        if (status := obj.get("status")) is not None:
            obj["status"] = _status(status)

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"desiredReplicas": 0, "currentMetrics": None}

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            obj["spec"] = old["spec"]
        else:
            obj["status"] = old["status"]

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        return _errors(obj["spec"])

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        return [] if subresource == "status" else _errors(obj["spec"])

    def convert(self, obj: Object, api_version: str) -> Object:
        if obj.get("apiVersion") == api_version:
            return obj
        return _to_v1(obj) if api_version == "autoscaling/v1" else _to_v2(obj)


def _cpu(percent: int) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}}


def _metric(metric: Object) -> Object:
    """A metric with its quantities in printed form."""
    key = _SOURCES.get(metric.get("type", ""), "")
    source = part(metric, key)
    target = {**part(source, "target")}
    if not source or not target:
        return metric
    for name in ("value", "averageValue"):
        if (quantity := target.get(name)) is not None:
            target[name] = canonical(quantity)
    return {**metric, key: {**source, "target": target}}


def _status(status: Object) -> Object:
    out = {"desiredReplicas": 0, "currentMetrics": None, **status}
    if conditions := items(out, "conditions"):
        out["conditions"] = [_condition(c) for c in conditions]
    return out


def _condition(condition: Object) -> Object:
    """In the order in which v1's annotation prints it."""
    rest = {key: condition[key] for key in ("reason", "message") if key in condition}
    start = {"type": condition.get("type", ""), "status": condition.get("status", "")}
    return {**start, "lastTransitionTime": condition.get("lastTransitionTime"), **rest}


def _errors(spec: Object) -> list[FieldError]:
    out: list[FieldError] = []
    low, high, reference = spec["minReplicas"], spec["maxReplicas"], spec["scaleTargetRef"]
    if low < 1:
        out.append(invalid("spec.minReplicas", low, "must be greater than or equal to 1"))
    if high < 1:
        out.append(required("spec.maxReplicas", "must be set and greater than 0"))
    if high < low:
        out.append(invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`"))
    for key in ("kind", "name"):
        value = reference.get(key) or ""
        if not value:
            out.append(required(f"spec.scaleTargetRef.{key}"))
        else:
            out += [invalid(f"spec.scaleTargetRef.{key}", value, text) for text in path_segment(value)]
    version = reference.get("apiVersion") or ""
    if not version or ("/" not in version and reference.get("kind") != "ReplicationController"):
        out.append(invalid("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group"))
    out += _metric_errors(items(spec, "metrics"), low)
    for direction in ("scaleUp", "scaleDown"):
        out += _rule_errors(f"spec.behavior.{direction}", part(part(spec, "behavior"), direction))
    return out


def _metric_errors(metrics: list[Object], low: int) -> list[FieldError]:
    out: list[FieldError] = []
    for i, metric in enumerate(metrics):
        path, kind = f"spec.metrics[{i}]", metric.get("type") or ""
        if not kind:
            out.append(required(f"{path}.type", "must specify a metric source type"))
            continue
        if kind not in _SOURCES:
            out.append(not_supported(f"{path}.type", kind, tuple(_SOURCES)))
            continue
        key = _SOURCES[kind]
        if not (source := part(metric, key)):
            out.append(required(f"{path}.{key}", "must populate information for the given metric source"))
            continue
        if kind in ("Resource", "ContainerResource"):
            target = part(source, "target")
            if not source.get("name"):
                out.append(required(f"{path}.{key}.name", "must specify a resource name"))
            if target.get("averageUtilization") is None and target.get("averageValue") is None:
                text = "must set either a target raw value or a target utilization"
                out.append(required(f"{path}.{key}.target.averageUtilization", text))
    if low == 0 and not any(m.get("type") in ("Object", "External") for m in metrics):
        out.append(forbidden("spec.metrics", "must specify at least one Object or External metric to support scaling to zero replicas"))
    return out


def _rule_errors(path: str, rules: Object) -> list[FieldError]:
    out: list[FieldError] = []
    for i, policy in enumerate(items(rules, "policies")):
        at = f"{path}.policies[{i}]"
        if policy.get("type") not in ("Pods", "Percent"):
            out.append(not_supported(f"{at}.type", policy.get("type") or "", ("Percent", "Pods")))
        numbers = [(key, policy.get(key) or 0) for key in ("value", "periodSeconds")]
        out += [invalid(f"{at}.{key}", number, "must be greater than zero") for key, number in numbers if number <= 0]
    window = rules.get("stabilizationWindowSeconds") or 0
    if window < 0:
        out.append(invalid(f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero"))
    elif window > 3600:
        out.append(invalid(f"{path}.stabilizationWindowSeconds", window, "must be less than or equal to 3600"))
    return out


def _is_cpu(metric: Object) -> bool:
    resource = part(metric, "resource")
    return resource.get("name") == "cpu" and part(resource, "target").get("averageUtilization") is not None


def _to_v1(obj: Object) -> Object:
    """What v1 cannot say goes into annotations."""
    spec, status, notes = {**part(obj, "spec")}, {**part(obj, "status")}, {**part(obj["metadata"], "annotations")}
    metrics: list[Object] = spec.pop("metrics", None) or []
    cpu = next((m for m in metrics if _is_cpu(m)), None)
    if cpu is not None:
        spec["targetCPUUtilizationPercentage"] = cpu["resource"]["target"]["averageUtilization"]
    others: dict[str, Any] = {
        "metrics": [m for m in metrics if m is not cpu],
        "behavior": spec.pop("behavior", None),
        "conditions": status.pop("conditions", None),
        "current-metrics": status.pop("currentMetrics", None),
    }
    for key, value in others.items():
        if value:
            notes[_PREFIX + key] = json.dumps(_flat(value) if key.endswith("metrics") else value, separators=(",", ":"))
    status.setdefault("currentReplicas", 0)
    for metric in others["current-metrics"] or ():
        resource = part(metric, "resource")
        percent = part(resource, "current").get("averageUtilization")
        if resource.get("name") == "cpu" and percent is not None:
            status["currentCPUUtilizationPercentage"] = percent
    metadata = {**obj["metadata"]}
    if notes:
        metadata["annotations"] = notes
    return {**obj, "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}


def _to_v2(obj: Object) -> Object:
    spec, status, notes = {**part(obj, "spec")}, {**part(obj, "status")}, {**part(obj["metadata"], "annotations")}
    found: dict[str, Any] = {}
    for key in _LOST:
        if text := notes.pop(_PREFIX + key, ""):
            found[key] = json.loads(text)
    status.pop("currentCPUUtilizationPercentage", None)
    metrics = [_deep(m, "target") for m in found.get("metrics", ())]
    if (percent := spec.pop("targetCPUUtilizationPercentage", None)) is not None:
        metrics = [_cpu(percent), *metrics]
    if metrics:
        spec["metrics"] = metrics
    if "behavior" in found:
        spec["behavior"] = found["behavior"]
    if "conditions" in found:
        status["conditions"] = found["conditions"]
    if current := found.get("current-metrics"):
        status["currentMetrics"] = [_deep(m, "current") for m in current]
    metadata = {k: v for k, v in obj["metadata"].items() if k != "annotations"}
    if notes:
        metadata["annotations"] = notes
    out = {**obj, "apiVersion": "autoscaling/v2", "metadata": metadata, "spec": spec}
    return {**out, "status": status} if status else out


def _flat(metrics: list[Object]) -> list[Object]:
    """Metrics in the form of the annotations: v1's own names of targets and current values (resource metrics only)."""
    out: list[Object] = []
    for metric in metrics:
        key = _SOURCES.get(metric.get("type", ""), "")
        source = {**part(metric, key)}
        for word in ("target", "current"):
            inner = part(source, word)
            source.pop(word, None)
            for name, value in inner.items():
                if name != "type":
                    source[word + name[0].upper() + name[1:]] = value
        out.append({**metric, key: source})
    return out


def _deep(metric: Object, word: str) -> Object:
    """The reverse of `_flat`."""
    key = _SOURCES.get(metric.get("type", ""), "")
    source: Object = {}
    inner: Object = {}
    for name, value in part(metric, key).items():
        if name.startswith(word) and len(name) > len(word):
            bare = name[len(word) :]
            inner[bare[0].lower() + bare[1:]] = value
        else:
            source[name] = value
    if word == "target":
        kind = "Utilization" if "averageUtilization" in inner else "AverageValue" if "averageValue" in inner else "Value"
        inner = {"type": kind, **inner}
    return {**metric, key: {**source, word: inner}}
