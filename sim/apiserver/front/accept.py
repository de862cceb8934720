"""Content negotiation: which form of the answer an Accept header asks for."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sim.apiserver.status import StatusError, not_acceptable

__all__ = ("DISCOVERY", "JSON", "JSON_TYPE", "OBJECTS", "YAML_TYPE", "Accepted", "form_of_failure", "negotiate")

JSON_TYPE: Final = "application/json"
YAML_TYPE: Final = "application/yaml"
PROTOBUF_TYPE: Final = "application/vnd.kubernetes.protobuf"
META: Final = "meta.k8s.io"
OBJECTS: Final = frozenset(
    (kind, META, v) for kind in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList") for v in ("v1", "v1beta1")
)
"""Transformations (as, g, v) that objects and lists allow."""
DISCOVERY: Final = frozenset({("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")})
"""The transformation that /api and /apis allow."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The form to answer in. `kind`: "" for the object as it is, or the kind to transform it to, in `version` of the kind's group."""

    content_type: str
    kind: str = ""
    version: str = ""

    @property
    def is_yaml(self) -> bool:
        return self.content_type == YAML_TYPE


JSON: Final = Accepted(JSON_TYPE)
NOTHING: Final = frozenset[tuple[str, str, str]]()


def form_of_failure(accept: str) -> Accepted:
    """The form of a Status: what was asked for as it is, else JSON."""
    try:
        return negotiate(accept, NOTHING)
    except StatusError:
        return JSON


@lru_cache(maxsize=256)
def negotiate(
    accept: str,
    transforms: frozenset[tuple[str, str, str]] = OBJECTS,
    *,
    is_custom: bool = False,
    is_watch: bool = False,
    is_list: bool = False,
) -> Accepted:
    """The first acceptable clause by weight, then order; an empty header takes JSON. `is_list`: of a collection, watched or not.

    Raises StatusError (406). Protobuf is not offered: a client that takes nothing else gets the refusal. `is_custom`: custom resources
    word it differently.
    """
    if not accept:
        return JSON
    clauses = _clauses(accept)
    for media, parameters in clauses:
        found = _match(media, is_watch)
        if found is None:
            continue
        if not parameters.keys() & {"as", "g", "v"}:
            return Accepted(found)
        wanted = (parameters.get("as", ""), parameters.get("g", ""), parameters.get("v", ""))
        if wanted in transforms:
            return Accepted(found, wanted[0], wanted[2])
    raise _refusal({media for media, _ in clauses}, is_custom=is_custom, is_watch=is_watch, is_list=is_list)


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Media types with parameters, best first. Weight 0 still counts, as in kube-apiserver."""
    weighed: list[tuple[float, str, dict[str, str]]] = []
    for clause in accept.split(","):
        media, *rest = (part.strip() for part in clause.split(";"))
        parameters = {name: value for name, _, value in (part.partition("=") for part in rest)}
        try:
            weight = float(parameters.pop("q", "1"))
        except ValueError:
            weight = 1.0
        weighed.append((weight, media.lower(), parameters))
    weighed.sort(key=lambda one: -one[0])
    return [(media, parameters) for _, media, parameters in weighed]


def _match(media: str, is_watch: bool) -> str | None:
    if media in (JSON_TYPE, "*/*", "application/*"):
        return JSON_TYPE
    return YAML_TYPE if media == YAML_TYPE and not is_watch else None


def _refusal(media: set[str], *, is_custom: bool, is_watch: bool, is_list: bool) -> StatusError:
    """Built-in resources refuse at the route what no media type of theirs matches, everything else is refused at negotiation."""
    plain = [JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE]
    streams = [f"{JSON_TYPE};stream=watch", f"{PROTOBUF_TYPE};stream=watch"]
    if is_custom or media & {*plain, "*/*", "application/*"}:
        offered = streams if is_watch and not is_custom else plain
        return not_acceptable(f"only the following media types are accepted: {', '.join(offered)}")
    offered = plain + streams if is_list else plain
    error = not_acceptable(f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}")
    error.shows_details = True
    return error
