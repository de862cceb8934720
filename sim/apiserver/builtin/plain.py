"""Kinds with little behaviour of their own: defaults, a few checks, fields that may not change."""

from collections.abc import Callable, Sequence
from typing import Final

from api.fielderrors import FieldError, duplicate, invalid, not_supported, required
from sim.apiserver.builtin.amounts import canonical_resources
from sim.apiserver.builtin.base import Builtin
from sim.apiserver.builtin.names import is_ip, subdomain_name
from sim.apiserver.builtin.parts import items, part
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context

__all__ = (
    "Plain",
    "fill_csi_driver",
    "fill_endpoint_slice",
    "fill_endpoints",
    "fill_limits",
    "fill_network_policy",
    "fill_quota",
    "fill_storage_class",
    "ingress_errors",
    "slice_errors",
)

Fill = Callable[[Object], None]
Check = Callable[[Object], list[FieldError]]
_IP_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_ADDRESSES: Final = ("FQDN", "IPv4", "IPv6")


def _nothing(obj: Object) -> None:
    del obj


def _no_errors(obj: Object) -> list[FieldError]:
    del obj
    return []


class Plain(Builtin):
    """`fill`: defaults. `needed`: fields that may not be empty. `fixed`: top-level fields that may not change. `status`: of a new object,
    None where there is none. `counts`: whether there is a generation."""

    name_check = staticmethod(subdomain_name)

    def __init__(
        self,
        fill: Fill = _nothing,
        check: Check = _no_errors,
        *,
        needed: Sequence[str] = (),
        fixed: Sequence[str] = (),
        status: Object | None = None,
        counts: bool = False,
        may_create_on_update: bool = False,
        may_update_unconditionally: bool = True,
        returns_deleted: bool = False,
    ) -> None:
        super().__init__(
            may_create_on_update=may_create_on_update,
            may_update_unconditionally=may_update_unconditionally,
            returns_deleted=returns_deleted,
        )
        self.generation = counts
        self._fill, self._check, self._needed, self._fixed, self._status = fill, check, needed, fixed, status

    def fill(self, obj: Object) -> None:
        self._fill(obj)

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj.pop("status", None)
        if self._status is not None:
            obj["status"] = dict(self._status)

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if self._status is None:
            return
        key = "spec" if subresource == "status" else "status"
        if key in old:
            obj[key] = old[key]

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        return [*(required(key) for key in self._needed if not obj.get(key)), *self._check(obj)]

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        out = [invalid(key, obj.get(key), "field is immutable") for key in self._fixed if obj.get(key) != old.get(key)]
        return [*out, *self.validate_create(ctx, obj)]


def fill_network_policy(obj: Object) -> None:
    spec: Object = {**part(obj, "spec")}
    obj["spec"] = spec
    spec.setdefault("podSelector", {})
    for way in ("ingress", "egress"):
        if rules := items(spec, way):
            spec[way] = [{**r, "ports": [_with_protocol(p) for p in items(r, "ports")]} if r.get("ports") else r for r in rules]
        else:
            spec.pop(way, None)
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _with_protocol(port: Object) -> Object:
    return {**port, "protocol": port.get("protocol") or "TCP"}


def fill_storage_class(obj: Object) -> None:
    obj["reclaimPolicy"] = obj.get("reclaimPolicy") or "Delete"
    obj["volumeBindingMode"] = obj.get("volumeBindingMode") or "Immediate"


def fill_csi_driver(obj: Object) -> None:
    defaults: Object = {
        "attachRequired": True,
        "podInfoOnMount": False,
        "volumeLifecycleModes": ["Persistent"],
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "requiresRepublish": False,
        "seLinuxMount": False,
    }
    obj["spec"] = {**defaults, **part(obj, "spec")}


def fill_endpoint_slice(obj: Object) -> None:
    obj["endpoints"] = [{**e, "conditions": part(e, "conditions")} for e in items(obj, "endpoints")] or None
    obj["ports"] = [{**p, "name": p.get("name") or "", "protocol": p.get("protocol") or "TCP"} for p in items(obj, "ports")] or None


def slice_errors(obj: Object) -> list[FieldError]:
    """Of an EndpointSlice."""
    kind = obj.get("addressType") or ""
    out: list[FieldError] = []
    if not kind:
        out.append(required("addressType"))
    elif kind not in _ADDRESSES:
        return [not_supported("addressType", kind, _ADDRESSES)]
    names: set[str] = set()
    for i, port in enumerate(obj["ports"] or ()):
        if port["name"] in names:
            out.append(duplicate(f"ports[{i}].name", port["name"]))
        names.add(port["name"])
    for i, endpoint in enumerate(obj["endpoints"] or ()):
        addresses: list[str] = endpoint.get("addresses") or []
        if not addresses:
            out.append(required(f"endpoints[{i}].addresses", "must contain at least 1 address"))
        if kind != "FQDN":
            out += [invalid(f"endpoints[{i}].addresses[{j}]", a, _IP_TEXT) for j, a in enumerate(addresses) if not is_ip(a)]
    return out


def ingress_errors(obj: Object) -> list[FieldError]:
    """Of an Ingress: that it has rules, and what kind of path each is."""
    spec = part(obj, "spec")
    rules = items(spec, "rules")
    if not rules and not spec.get("defaultBackend"):
        return [invalid("spec", None, "either `defaultBackend` or `rules` must be specified")]
    return [
        required(f"spec.rules[{i}].http.paths[{j}].pathType", "pathType must be specified")
        for i, rule in enumerate(rules)
        for j, path in enumerate(items(part(rule, "http"), "paths"))
        if not path.get("pathType")
    ]


def fill_endpoints(obj: Object) -> None:
    if subsets := items(obj, "subsets"):
        obj["subsets"] = [{**s, "ports": [_with_protocol(p) for p in items(s, "ports")]} if s.get("ports") else s for s in subsets]


def fill_limits(obj: Object) -> None:
    spec = part(obj, "spec")
    obj["spec"] = {**spec, "limits": [_limit(limit) for limit in items(spec, "limits")]}


def _limit(limit: Object) -> Object:
    """Of containers: the default is at most the maximum, the default request the default or the minimum."""
    out = {**limit}
    canonical_resources(out, "max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
    if out.get("type") == "Container":
        for key, sources in (("default", ("max",)), ("defaultRequest", ("min", "default"))):
            filled = {**part(out, sources[-1]), **(part(out, sources[0]) if len(sources) > 1 else {}), **part(out, key)}
            if filled:
                out[key] = filled
    return out


def fill_quota(obj: Object) -> None:
    spec: Object = {**part(obj, "spec")}
    canonical_resources(spec, "hard")
    obj["spec"] = spec
