"""Dynamic resource allocation: claims, templates of claims, classes."""

from typing import Final

from api.fielderrors import FieldError, duplicate, invalid, not_supported, required
from sim.apiserver.builtin.base import Builtin
from sim.apiserver.builtin.failures import invalid_whole
from sim.apiserver.builtin.names import bad_label, bad_subdomain, subdomain_name
from sim.apiserver.builtin.parts import items, part
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context

__all__ = ("ClaimTemplateStrategy", "DeviceClaimStrategy")

_MODES: Final = ("All", "ExactCount")
_IMMUTABLE = "field is immutable"


class DeviceClaimStrategy(Builtin):
    """ResourceClaims, whose spec never changes."""

    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        obj["spec"] = _claim_spec(part(obj, "spec"))

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {}

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            obj["spec"] = old["spec"]
            obj.setdefault("status", {})
        else:
            obj["status"] = old["status"]

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        return _spec_errors("spec", obj["spec"])

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        if obj["spec"] == old["spec"]:
            return []
        return [invalid_whole("spec", _shown(obj["spec"]), _IMMUTABLE)]


class ClaimTemplateStrategy(Builtin):
    """ResourceClaimTemplates, whose spec never changes."""

    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        spec = part(obj, "spec")
        obj["spec"] = {**spec, "metadata": part(spec, "metadata"), "spec": _claim_spec(part(spec, "spec"))}

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        return _spec_errors("spec.spec", obj["spec"]["spec"])

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        if obj["spec"] == old["spec"]:
            return []
        return [invalid_whole("spec", {"Spec": _shown(obj["spec"]["spec"])}, _IMMUTABLE)]


def _claim_spec(spec: Object) -> Object:
    devices = part(spec, "devices")
    requests = [_request(r) for r in items(devices, "requests")]
    return {**spec, "devices": {**devices, "requests": requests or None}}


def _request(request: Object) -> Object:
    out = {**request}
    if exactly := part(request, "exactly"):
        out["exactly"] = _counted(exactly)
    elif "exactly" in request:
        out["exactly"] = _counted({"deviceClassName": ""})
    if choices := items(request, "firstAvailable"):
        out["firstAvailable"] = [_counted(c) for c in choices]
    return out


def _counted(part_of: Object) -> Object:
    mode = part_of.get("allocationMode") or "ExactCount"
    out = {**part_of, "allocationMode": mode}
    if mode == "ExactCount":
        out["count"] = part_of.get("count") or 1
    return out


def _spec_errors(path: str, spec: Object) -> list[FieldError]:
    out: list[FieldError] = []
    repeated: list[FieldError] = []
    seen: set[str] = set()
    for i, request in enumerate(items(spec["devices"], "requests")):
        at = f"{path}.devices.requests[{i}]"
        name = request.get("name") or ""
        if not name:
            out.append(required(f"{at}.name"))
        else:
            out += bad_label(f"{at}.name", name)
            if name in seen:
                repeated.append(duplicate(at, name))
        seen.add(name)
        exactly, choices = request.get("exactly"), items(request, "firstAvailable")
        if (exactly is None) == (not choices):
            text = "exactly one of `exactly` or `firstAvailable` is required"
            if exactly is None:
                out.append(required(at, text))
            else:
                out.append(invalid(at, None, text + ", but multiple fields are set"))
        if exactly is not None:
            out += _exact_errors(f"{at}.exactly", exactly)
        for j, choice in enumerate(choices):
            out += _exact_errors(f"{at}.firstAvailable[{j}]", choice)
    return out + repeated


def _exact_errors(path: str, wanted: Object) -> list[FieldError]:
    name, mode, count = wanted.get("deviceClassName") or "", wanted["allocationMode"], wanted.get("count") or 0
    out: list[FieldError] = [] if name else [required(f"{path}.deviceClassName")]
    if name:
        out += bad_subdomain(f"{path}.deviceClassName", name)
    if mode not in _MODES:
        out.append(not_supported(f"{path}.allocationMode", mode, _MODES))
    elif mode == "ExactCount" and count <= 0:
        out.append(invalid(f"{path}.count", count, "must be greater than zero"))
    return out


def _shown(spec: Object) -> Object:
    devices = part(spec, "devices")
    return {"Devices": {"Requests": devices.get("requests"), "Constraints": devices.get("constraints"), "Config": devices.get("config")}}
