"""Validation of compute resources of containers."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.fielderrors import FieldError, forbidden, invalid, not_found, required
from api.quantity import nano
from sim.apiserver.builtin.names import qualified
from sim.apiserver.objects import Object

__all__ = ("container_resource_errors", "resource_name_errors")

_STANDARD: Final = frozenset(("cpu", "memory", "ephemeral-storage"))
_KNOWN: Final = frozenset(
    (*_STANDARD, "storage", "requests.cpu", "requests.memory", "requests.storage", "limits.cpu", "limits.memory", "pods", "services")
)
_UNIT: Final = 10**9
_HUGE: Final = "hugepages-"


def container_resource_errors(path: str, resources: Object, claims: frozenset[str]) -> Iterator[FieldError]:
    """`claims`: names of spec.resourceClaims."""
    limits: Mapping[str, str] = resources.get("limits") or {}
    requests: Mapping[str, str] = resources.get("requests") or {}
    if limits or requests:
        for name in sorted(limits):
            yield from _amount(f"{path}.limits[{name}]", name, limits[name])
        for name in sorted(requests):
            yield from _amount(f"{path}.requests[{name}]", name, requests[name])
            yield from _against_limit(path, name, requests[name], limits.get(name))
        names = {*limits, *requests}
        if any(n.startswith(_HUGE) for n in names) and not names & {"cpu", "memory"}:
            yield forbidden(path, "HugePages require cpu or memory")
    seen: set[str] = set()
    for i, claim in enumerate(resources.get("claims") or ()):
        name = claim.get("name", "")
        if name not in claims:
            known = ", ".join(sorted(claims))
            hint = (
                f"must be one of the names in pod.spec.resourceClaims: {known}"
                if known
                else "must be one of the names in pod.spec.resourceClaims which is empty"
            )
            error = not_found(f"{path}.claims[{i}]", name)
            yield FieldError(error.kind, error.path, name, hint)
        elif name in seen:
            yield invalid(f"{path}.claims[{i}]", name, "must be unique")
        seen.add(name)


def resource_name_errors(path: str, name: str) -> Iterator[FieldError]:
    """Names of resources that a container may ask for."""
    for text in qualified(name):
        yield invalid(path, name, text)
    if "/" in name:
        if name.startswith("requests.") or (_is_kubernetes(name) and not name.startswith("kubernetes.io/batch-")):
            yield invalid(path, name, "doesn't follow extended resource name standard")
        return
    if name in _STANDARD or name.startswith(_HUGE):
        return
    if name not in _KNOWN:
        yield invalid(path, name, "must be a standard resource type or fully qualified")
    yield invalid(path, name, "must be a standard resource for containers")


def _amount(path: str, name: str, quantity: Any) -> Iterator[FieldError]:
    if name not in _STANDARD:
        yield from resource_name_errors(path, name)
    value = nano(quantity)
    if value < 0:
        yield invalid(path, quantity, "must be greater than or equal to 0")
    if name not in _STANDARD and "/" in name and value % _UNIT:
        yield invalid(path, quantity, "must be an integer")


def _against_limit(path: str, name: str, request: Any, limit: Any) -> Iterator[FieldError]:
    is_rigid = "/" in name or name.startswith(_HUGE)
    if limit is None:
        if is_rigid:
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    if request == limit:
        return
    if is_rigid:
        if nano(request) != nano(limit):
            yield invalid(f"{path}.requests", request, f"must be equal to {name} limit of {limit}")
    elif nano(request) > nano(limit):
        yield invalid(f"{path}.requests", request, f"must be less than or equal to {name} limit of {limit}")


def _is_kubernetes(name: str) -> bool:
    prefix = name.partition("/")[0]
    return prefix == "kubernetes.io" or prefix.endswith(".kubernetes.io")
