"""From the body of a write to an object of the right kind, with what strictness has to say about it."""

import contextlib
import re
from functools import lru_cache

from api.fielderrors import invalid
from sim.apiserver.objects import Object, as_map
from sim.apiserver.requests import MAX_BODY, Request
from sim.apiserver.resources import Resource, Version
from sim.apiserver.schema.builtin import schema_of
from sim.apiserver.schema.check import decode_json, decode_problem, decode_yaml, type_errors
from sim.apiserver.schema.decode import unrecognized
from sim.apiserver.schema.fields import prune, strict_text, unknown_fields
from sim.apiserver.schema.model import Schema
from sim.apiserver.schema.normal import normalize
from sim.apiserver.scheme import check_kind, check_version, unregistered
from sim.apiserver.status import StatusError, bad_request, too_large, unsupported_media_type
from sim.apiserver.status import invalid as invalid_status

__all__ = ("JSON_TYPES", "checked", "decoded", "decoded_action", "decoded_options", "media_type", "parsed")

JSON_TYPES = ("application/json", "application/yaml")
BINARY = "application/vnd.kubernetes.protobuf"
_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
MEDIA_TYPE = re.compile(rf'\s*({_WORD}(?:/{_WORD})?)\s*(?:;\s*{_WORD}=(?:{_WORD}|"(?:[^"\\]|\\.)*")\s*)*;?\s*')


@lru_cache(maxsize=256)
def media_type(content_type: str) -> str:
    """Without parameters; JSON when a client says nothing, "" for what is no media type."""
    if not content_type.strip():
        return "application/json"
    found = MEDIA_TYPE.fullmatch(content_type)
    return found[1].lower() if found is not None else ""


def parsed(request: Request, allowed: tuple[str, ...] = JSON_TYPES, expected: str = "") -> tuple[Object, list[str]]:
    """The JSON object of a body and the duplicate fields in it. `expected`: the kind that it should be, for messages.

    Raises StatusError 400, 413 or 415.
    """
    kind = media_type(request.content_type)
    if kind not in allowed:
        listed = ", ".join((*allowed, BINARY) if allowed == JSON_TYPES else allowed)
        raise unsupported_media_type(f"the body of the request was in an unknown format - accepted media types include: {listed}")
    if len(request.body) > MAX_BODY:
        raise too_large(f"limit is {MAX_BODY}")
    obj, duplicates = _read(request.body, kind, expected)
    api_version = obj.get("apiVersion")
    if isinstance(api_version, str) and api_version.count("/") > 1:
        raise unrecognized(f"unexpected GroupVersion string: {api_version}", request.body, expected)
    return obj, duplicates


def _read(body: bytes, kind: str, expected: str) -> tuple[Object, list[str]]:
    if "yaml" not in kind:
        return decode_json(body, expected)
    if body.startswith(b"{"):
        # Nearly always JSON, which is YAML too and much faster to read; flow mappings that are no JSON are left to YAML.
        with contextlib.suppress(StatusError):
            return decode_json(body, expected)
    return decode_yaml(body, expected)


def decoded(request: Request, resource: Resource, version: Version, validation: str) -> tuple[Object, list[str]]:
    """A private copy of the object in a body, pruned to what its schema knows, and warnings. Raises StatusError."""
    obj, duplicates = parsed(request, expected=resource.kind)
    wanted = resource.api_version(version.name)
    if resource.is_custom:
        _check_custom_kind(obj, resource, wanted, request)
    else:
        check_kind(obj, resource.kind, wanted)
        check_version(obj, wanted)
    return checked(obj, resource, version, validation, duplicates)


def decoded_action(request: Request, resource: Resource, subresource: str) -> Object:
    """What is posted to a subresource, in any version that the server knows. Raises StatusError."""
    kind = resource.subresources[subresource]
    group, version = (kind.group, kind.version) if kind.version else (resource.group, resource.storage)
    wanted = f"{group}/{version}" if group else version
    obj, _ = parsed(request, expected=kind.kind)
    check_kind(obj, kind.kind, wanted)
    if problem := type_errors(obj, action_schema(group, version, kind.kind), kind.kind, obj["apiVersion"]):
        raise bad_request(problem)
    return obj


def decoded_options(request: Request) -> Object | None:
    """DeleteOptions in the body of a request, None where there is none. Raises StatusError."""
    if not request.body.strip():
        return None
    obj, _ = parsed(request)
    kind, api_version = obj.get("kind") or "DeleteOptions", obj.get("apiVersion") or "meta.k8s.io/v1"
    if kind != "DeleteOptions":
        raise bad_request(unregistered(api_version, kind))
    if problem := decode_problem(obj, schema_of("", "v1", "DeleteOptions"), "DeleteOptions"):
        raise bad_request(problem)
    return obj


def _check_custom_kind(obj: Object, resource: Resource, wanted: str, request: Request) -> None:
    kind = obj.get("kind") or ""
    if not kind:
        shown = request.body.decode(errors="replace")
        raise unrecognized(f"Object 'Kind' is missing in '{shown}'", request.body, resource.kind)
    check_version(obj, wanted)
    if kind != resource.kind:
        name = (as_map(obj.get("metadata")) or {}).get("name") or ""
        raise invalid_status(resource.group, kind, name, [invalid("kind", kind, f"must be {resource.kind}")])


@lru_cache(maxsize=16)
def action_schema(group: str, version: str, kind: str) -> Schema:
    """Of a kind that is posted to subresources; some have no document of their own but stand in that of the core group."""
    try:
        return schema_of(group, version, kind)
    except KeyError:
        return schema_of("", "v1", kind)


def checked(obj: Object, resource: Resource, version: Version, validation: str, duplicates: list[str]) -> tuple[Object, list[str]]:
    """Brings a private copy into the form of its schema; what does not fit raises or is dropped, as `validation` says."""
    schema = version.schema
    if problem := type_errors(obj, schema, resource.kind, resource.api_version(version.name)):
        raise bad_request(problem)
    warnings: list[str] = []
    if validation != "Ignore":
        warnings = unknown_fields(obj, schema, duplicates)
        if warnings and validation == "Strict":
            short = version.name
            raise bad_request(f'{resource.kind} in version "{short}" cannot be handled as a {resource.kind}: {strict_text(warnings)}')
    prune(obj, schema)
    if not resource.is_custom:
        normalize(obj, schema)
    return obj, warnings
