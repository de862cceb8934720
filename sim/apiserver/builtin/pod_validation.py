"""Validation of pod specs, of pods and of templates."""

import re
from collections.abc import Iterator
from typing import Final

from api.fielderrors import FieldError, duplicate, forbidden, invalid, not_supported, required
from sim.apiserver.builtin.container_validation import PodFacts, container_errors, host_port_errors
from sim.apiserver.builtin.names import bad_label, bad_labels, bad_subdomain, is_ip, qualified
from sim.apiserver.builtin.parts import items, part
from sim.apiserver.builtin.scheduling_validation import affinity_errors, gate_errors, spread_errors, toleration_errors
from sim.apiserver.objects import Object

__all__ = ("pod_spec_errors", "template_errors")

IP_TEXT = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_RESTARTS: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_MAX = 2**31 - 1
_NOTHING: Final[frozenset[str]] = frozenset()
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_SYSCTL_TEXT = r"must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
_NAMED: Final = (("configMap", "name"), ("secret", "secretName"), ("persistentVolumeClaim", "claimName"))
_IDS: Final = ("fsGroup", "runAsUser", "runAsGroup")


def pod_spec_errors(path: str, spec: Object) -> list[FieldError]:
    """Everything wrong with a defaulted pod spec, in the order of the server."""
    out: list[FieldError] = []
    volumes = _NOTHING
    if listed := spec.get("volumes"):
        volumes = frozenset([v.get("name") or "" for v in listed])
        out += _volumes(f"{path}.volumes", listed)
    claims = _NOTHING
    if listed := spec.get("resourceClaims"):
        claims = frozenset([c.get("name") or "" for c in listed])
        out += _claims(f"{path}.resourceClaims", listed)
    facts = PodFacts(volumes, claims, bool(spec.get("hostNetwork")))
    out += _containers(path, spec, facts)
    if spec["restartPolicy"] not in _RESTARTS:
        out.append(not_supported(f"{path}.restartPolicy", spec["restartPolicy"], _RESTARTS))
    if spec["dnsPolicy"] not in _DNS:
        out.append(not_supported(f"{path}.dnsPolicy", spec["dnsPolicy"], _DNS))
    if labels := spec.get("nodeSelector"):
        out += bad_labels(f"{path}.nodeSelector", labels)
    if security := spec["securityContext"]:
        for key in _IDS:
            if (number := security.get(key)) is not None and not 0 <= number <= _MAX:
                out.append(invalid(f"{path}.securityContext.{key}", number, f"must be between 0 and {_MAX}, inclusive"))
        out += _sysctls(f"{path}.securityContext.sysctls", security.get("sysctls") or [])
    if affinity := spec.get("affinity"):
        out += affinity_errors(f"{path}.affinity", affinity)
    if spec["dnsPolicy"] == "None" or spec.get("dnsConfig"):
        out += _dns(path, spec)
    for i, gate in enumerate(spec.get("readinessGates") or ()):
        kind = gate.get("conditionType") or ""
        out += [invalid(f"{path}.readinessGates[{i}].conditionType", kind, text) for text in qualified(kind)]
    if gates := spec.get("schedulingGates"):
        out += gate_errors(f"{path}.schedulingGates", gates)
    if constraints := spec.get("topologySpreadConstraints"):
        out += spread_errors(f"{path}.topologySpreadConstraints", constraints)
    out += _names(path, spec)
    if (limit := spec.get("activeDeadlineSeconds")) is not None and not 0 < limit <= _MAX:
        out.append(invalid(f"{path}.activeDeadlineSeconds", limit, f"must be between 1 and {_MAX}, inclusive"))
    for key in ("hostname", "subdomain"):
        if name := spec.get(key):
            out += bad_label(f"{path}.{key}", name)
    if tolerations := spec.get("tolerations"):
        out += toleration_errors(f"{path}.tolerations", tolerations)
    for i, alias in enumerate(spec.get("hostAliases") or ()):
        out += _alias(f"{path}.hostAliases[{i}]", alias)
    for key in ("priorityClassName", "runtimeClassName"):
        if name := spec.get(key):
            out += bad_subdomain(f"{path}.{key}", name)
    if (policy := spec.get("preemptionPolicy")) and policy not in ("PreemptLowerPriority", "Never"):
        out.append(not_supported(f"{path}.preemptionPolicy", policy, ("Never", "PreemptLowerPriority")))
    if (system := spec.get("os")) and (name := system.get("name")) not in ("linux", "windows"):
        out.append(not_supported(f"{path}.os", name or "", ("linux", "windows")))
    return out


def template_errors(path: str, template: Object) -> list[FieldError]:
    """A pod template: labels, annotations and spec."""
    metadata: Object = template.get("metadata") or {}
    out: list[FieldError] = []
    if labels := metadata.get("labels"):
        out += bad_labels(f"{path}.labels", labels)
    for key in metadata.get("annotations") or ():
        out += [invalid(f"{path}.annotations", key, text) for text in qualified(key.lower())]
    spec: Object = template.get("spec") or {}
    out += pod_spec_errors(f"{path}.spec", spec)
    if spec.get("ephemeralContainers"):
        out.append(forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))
    return out


