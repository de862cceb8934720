"""Defaults of volumes and of claims for volumes."""

from collections.abc import Callable, Mapping
from typing import Final

from sim.apiserver.builtin.amounts import canonical_resources
from sim.apiserver.objects import Object

__all__ = ("default_claim_spec", "default_volume")

_MODE: Final = 0o644


def default_volume(volume: Object) -> Object:
    """A volume with its defaults; one without any source is an emptyDir."""
    for kind, fill in _SOURCES.items():
        source: Object | None = volume.get(kind)
        if source is not None:
            return {**volume, kind: fill(source)}
    return volume if len(volume) > 1 else {**volume, "emptyDir": {}}


def default_claim_spec(spec: Object) -> Object:
    """spec of a PersistentVolumeClaim."""
    out = dict(spec)
    resources = out["resources"] = dict(out.get("resources") or {})
    canonical_resources(resources, "limits", "requests")
    out.setdefault("volumeMode", "Filesystem")
    return out


def _with_mode(source: Object) -> Object:
    items = source.get("items")
    out = {**source, "items": [_projected_item(i) for i in items]} if items else source
    return out if out.get("defaultMode") is not None else {**out, "defaultMode": _MODE}


def _projected_item(item: Object) -> Object:
    field: Object | None = item.get("fieldRef")
    if field and not field.get("apiVersion"):
        return {**item, "fieldRef": {"apiVersion": "v1", **field}}
    resource: Object | None = item.get("resourceFieldRef")
    if resource and "divisor" not in resource:
        return {**item, "resourceFieldRef": {**resource, "divisor": "0"}}
    return item


def _projected(source: Object) -> Object:
    return {**source, "sources": [_projection(s) for s in source.get("sources") or ()], "defaultMode": source.get("defaultMode", _MODE)}


def _projection(part: Object) -> Object:
    if token := part.get("serviceAccountToken"):
        return {**part, "serviceAccountToken": {"expirationSeconds": 3600, **token}}
    if fields := part.get("downwardAPI"):
        return {**part, "downwardAPI": {**fields, "items": [_projected_item(i) for i in fields.get("items") or ()]}}
    return part


def _host_path(source: Object) -> Object:
    return {**source, "type": source.get("type") or ""}


def _iscsi(source: Object) -> Object:
    return {**source, "iscsiInterface": source.get("iscsiInterface") or "default"}


def _ephemeral(source: Object) -> Object:
    template: Object = source.get("volumeClaimTemplate") or {}
    filled = {**template, "metadata": template.get("metadata") or {}, "spec": default_claim_spec(template.get("spec") or {})}
    return {**source, "volumeClaimTemplate": filled}


_SOURCES: Final[Mapping[str, Callable[[Object], Object]]] = {
    "configMap": _with_mode,
    "secret": _with_mode,
    "downwardAPI": _with_mode,
    "projected": _projected,
    "hostPath": _host_path,
    "iscsi": _iscsi,
    "ephemeral": _ephemeral,
    "emptyDir": dict,
}
