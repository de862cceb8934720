"""Types that the server can decode. It decodes a body as what the body says it is, and only then asks whether that is what it wants."""

from functools import lru_cache
from typing import Final

from sim.apiserver.objects import Object
from sim.apiserver.schema.builtin import group_versions, raw_document
from sim.apiserver.status import bad_request

__all__ = ("check_kind", "check_version", "go_kind", "is_registered", "unregistered")

_APART: Final = ("apiextensions.k8s.io", "apiregistration.k8s.io")
"""Groups whose servers know no types but their own."""
_EVICTIONS: Final = ("policy/v1", "policy/v1beta1")
"""Versions of Eviction, which is a kind without a resource."""
_SHARED: Final = {("events.k8s.io", "Event"): "core.Event"}
"""Kinds that the server holds as a type of another group."""


def check_kind(obj: Object, kind: str, api_version: str) -> None:
    """Names the type of an object of a built-in kind where the object leaves that out. Raises StatusError 400 for other types."""
    if obj.get("kind") == kind and obj.get("apiVersion") == api_version:
        return
    found: tuple[str, str] = obj.get("apiVersion") or api_version, obj.get("kind") or kind
    obj["apiVersion"], obj["kind"] = found
    if found == (api_version, kind):
        return
    subject = f'{found[1]} in version "{found[0].rpartition("/")[2]}" cannot be handled as a {kind}: '
    group = api_version.rpartition("/")[0]
    if not is_registered(*found, near=group):
        raise bad_request(subject + unregistered(*found))
    have, want = go_kind(found[0].rpartition("/")[0], found[1]), go_kind(group, kind)
    if have != want:
        raise bad_request(f"{subject}converting ({found[0].rpartition('/')[2]}.{found[1]}) to ({want}): unknown conversion")


def check_version(obj: Object, api_version: str) -> None:
    """Raises StatusError 400 for another version of the right kind."""
    if (found := obj.get("apiVersion") or "") != api_version:
        raise bad_request(f"the API version in the data ({found}) does not match the expected API version ({api_version})")


def unregistered(api_version: str, kind: str) -> str:
    """Of a type that nobody knows."""
    return f'no kind "{kind}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'


def go_kind(group: str, kind: str) -> str:
    """The server's own type for a kind: core.ConfigMap."""
    return _SHARED.get((group, kind)) or f"{group.partition('.')[0] or 'core'}.{kind}"


def is_registered(api_version: str, kind: str, near: str) -> bool:
    """Whether the server of the group `near` knows a type."""
    group = api_version.rpartition("/")[0]
    if kind == "Eviction" and api_version in _EVICTIONS:
        return near not in _APART
    apart = group if group in _APART else ""
    return apart == (near if near in _APART else "") and kind in _kinds(api_version)


@lru_cache(maxsize=64)
def _kinds(api_version: str) -> frozenset[str]:
    """All kinds of a group version."""
    if api_version not in group_versions():
        return frozenset()
    group, _, version = api_version.rpartition("/")
    nodes = raw_document(group, version).values()
    found = (known for node in nodes for known in node.get("x-kubernetes-group-version-kind", ()))
    return frozenset(known["kind"] for known in found if (known["group"], known["version"]) == (group, version))
