"""Validation of containers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from api.fielderrors import FieldError, duplicate, forbidden, invalid, not_found, not_supported, required
from sim.apiserver.builtin.names import bad_subdomain, config_key_problems, label_name, port_name_problems, subdomain_name
from sim.apiserver.builtin.probe_validation import lifecycle_errors, probe_errors
from sim.apiserver.builtin.resource_validation import container_resource_errors
from sim.apiserver.objects import Object

__all__ = ("PodFacts", "container_errors", "host_port_errors")

_ENV = re.compile(r"[ -<>-~]+")
_ENV_TEXT = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_PULL: Final = ("Always", "IfNotPresent", "Never")
_MESSAGES: Final = ("File", "FallbackToLogsOnError")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_META_FIELDS: Final = ("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName")
_FIELDS: Final = frozenset((*_META_FIELDS, "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"))
_KEYED = re.compile(r"metadata\.(labels|annotations)\['.+'\]")
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_SOURCES_TEXT = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
_RUN_AS: Final = ("RunAsUser", "RunAsGroup", "RunAsNonRoot", "ReadOnlyRootFilesystem", "AllowPrivilegeEscalation")
_SECURITY: Final = ("Capabilities", "SELinuxOptions", "WindowsOptions", *_RUN_AS, "ProcMount", "SeccompProfile", "AppArmorProfile")
_MAX_ID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What containers are checked against."""

    volumes: frozenset[str]
    claims: frozenset[str]
    is_host_network: bool


def container_errors(path: str, container: Object, pod: PodFacts, *, is_init: bool = False) -> Iterator[FieldError]:
    """Everything but that names are unique."""
    name = container.get("name")
    if not name:
        yield required(f"{path}.name")
    elif problems := label_name(name):
        for text in problems:
            yield invalid(f"{path}.name", name, text)
    image = container.get("image")
    if not image:
        yield required(f"{path}.image")
    elif image.strip() != image:
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    if lifecycle := container.get("lifecycle"):
        yield from lifecycle_errors(f"{path}.lifecycle", lifecycle)
    yield from _probes(path, container, is_init=is_init)
    if container["terminationMessagePolicy"] not in _MESSAGES:
        yield not_supported(f"{path}.terminationMessagePolicy", container["terminationMessagePolicy"], _MESSAGES)
    if ports := container.get("ports"):
        yield from _ports(f"{path}.ports", ports, is_host=pod.is_host_network)
    if env := container.get("env"):
        yield from _env(f"{path}.env", env)
    if sources := container.get("envFrom"):
        yield from _env_from(f"{path}.envFrom", sources)
    if mounts := container.get("volumeMounts"):
        yield from _mounts(f"{path}.volumeMounts", mounts, pod.volumes)
    if devices := container.get("volumeDevices"):
        yield from _devices(f"{path}.volumeDevices", devices, pod.volumes)
    if container["imagePullPolicy"] not in _PULL:
        yield not_supported(f"{path}.imagePullPolicy", container["imagePullPolicy"], _PULL)
    if resources := container["resources"]:
        yield from container_resource_errors(f"{path}.resources", resources, pod.claims)
    if security := container.get("securityContext"):
        yield from _security(f"{path}.securityContext", security)


def host_port_errors(path: str, containers: list[Object]) -> Iterator[FieldError]:
    """Host ports are unique over the containers at `path`."""
    seen: set[str] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.get("ports") or ()):
            if number := port.get("hostPort"):
                text = f"{port.get('protocol')}/{port.get('hostIP', '')}/{number}"
                if text in seen:
                    yield duplicate(f"{path}[{i}].ports[{j}].hostPort", text)
                seen.add(text)


def _probes(path: str, container: Object, *, is_init: bool) -> Iterator[FieldError]:
    is_plain_init = is_init and container.get("restartPolicy") != "Always"
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(kind)) is None:
            continue
        if is_plain_init:
            yield forbidden(f"{path}.{kind}", "may not be set for init containers without restartPolicy=Always")
        else:
            yield from probe_errors(f"{path}.{kind}", probe, kind)


def _ports(path: str, ports: list[Object], *, is_host: bool) -> Iterator[FieldError]:
    names: set[str] = set()
    for i, port in enumerate(ports):
        at = f"{path}[{i}]"
        if name := port.get("name"):
            if problems := port_name_problems(name):
                for text in problems:
                    yield invalid(f"{at}.name", name, text)
            elif name in names:
                yield duplicate(f"{at}.name", name)
            names.add(name)
        number = port.get("containerPort")
        if not number:
            yield required(f"{at}.containerPort")
        elif not 0 < number < 65536:
            yield invalid(f"{at}.containerPort", number, "must be between 1 and 65535, inclusive")
        host = port.get("hostPort")
        if host and not 0 < host < 65536:
            yield invalid(f"{at}.hostPort", host, "must be between 1 and 65535, inclusive")
        if is_host and host != number:
            yield invalid(f"{at}.hostPort", host or 0, "must match `containerPort` when `hostNetwork` is true")
        if port["protocol"] not in _PROTOCOLS:
            yield not_supported(f"{at}.protocol", port["protocol"], _PROTOCOLS)


