"""Persistent volumes and claims for them."""

from typing import Final

from api.fielderrors import OMITTED, ErrorKind, FieldError, invalid, not_supported, required
from api.quantity import nano
from sim.apiserver.builtin.amounts import canonical_resources
from sim.apiserver.builtin.base import Builtin
from sim.apiserver.builtin.failures import forbidden_change
from sim.apiserver.builtin.names import bad_subdomain, subdomain_name
from sim.apiserver.builtin.parts import part
from sim.apiserver.builtin.pod_diff import claim_diff
from sim.apiserver.builtin.volume_defaults import default_claim_spec, default_volume
from sim.apiserver.metadata import timestamp
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context

__all__ = ("ClaimStrategy", "VolumeStrategy", "claim_spec_errors")

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_FROZEN: Final = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
_COMMON: Final = frozenset(
    ("accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy", "storageClassName")
)


class ClaimStrategy(Builtin):
    """PersistentVolumeClaims."""

    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        obj["spec"] = default_claim_spec(obj.get("spec") or {})
        if status := obj.get("status"):
            obj["status"] = {**status, "phase": status.get("phase") or "Pending"}
            canonical_resources(obj["status"], "capacity", "allocatedResources")

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}
        _protect(obj, "kubernetes.io/pvc-protection")
        spec: Object = obj["spec"]
        if spec.get("storageClassName") is None and (name := _default_class(ctx)):
            spec["storageClassName"] = name

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            obj["spec"] = old["spec"]
        else:
            obj["status"] = old["status"]

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        return claim_spec_errors("spec", obj["spec"])

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        if subresource == "status" or obj["spec"] == old["spec"]:
            return []
        out = claim_spec_errors("spec", obj["spec"])
        allowed, was = {**obj["spec"]}, old["spec"]
        if not was.get("volumeName"):
            for key in ("volumeName", "storageClassName"):
                if key not in was:
                    allowed.pop(key, None)
        if part(old, "status").get("phase") == "Bound":
            allowed["resources"] = was["resources"]
        return out if allowed == was else [*out, forbidden_change("spec", _FROZEN + claim_diff(was, allowed))]


class VolumeStrategy(Builtin):
    """PersistentVolumes."""

    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        spec: Object = {**(obj.get("spec") or {})}
        canonical_resources(spec, "capacity")
        spec["persistentVolumeReclaimPolicy"] = spec.get("persistentVolumeReclaimPolicy") or "Retain"
        spec["volumeMode"] = spec.get("volumeMode") or "Filesystem"
        if "hostPath" in spec:
            spec["hostPath"] = default_volume({"hostPath": spec["hostPath"]})["hostPath"]
        obj["spec"] = spec

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": timestamp(ctx.now)}
        _protect(obj, "kubernetes.io/pv-protection")

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if subresource != "status":
            obj["status"] = old["status"]
            return
        obj["spec"] = old["spec"]
        status = part(obj, "status")
        if status.get("phase") != old["status"].get("phase"):
            obj["status"] = {**status, "lastPhaseTransitionTime": timestamp(ctx.now)}

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec: Object = obj["spec"]
        out: list[FieldError] = []
        if not spec.get("accessModes"):
            out.append(required("spec.accessModes"))
        if not spec.get("capacity"):
            out.append(required("spec.capacity"))
        if "storage" not in part(spec, "capacity"):
            out.append(not_supported("spec.capacity", spec.get("capacity"), ("storage",)))
        if not set(spec) - _COMMON - {"volumeMode", "volumeAttributesClassName"}:
            out.append(required("spec", "must specify a volume type"))
        return out


def claim_spec_errors(path: str, spec: Object) -> list[FieldError]:
    """spec of a claim, also in templates."""
    out: list[FieldError] = []
    modes = spec.get("accessModes")
    if not modes:
        out.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    out += [not_supported(f"{path}.accessModes", mode, _MODES) for mode in modes or () if mode not in _MODES]
    storage = part(spec["resources"], "requests").get("storage")
    if storage is None:
        out.append(FieldError(ErrorKind.REQUIRED, f"{path}.resources[storage]", OMITTED))
    elif nano(storage) <= 0:
        out.append(invalid(f"{path}.resources[storage]", storage, "must be greater than zero"))
    if name := spec.get("storageClassName"):
        out += bad_subdomain(f"{path}.storageClassName", name)
    return out


def _protect(obj: Object, finalizer: str) -> None:
    metadata = obj["metadata"]
    finalizers: list[str] = metadata.get("finalizers") or []
    if finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]


def _default_class(ctx: Context) -> str:
    classes = ctx.lookup.list("storage.k8s.io", "storageclasses")
    found = [c for c in classes if part(c["metadata"], "annotations").get(_DEFAULT_CLASS) == "true"]
    newest = max(found, key=lambda c: (c["metadata"]["creationTimestamp"], c["metadata"]["name"]), default=None)
    return newest["metadata"]["name"] if newest else ""
