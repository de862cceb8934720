"""Validation of probes and lifecycle hooks."""

from collections.abc import Iterator
from typing import Any, Final

from api.fielderrors import FieldError, forbidden, invalid, not_supported, required
from sim.apiserver.builtin.names import port_name_problems
from sim.apiserver.objects import Object

__all__ = ("lifecycle_errors", "probe_errors")

_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_COUNTS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def lifecycle_errors(path: str, lifecycle: Object) -> Iterator[FieldError]:
    """postStart and preStop."""
    for hook in ("postStart", "preStop"):
        if (handler := lifecycle.get(hook)) is not None:
            yield from _handler(f"{path}.{hook}", handler)


def probe_errors(path: str, probe: Object, kind: str) -> Iterator[FieldError]:
    """`kind`: livenessProbe, readinessProbe or startupProbe."""
    yield from _handler(path, probe)
    for key in _COUNTS:
        if (number := probe.get(key)) and number < 0:
            yield invalid(f"{path}.{key}", number, "must be greater than or equal to 0")
    grace = probe.get("terminationGracePeriodSeconds")
    if kind == "readinessProbe":
        if grace is not None:
            yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
        return
    if grace is not None and grace <= 0:
        yield invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if probe["successThreshold"] != 1:
        yield invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler(path: str, handler: Object) -> Iterator[FieldError]:
    found = [kind for kind in _HANDLERS if handler.get(kind) is not None]
    if not found:
        yield required(path, "must specify a handler type")
        return
    for extra in found[1:]:
        yield forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")
    kind = found[0]
    part: Object = handler[kind]
    if len(found) > 1:
        return
    if kind == "exec":
        if not part.get("command"):
            yield required(f"{path}.exec.command")
    elif kind in ("httpGet", "tcpSocket"):
        yield from _port(f"{path}.{kind}.port", part.get("port"))
        scheme = part.get("scheme")
        if kind == "httpGet" and scheme not in ("HTTP", "HTTPS"):
            yield not_supported(f"{path}.httpGet.scheme", scheme or "", ("HTTP", "HTTPS"))
    elif kind == "grpc":
        yield from _port(f"{path}.grpc.port", part.get("port"))


def _port(path: str, port: Any) -> Iterator[FieldError]:
    if isinstance(port, str):
        for text in port_name_problems(port):
            yield invalid(path, port, text)
    elif not 0 < (port or 0) < 65536:
        yield invalid(path, port or 0, "must be between 1 and 65535, inclusive")