def _env(path: str, env: list[Object]) -> Iterator[FieldError]:
    for i, entry in enumerate(env):
        name = entry.get("name")
        if not name:
            yield required(f"{path}[{i}].name")
        elif not _ENV.fullmatch(name):
            yield invalid(f"{path}[{i}].name", name, _ENV_TEXT)
        if (source := entry.get("valueFrom")) is not None:
            yield from _value_from(f"{path}[{i}].valueFrom", source, entry.get("value"))


def _value_from(path: str, source: Object, value: Any) -> Iterator[FieldError]:
    n = 0
    for kind in _SOURCES:
        if (part := source.get(kind)) is None:
            continue
        n += 1
        if kind == "fieldRef":
            field = part.get("fieldPath")
            if not field:
                yield required(f"{path}.fieldRef.fieldPath")
            elif field not in _FIELDS and not _KEYED.fullmatch(field):
                yield invalid(f"{path}.fieldRef.fieldPath", field, f"error converting fieldPath: field label not supported: {field}")
        elif kind == "resourceFieldRef":
            if not part.get("resource"):
                yield required(f"{path}.resourceFieldRef.resource")
        elif kind != "fileKeyRef":
            yield from bad_subdomain(f"{path}.{kind}.name", part.get("name") or "")
            key = part.get("key")
            if not key:
                yield required(f"{path}.{kind}.key")
            else:
                for text in config_key_problems(key):
                    yield invalid(f"{path}.{kind}.key", key, text)
    if value:
        if n:
            yield invalid(path, "", "may not be specified when `value` is not empty")
    elif not n:
        yield invalid(path, "", _SOURCES_TEXT)
    elif n > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _env_from(path: str, sources: list[Object]) -> Iterator[FieldError]:
    for i, source in enumerate(sources):
        prefix = source.get("prefix")
        if prefix and not _ENV.fullmatch(prefix):
            yield invalid(f"{path}[{i}].prefix", prefix, _ENV_TEXT)
        n = 0
        for kind in ("configMapRef", "secretRef"):
            if (part := source.get(kind)) is not None:
                n += 1
                if not part.get("name"):
                    yield required(f"{path}[{i}].{kind}.name")
                else:
                    for text in subdomain_name(part["name"]):
                        yield invalid(f"{path}[{i}].{kind}.name", part["name"], text)
        if n != 1:
            text = "may not have more than one field specified at a time" if n else "must specify one of: `configMapRef` or `secretRef`"
            yield invalid(path, "", text)


def _mounts(path: str, mounts: list[Object], volumes: frozenset[str]) -> Iterator[FieldError]:
    places: set[str] = set()
    for i, mount in enumerate(mounts):
        name = mount.get("name") or ""
        if not name:
            yield required(f"{path}[{i}].name")
        if name not in volumes:
            yield not_found(f"{path}[{i}].name", name)
        place = mount.get("mountPath")
        if not place:
            yield required(f"{path}[{i}].mountPath")
        elif place in places:
            yield invalid(f"{path}[{i}].mountPath", place, "must be unique")
        places.add(place or "")
        sub: str = mount.get("subPath") or ""
        if sub.startswith("/"):
            yield invalid(f"{path}.subPath", sub, "must be a relative path")
        elif ".." in sub.split("/"):
            yield invalid(f"{path}.subPath", sub, "must not contain '..'")


def _devices(path: str, devices: list[Object], volumes: frozenset[str]) -> Iterator[FieldError]:
    for i, device in enumerate(devices):
        name = device.get("name") or ""
        if not name:
            yield required(f"{path}[{i}].name")
        if name not in volumes:
            yield not_found(f"{path}[{i}].name", name)
        if not device.get("devicePath"):
            yield required(f"{path}[{i}].devicePath")


def _security(path: str, security: Object) -> Iterator[FieldError]:
    for key in ("runAsUser", "runAsGroup"):
        if (number := security.get(key)) is not None and not 0 <= number <= _MAX_ID:
            yield invalid(f"{path}.{key}", number, f"must be between 0 and {_MAX_ID}, inclusive")
    if security.get("privileged") and security.get("allowPrivilegeEscalation") is False:
        shown: Object = {name: security.get(name[0].lower() + name[1:]) for name in _SECURITY}
        shown["SELinuxOptions"] = security.get("seLinuxOptions")
        ordered: Object = {"Capabilities": shown.pop("Capabilities"), "Privileged": True, **shown}
        yield invalid(path, ordered, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
