"""Namespaces and nodes."""

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Final

from api.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported
from api.quantity import nano
from sim.apiserver.builtin.amounts import canonical_resources
from sim.apiserver.builtin.base import Builtin
from sim.apiserver.builtin.names import plain_label_name, qualified, subdomain_name
from sim.apiserver.builtin.parts import items, part
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context
from sim.apiserver.status import forbidden as forbidden_status

__all__ = ("NamespaceStrategy", "NodeStrategy")

_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_LASTING: Final = ("default", "kube-system", "kube-public")
_NOT_READY: Final[Object] = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_UNQUALIFIED: Final = "name is neither a standard finalizer name nor is it fully qualified"
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_INFO: Final = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)


class NamespaceStrategy(Builtin):
    """Namespaces: spec.finalizers hold one that is being deleted."""

    name_check = staticmethod(plain_label_name)

    def fill(self, obj: Object) -> None:
        metadata = obj["metadata"]
        if name := metadata.get("name"):
            metadata["labels"] = {**(metadata.get("labels") or {}), _NAME_LABEL: name}

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        finalizers: list[str] = list(part(obj, "spec").get("finalizers") or ())
        if "kubernetes" not in finalizers:
            finalizers.append("kubernetes")
        obj["spec"] = {"finalizers": finalizers}
        obj["status"] = {"phase": "Active"}
        # Of a generated name nobody knew when defaults were filled in.
        self.fill(obj)

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if subresource == "finalize":
            obj["status"] = old["status"]
            finalizers = part(obj, "spec").get("finalizers")
            obj["spec"] = {"finalizers": finalizers} if finalizers else {}
            return
        obj["spec"] = old["spec"]
        if subresource != "status":
            obj["status"] = old["status"]

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        return [invalid("spec.finalizers", f, _UNQUALIFIED) for f in obj["spec"]["finalizers"] if "/" not in f and f != "kubernetes"]

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        if subresource == "finalize":
            names: list[str] = part(obj, "spec").get("finalizers") or []
            odd = [(i, name) for i, name in enumerate(names) if "/" not in name and name != "kubernetes"]
            return [invalid(f"spec.finalizers[{i}]", name, _UNQUALIFIED) for i, name in odd]
        if subresource != "status":
            return []
        phase = part(obj, "status").get("phase", "")
        if obj["metadata"].get("deletionTimestamp"):
            if phase != "Terminating":
                return [invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")]
        elif phase != "Active":
            return [invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")]
        return []

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        return {"status.phase": part(obj, "status").get("phase", "")}

    def prepare_delete(self, ctx: Context, obj: Object) -> None:
        obj["metadata"].pop("deletionGracePeriodSeconds", None)
        obj["status"] = {**part(obj, "status"), "phase": "Terminating"}

    def validate_delete(self, ctx: Context, obj: Object) -> None:
        name = obj["metadata"]["name"]
        if name in _LASTING:
            raise forbidden_status("", "namespaces", name, "this namespace may not be deleted")

    def is_held(self, obj: Object) -> bool:
        return bool(part(obj, "spec").get("finalizers"))


class NodeStrategy(Builtin):
    """Nodes. Unlike other kinds, they keep the status that they are created with."""

    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        spec: Object = {**(obj.get("spec") or {})}
        obj["spec"] = spec
        if spec.get("unschedulable") is False:
            del spec["unschedulable"]
        if cidr := spec.get("podCIDR"):
            spec["podCIDRs"] = spec.get("podCIDRs") or [cidr]
            if spec["podCIDRs"][0] != cidr:
                spec["podCIDRs"] = [cidr]
        elif cidrs := spec.get("podCIDRs"):
            spec["podCIDR"] = cidrs[0]
        status: Object = {**(obj.get("status") or {})}
        obj["status"] = status
        canonical_resources(status, "capacity", "allocatable")
        if status.get("capacity") and not status.get("allocatable"):
            status["allocatable"] = status["capacity"]
        ports = part(status, "daemonEndpoints")
        status["daemonEndpoints"] = {"kubeletEndpoint": {"Port": 0, **part(ports, "kubeletEndpoint")}}
        status["nodeInfo"] = {**dict.fromkeys(_INFO, ""), **part(status, "nodeInfo")}
        if conditions := items(status, "conditions"):
            status["conditions"] = [{"lastHeartbeatTime": None, "lastTransitionTime": None, **c} for c in conditions]

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        spec: Object = obj["spec"]
        taints = items(spec, "taints")
        if not any(t.get("key") == _NOT_READY["key"] and t.get("effect") == "NoSchedule" for t in taints):
            spec["taints"] = [*taints, dict(_NOT_READY)]

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            obj["spec"] = old["spec"]
        else:
            obj["status"] = old["status"]

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        return _node_errors(obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        out = _node_errors(obj)
        spec, was = obj["spec"], old["spec"]
        if was.get("podCIDRs") and spec.get("podCIDRs") != was["podCIDRs"]:
            out.append(forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid'))
        if was.get("providerID") and spec.get("providerID") != was["providerID"]:
            out.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
        return out

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        return {"spec.unschedulable": "true" if part(obj, "spec").get("unschedulable") else "false"}


def _node_errors(obj: Object) -> list[FieldError]:
    out: list[FieldError] = []
    spec: Object = obj["spec"]
    seen: set[tuple[str, str]] = set()
    for i, taint in enumerate(items(spec, "taints")):
        path = f"metadata.taints[{i}]"
        key, effect = taint.get("key") or "", taint.get("effect") or ""
        out += [invalid(f"{path}.key", key, text) for text in qualified(key)]
        if effect not in _EFFECTS:
            out.append(not_supported(f"{path}.effect", effect, _EFFECTS))
        if (key, effect) in seen:
            shown = {"Key": key, "Value": taint.get("value", ""), "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            error = duplicate(path, shown)
            out.append(FieldError(error.kind, path, shown, "taints must be unique by key and effect pair"))
        seen.add((key, effect))
    for i, cidr in enumerate(spec.get("podCIDRs") or ()):
        if not _is_cidr(cidr):
            out.append(invalid(f"spec.podCIDRs[{i}]", cidr, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"))
    for key in ("capacity", "allocatable"):
        for name, quantity in part(obj["status"], key).items():
            if nano(quantity) < 0:
                out.append(invalid(f"status.{key}.{name}", quantity, "must be greater than or equal to 0"))
    return out


def _is_cidr(text: str) -> bool:
    try:
        ip_network(text)
    except ValueError:
        return False
    return "/" in text
