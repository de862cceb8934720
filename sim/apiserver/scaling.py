"""The scale subresource: replicas of an object as a Scale of autoscaling/v1."""

from typing import Any

from api.fielderrors import invalid
from sim.apiserver.objects import Object, as_map, copied, dig
from sim.apiserver.resources import Resource, Scale, Version
from sim.apiserver.schema.builtin import raw_document
from sim.apiserver.schema.compile import compile_openapi
from sim.apiserver.status import bad_request, not_found
from sim.apiserver.status import invalid as invalid_status

__all__ = ("SCALE", "scale_of", "scaled")

API_VERSION = "autoscaling/v1"
SCHEMA = compile_openapi("io.k8s.api.autoscaling.v1.Scale", raw_document("apps", "v1"))
SCALE = Resource("autoscaling", "scales", "Scale", (Version("v1", SCHEMA),), "v1")
"""Only to decode and check what is sent."""


def scale_of(obj: Object, scale: Scale, resource: Resource) -> Object:
    """The Scale of an object. Raises StatusError 404 where a custom resource has no replicas."""
    replicas = _read(obj, scale.spec_replicas)
    if replicas is None and resource.is_custom:
        name = obj["metadata"]["name"]
        raise not_found(resource.group, f"{resource.plural}/scale", name)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    metadata = {key: obj["metadata"][key] for key in kept if key in obj["metadata"]}
    status: Object = {"replicas": _read(obj, scale.status_replicas) or 0}
    if selector := _selector(_read(obj, scale.label_selector) if scale.label_selector else None):
        status["selector"] = selector
    spec = {"replicas": replicas} if replicas else {}
    return {"kind": "Scale", "apiVersion": API_VERSION, "metadata": metadata, "spec": spec, "status": status}


def scaled(obj: Object, scale: Scale, wanted: Object, name: str) -> Object:
    """A private copy of the object with the replicas of a Scale, and its resourceVersion and uid as preconditions."""
    metadata: Object = wanted.get("metadata") or {}
    if metadata.get("name", name) != name:
        raise bad_request(f"the name of the object ({metadata.get('name')}) does not match the name on the URL ({name})")
    spec: Object = wanted.get("spec") or {}
    replicas = spec.get("replicas", 0)
    if replicas < 0:
        raise invalid_status("autoscaling", "Scale", name, [invalid("spec.replicas", replicas, "must be greater than or equal to 0")])
    out = copied(obj)
    for key in ("resourceVersion", "uid"):
        if metadata.get(key):
            out["metadata"][key] = metadata[key]
    if not metadata.get("resourceVersion"):
        out["metadata"].pop("resourceVersion", None)
    *path, last = scale.spec_replicas.lstrip(".").split(".")
    place = out
    for part in path:
        place = place.setdefault(part, {})
    place[last] = replicas
    return out


def _read(obj: Object, path: str) -> Any:
    return dig(obj, *path.lstrip(".").split("."))


def _selector(value: Any) -> str:
    """A selector as text: custom resources hold the text, built-in kinds a map or a LabelSelector."""
    fields = as_map(value)
    if fields is None:
        return value or ""
    labels: Object = fields.get("matchLabels") or {}
    if "matchLabels" not in fields and "matchExpressions" not in fields:
        labels = fields
    parts = [f"{key}={labels[key]}" for key in labels]
    expressions: list[Object] = fields.get("matchExpressions") or []
    for expression in expressions:
        key, operator = expression["key"], expression["operator"]
        values = ",".join(sorted(expression.get("values") or []))
        shown = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
        parts.append(shown.get(operator, ""))
    return ",".join(sorted(parts))