def _containers(path: str, spec: Object, facts: PodFacts) -> Iterator[FieldError]:
    names: set[str] = set()
    containers: list[Object] = spec.get("containers") or []
    if not containers:
        yield required(f"{path}.containers")
    for key, is_init in (("containers", False), ("initContainers", True), ("ephemeralContainers", False)):
        listed: list[Object] = containers if key == "containers" else spec.get(key) or []
        has_ports = False
        for i, container in enumerate(listed):
            at = f"{path}.{key}[{i}]"
            yield from container_errors(at, container, facts, is_init=is_init)
            name = container.get("name")
            if name and name in names:
                yield duplicate(f"{at}.name", name)
            names.add(name or "")
            has_ports = has_ports or "ports" in container
        if has_ports and key == "containers":
            yield from host_port_errors(f"{path}.{key}", listed)


def _volumes(path: str, volumes: list[Object]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, volume in enumerate(volumes):
        at = f"{path}[{i}]"
        sources = sorted(k for k in volume if k != "name" and volume[k] is not None)
        for extra in sources[1:]:
            yield forbidden(f"{at}.{extra}", "may not specify more than 1 volume type")
        name = volume.get("name")
        if not name:
            yield required(f"{at}.name")
        elif name in seen:
            yield duplicate(f"{at}.name", name)
        else:
            yield from bad_label(f"{at}.name", name)
        seen.add(name or "")
        for kind, key in _NAMED:
            if len(sources) == 1 and (source := volume.get(kind)) is not None and not source.get(key):
                yield required(f"{at}.{kind}.{key}")
        if len(sources) == 1 and (projected := part(volume, "projected")):
            yield from _projected(f"{at}.projected", items(projected, "sources"))


def _projected(path: str, sources: list[Object]) -> Iterator[FieldError]:
    """Sources of a projected volume: one kind each, with a name where it has one."""
    for i, source in enumerate(sources):
        at = f"{path}.sources[{i}]"
        named = (f"{at}.{kind}.name" for kind in ("secret", "configMap") if kind in source and not part(source, kind).get("name"))
        yield from (required(where) for where in named)
        token = source.get("serviceAccountToken")
        if token is not None and not token.get("path"):
            yield required(f"{path}.path")
        if token is not None and (seconds := token.get("expirationSeconds", 3600)) < 600:
            yield invalid(f"{at}.serviceAccountToken.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
        if sum(value is not None for value in source.values()) > 1:
            yield forbidden(at, "may not specify more than 1 volume type per source")


def _claims(path: str, claims: list[Object]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        name = claim.get("name") or ""
        own, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        if not name:
            yield required(f"{path}[{i}].name")
        elif name in seen:
            yield duplicate(f"{path}[{i}]", name)
        else:
            yield from bad_label(f"{path}[{i}].name", name)
        seen.add(name)
        shown = {"Name": name, "ResourceClaimName": own, "ResourceClaimTemplateName": template}
        if own is not None and template is not None:
            text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield invalid(f"{path}[{i}]", shown, text)
        if own is None and template is None:
            yield invalid(f"{path}[{i}]", shown, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for key, value in (("resourceClaimName", own), ("resourceClaimTemplateName", template)):
            if value is not None:
                yield from bad_subdomain(f"{path}[{i}].{key}", value)


def _sysctls(path: str, sysctls: list[Object]) -> Iterator[FieldError]:
    seen: set[str] = set()
    for i, entry in enumerate(sysctls):
        name = entry.get("name") or ""
        if not name:
            yield required(f"{path}[{i}].name")
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            yield invalid(f"{path}[{i}].name", name, _SYSCTL_TEXT)
        elif name in seen:
            yield duplicate(f"{path}[{i}].name", name)
        seen.add(name)


def _names(path: str, spec: Object) -> Iterator[FieldError]:
    if name := spec.get("serviceAccountName"):
        yield from bad_subdomain(f"{path}.serviceAccountName", name)
    if name := spec.get("nodeName"):
        yield from bad_subdomain(f"{path}.nodeName", name)


def _dns(path: str, spec: Object) -> Iterator[FieldError]:
    config: Object | None = spec.get("dnsConfig")
    if spec["dnsPolicy"] == "None":
        if config is None:
            yield required(f"{path}.dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            yield required(f"{path}.dnsConfig.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")
    for i, server in enumerate((config or {}).get("nameservers") or ()):
        if not is_ip(server):
            yield invalid(f"{path}.dnsConfig.nameservers[{i}]", server, IP_TEXT)


def _alias(path: str, alias: Object) -> Iterator[FieldError]:
    address = alias.get("ip") or ""
    if not is_ip(address):
        yield invalid(f"{path}.ip", address, IP_TEXT)
    for i, name in enumerate(alias.get("hostnames") or ()):
        yield from bad_subdomain(f"{path}.hostnames[{i}]", name)
