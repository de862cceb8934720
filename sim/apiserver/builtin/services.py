"""Services: addresses and ports that the server allots, defaults, validation."""

from collections.abc import Mapping
from ipaddress import IPv4Network, ip_address
from typing import Any, Final

from api.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required
from sim.apiserver.builtin.base import Builtin
from sim.apiserver.builtin.names import bad_label, bad_labels, bad_subdomain, is_ip, plain_label_name, port_name_problems
from sim.apiserver.builtin.parts import items, part
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context

__all__ = ("SERVICE_RANGE", "ServiceStrategy")

SERVICE_RANGE: Final = IPv4Network("10.96.0.0/12")
"""Cluster IPs. The first 256 are left to those who ask for a certain one."""
_FIRST_FREE: Final = 257
_NODE_PORTS: Final = (30000, 32767)
_FIRST_NODE_PORT: Final = 30086
"""Below are ports for those who ask for a certain one."""
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_OUTSIDE: Final = ("NodePort", "LoadBalancer")
_IP_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_PORT_TEXT = "must be between 1 and 65535, inclusive"
_ADDRESSING: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")


class ServiceStrategy(Builtin):
    """Services."""

    name_check = staticmethod(plain_label_name)

    def fill(self, obj: Object) -> None:
        spec: Object = {**(obj.get("spec") or {})}
        obj["spec"] = spec
        kind = spec["type"] = spec.get("type") or "ClusterIP"
        spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
        if spec["sessionAffinity"] == "ClientIP" and not spec.get("sessionAffinityConfig"):
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
        elif spec["sessionAffinity"] == "None":
            spec.pop("sessionAffinityConfig", None)
        if ports := items(spec, "ports"):
            spec["ports"] = [_port(p) for p in ports]
        if kind in _OUTSIDE:
            spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
        if kind != "ExternalName":
            spec["internalTrafficPolicy"] = spec.get("internalTrafficPolicy") or "Cluster"
        if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
            spec["allocateLoadBalancerNodePorts"] = True
        if "status" in obj:
            status = part(obj, "status")
            obj["status"] = {**status, "loadBalancer": part(status, "loadBalancer")}

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"loadBalancer": {}}
        _mirror(obj["spec"], {})
        _allot(ctx, obj, {})

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            obj["spec"] = old["spec"]
            return
        obj["status"] = old["status"]
        spec, was = obj["spec"], old["spec"]
        kind = spec["type"]
        if kind == "ExternalName" != was["type"]:
            for key in ("clusterIP", "clusterIPs"):
                if spec.get(key) == was.get(key):
                    spec.pop(key, None)
            for key in ("ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
                spec.pop(key, None)
        elif kind != "ExternalName":
            for key in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
                if not spec.get(key) and was.get(key):
                    spec[key] = was[key]
        if kind not in _OUTSIDE:
            _close(spec, was)
        if kind != "LoadBalancer":
            spec.pop("allocateLoadBalancerNodePorts", None)
        _mirror(spec, was)
        if kind != "ExternalName":
            _allot(ctx, obj, was)

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec: Object = obj["spec"]
        out = _errors(spec)
        return out or _taken(ctx, obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        if subresource == "status" or obj["spec"] == old["spec"]:
            return []
        spec, was = obj["spec"], old["spec"]
        out: list[FieldError] = []
        new_ips, old_ips = spec.get("clusterIPs"), was.get("clusterIPs")
        if old_ips and was["type"] != "ExternalName" != spec["type"] and new_ips != old_ips:
            out.append(invalid("spec.clusterIPs[0]", new_ips, "may not change once set"))
        return out + _errors(spec)

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        return {"spec.clusterIP": obj["spec"].get("clusterIP", ""), "spec.type": obj["spec"].get("type", "")}


def _port(port: Object) -> Object:
    out = {**port, "protocol": port.get("protocol") or "TCP"}
    if not out.get("targetPort"):
        out["targetPort"] = port.get("port", 0)
    if not out.get("nodePort"):
        out.pop("nodePort", None)
    return out


def _close(spec: Object, was: Object) -> None:
    """Takes from a service that is no longer open to the outside what only such services have."""
    if was["type"] in _OUTSIDE:
        old_ports = {p.get("nodePort") for p in items(was, "ports")}
        spec["ports"] = [{k: v for k, v in p.items() if k != "nodePort" or v not in old_ports} for p in items(spec, "ports")]
        spec.pop("externalTrafficPolicy", None)
        spec.pop("healthCheckNodePort", None)


def _mirror(spec: Object, was: Object) -> None:
    """clusterIP is the first of clusterIPs; the one that was changed counts."""
    one, many = spec.get("clusterIP"), spec.get("clusterIPs")
    if one and (not many or (one != was.get("clusterIP") and many == was.get("clusterIPs"))):
        spec["clusterIPs"] = [one]
    elif many and not one:
        spec["clusterIP"] = many[0]
    if not spec.get("clusterIP"):
        spec.pop("clusterIP", None)


def _allot(ctx: Context, obj: Object, was: Object) -> None:
    """Fills in cluster IP, IP families and node ports. What is asked for is checked by validation."""
    spec: Object = obj["spec"]
    if spec["type"] == "ExternalName":
        for key in _ADDRESSING:
            spec.pop(key, None)
        return
    services = ctx.lookup.list("", "services")
    if not spec.get("clusterIP"):
        taken = {ip for s in services for ip in s["spec"].get("clusterIPs") or ()}
        spec["clusterIP"] = _free_ip(ctx, taken)
        spec["clusterIPs"] = [spec["clusterIP"]]
    if spec["clusterIP"] == "None" and not spec.get("selector") and not was:
        spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "RequireDualStack"
        families = spec.get("ipFamilies") or ["IPv4"]
        spec["ipFamilies"] = [*families, *(f for f in ("IPv4", "IPv6") if f not in families)]
    spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "SingleStack"
    spec["ipFamilies"] = spec.get("ipFamilies") or ["IPv4"]
    if spec["type"] in _OUTSIDE and spec.get("allocateLoadBalancerNodePorts", True):
        used = {p.get("nodePort") for s in services for p in items(s["spec"], "ports")}
        old_ports = {(p.get("port"), p.get("protocol")): p.get("nodePort") for p in items(was, "ports")}
        for port in items(spec, "ports"):
            if not port.get("nodePort"):
                port["nodePort"] = old_ports.get((port.get("port"), port["protocol"])) or _free_port(ctx, used)
            used.add(port["nodePort"])


def _free_ip(ctx: Context, taken: set[str]) -> str:
    while True:
        ip = str(SERVICE_RANGE[ctx.rng.randrange(_FIRST_FREE, SERVICE_RANGE.num_addresses - 1)])
        if ip not in taken:
            return ip


def _free_port(ctx: Context, used: set[Any]) -> int:
    free = [p for p in range(_FIRST_NODE_PORT, _NODE_PORTS[1] + 1) if p not in used]
    return ctx.rng.choice(free)


def _taken(ctx: Context, obj: Object) -> list[FieldError]:
    """Addresses and ports that others have, of a new service."""
    spec, metadata = obj["spec"], obj["metadata"]
    others = [s for s in ctx.lookup.list("", "services") if s["metadata"].get("uid") != metadata["uid"]]
    ip = spec.get("clusterIP")
    if ip and ip != "None":
        if ip_address(ip) not in SERVICE_RANGE:
            why = "the provided network does not match the current range"
            return [invalid("spec.clusterIPs", [ip], f"failed to allocate IP {ip}: {why}")]
        if any(ip in (s["spec"].get("clusterIPs") or ()) for s in others):
            return [invalid("spec.clusterIPs", [ip], f"failed to allocate IP {ip}: provided IP is already allocated")]
    if spec.get("ipFamilyPolicy") == "RequireDualStack" and ip != "None":
        text = "this cluster is not configured for dual-stack services"
        return [invalid("spec.ipFamilyPolicy", "RequireDualStack", text)]
    used = {p.get("nodePort") for s in others for p in items(s["spec"], "ports")}
    for i, port in enumerate(items(spec, "ports")):
        if number := port.get("nodePort"):
            if not _NODE_PORTS[0] <= number <= _NODE_PORTS[1]:
                text = "provided port is not in the valid range. The range of valid ports is 30000-32767"
                return [invalid(f"spec.ports[{i}].nodePort", number, text)]
            if number in used:
                return [invalid(f"spec.ports[{i}].nodePort", number, "provided port is already allocated")]
    return []


def _errors(spec: Object) -> list[FieldError]:
    out: list[FieldError] = []
    kind, ports = spec["type"], items(spec, "ports")
    is_headless = spec.get("clusterIP") == "None"
    if not ports and not is_headless and kind != "ExternalName":
        out.append(required("spec.ports"))
    if kind == "LoadBalancer" and is_headless:
        out.append(invalid("spec.clusterIPs[0]", "None", "may not be set to 'None' for LoadBalancer services"))
    if kind == "NodePort" and is_headless:
        out.append(invalid("spec.clusterIPs[0]", "None", "may not be set to 'None' for NodePort services"))
    if kind == "ExternalName":
        if not (name := spec.get("externalName")):
            out.append(required("spec.externalName"))
        else:
            out += bad_subdomain("spec.externalName", name.removesuffix("."))
    out += _port_errors(ports)
    if selector := spec.get("selector"):
        out += bad_labels("spec.selector", selector)
    if spec["sessionAffinity"] not in ("ClientIP", "None"):
        out.append(not_supported("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None")))
    ip = spec.get("clusterIP")
    if ip and ip != "None" and not is_ip(ip):
        out.append(invalid("spec.clusterIPs[0]", ip, _IP_TEXT))
    if kind not in _TYPES:
        out.append(not_supported("spec.type", kind, _TYPES))
    if kind == "ClusterIP":
        for i, port in enumerate(ports):
            if port.get("nodePort"):
                out.append(forbidden(f"spec.ports[{i}].nodePort", "may not be used when `type` is 'ClusterIP'"))
    if (policy := spec.get("externalTrafficPolicy")) and kind not in _OUTSIDE:
        out.append(invalid("spec.externalTrafficPolicy", policy, "may only be set for externally-accessible services"))
    return out


def _port_errors(ports: list[Object]) -> list[FieldError]:
    out: list[FieldError] = []
    names: set[str] = set()
    for i, port in enumerate(ports):
        path = f"spec.ports[{i}]"
        if not (name := port.get("name")):
            if len(ports) > 1:
                out.append(required(f"{path}.name"))
        else:
            bad = bad_label(f"{path}.name", name)
            out += bad
            if not bad and name in names:
                out.append(duplicate(f"{path}.name", name))
            names.add(name)
        number, target = port.get("port", 0), port["targetPort"]
        if not 0 < number < 65536:
            out.append(invalid(f"{path}.port", number, _PORT_TEXT))
        if port["protocol"] not in _PROTOCOLS:
            out.append(not_supported(f"{path}.protocol", port["protocol"], _PROTOCOLS))
        if isinstance(target, str):
            out += [invalid(f"{path}.targetPort", target, text) for text in port_name_problems(target)]
        elif not 0 < target < 65536:
            out.append(invalid(f"{path}.targetPort", target, _PORT_TEXT))
    return out + _repeated_ports(ports)


def _repeated_ports(ports: list[Object]) -> list[FieldError]:
    out: list[FieldError] = []
    seen: set[tuple[Any, Any]] = set()
    for i, port in enumerate(ports):
        key = (port["protocol"], port.get("port"))
        if key in seen:
            shown = {"Name": "", "Protocol": key[0], "AppProtocol": None, "Port": key[1], "TargetPort": 0, "NodePort": 0}
            out.append(duplicate(f"spec.ports[{i}]", shown))
        seen.add(key)
    return out
