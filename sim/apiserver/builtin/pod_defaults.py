"""Defaults of pods and of pod templates, as the server fills them in."""

import re
from functools import lru_cache
from typing import Any, Final

from api.quantity import nano
from sim.apiserver.builtin.amounts import canonical, canonical_amounts, canonical_resources
from sim.apiserver.builtin.parts import part
from sim.apiserver.builtin.volume_defaults import default_volume
from sim.apiserver.objects import Object

__all__ = ("default_pod", "default_pod_spec", "pull_policy")

_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_FALSE: Final = ("hostNetwork", "hostPID", "hostIPC")
_REPOSITORY = r"(?:[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]+)?/)?[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
_IMAGE = re.compile(rf"{_REPOSITORY}(?::(\w[\w.-]*))?(@[A-Za-z][\w+.-]*:[0-9a-fA-F]{{32,}})?")
_SPEC: Final = (("restartPolicy", "Always"), ("dnsPolicy", "ClusterFirst"), ("schedulerName", "default-scheduler"))
_PROBE: Final = (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3))
_MESSAGE_PATH: Final = "/dev/termination-log"


@lru_cache(maxsize=1024)
def pull_policy(image: str) -> str:
    """imagePullPolicy of an image: Always where the tag is latest, or where neither tag nor digest is given."""
    found = _IMAGE.fullmatch(image)
    if found is None:
        return "IfNotPresent"
    tag, digest = found.groups()
    return "Always" if tag == "latest" or not (tag or digest) else "IfNotPresent"


def default_pod(pod: Object) -> None:
    """Defaults of a pod, which go beyond those of a template: requests from limits, host ports, service links."""
    spec: Object | None = pod.get("spec")
    if spec is None:
        return
    spec = pod["spec"] = dict(spec)
    default_pod_spec(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    is_host = spec.get("hostNetwork")
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or ():
            resources: Object = container["resources"]
            if limits := resources.get("limits"):
                resources["requests"] = {**limits, **(resources.get("requests") or {})}
            if is_host:
                for port in container.get("ports") or ():
                    port.setdefault("hostPort", port.get("containerPort", 0))
    if spec.get("resources"):
        _pod_requests(spec)


def _pod_requests(spec: Object) -> None:
    """Requests of a pod's own resources: the sum of its containers' where there is any, else the limit."""
    resources: Object = spec["resources"]
    requests: Object = {**part(resources, "requests")}
    for name, limit in part(resources, "limits").items():
        asked = [c["resources"].get("requests", {}).get(name) for c in spec.get("containers") or ()]
        amounts = [nano(a) for a in asked if a is not None]
        requests.setdefault(name, canonical(f"{sum(amounts)}n") if amounts else limit)
    if requests:
        resources["requests"] = requests


def default_pod_spec(spec: Object) -> None:
    """Defaults of a pod spec (a private copy at its top level): what templates of workloads get too."""
    for key, value in _SPEC:
        if not spec.get(key):
            spec[key] = value
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    for key in _FALSE:
        if key in spec and not spec[key]:
            del spec[key]
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for key in _LISTS:
        if containers := spec.get(key):
            spec[key] = [_container(c) for c in containers]
    if volumes := spec.get("volumes"):
        spec["volumes"] = [default_volume(v) for v in volumes]
    if resources := spec.get("resources"):
        resources = spec["resources"] = dict(resources)
        canonical_resources(resources, "limits", "requests")
    if overhead := spec.get("overhead"):
        spec["overhead"] = canonical_amounts(overhead)


def _container(container: Object) -> Object:
    out = dict(container)
    resources = out["resources"] = dict(out.get("resources") or {})
    if resources:
        canonical_resources(resources, "limits", "requests")
    if not out.get("terminationMessagePath"):
        out["terminationMessagePath"] = _MESSAGE_PATH
    if not out.get("terminationMessagePolicy"):
        out["terminationMessagePolicy"] = "File"
    if not out.get("imagePullPolicy"):
        out["imagePullPolicy"] = pull_policy(out.get("image") or "")
    if ports := out.get("ports"):
        out["ports"] = [p if p.get("protocol") else {**p, "protocol": "TCP"} for p in ports]
    if env := out.get("env"):
        out["env"] = [_env(e) for e in env]
    for key in _PROBES:
        if (probe := out.get(key)) is not None:
            out[key] = _probe(probe)
    if lifecycle := out.get("lifecycle"):
        out["lifecycle"] = {hook: _handler(h) for hook, h in lifecycle.items()}
    return out


def _env(entry: Object) -> Object:
    if not entry.get("value") and "value" in entry:
        entry = {k: v for k, v in entry.items() if k != "value"}
    source = entry.get("valueFrom")
    if not source:
        return entry
    if (field := source.get("fieldRef")) and not field.get("apiVersion"):
        return {**entry, "valueFrom": {**source, "fieldRef": {"apiVersion": "v1", **field}}}
    if (resource := source.get("resourceFieldRef")) and "divisor" not in resource:
        return {**entry, "valueFrom": {**source, "resourceFieldRef": {**resource, "divisor": "0"}}}
    if (file := source.get("fileKeyRef")) and "optional" not in file:
        return {**entry, "valueFrom": {**source, "fileKeyRef": {**file, "optional": False}}}
    return entry


def _probe(probe: Object) -> Object:
    out = _handler(probe)
    for key, value in _PROBE:
        if not out.get(key):
            out[key] = value
    if not out.get("initialDelaySeconds"):
        out.pop("initialDelaySeconds", None)
    return out


def _handler(handler: Any) -> Object:
    out: Object = dict(handler or {})
    if http := out.get("httpGet"):
        out["httpGet"] = {**http, "path": http.get("path") or "/", "scheme": http.get("scheme") or "HTTP"}
    if (grpc := out.get("grpc")) is not None and grpc.get("service") is None:
        out["grpc"] = {**grpc, "service": ""}
    return out
