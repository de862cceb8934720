"""From the body of a write to an object of the right kind, with what strictness has to say about it."""

import contextlib

from sim.apiserver.objects import Object
from sim.apiserver.requests import Request
from sim.apiserver.resources import Resource, Version
from sim.apiserver.schema.check import decode_json, decode_yaml, type_errors
from sim.apiserver.schema.fields import prune, strict_text, unknown_fields
from sim.apiserver.schema.normal import normalize
from sim.apiserver.status import StatusError, bad_request, too_large, unsupported_media_type

__all__ = ("JSON_TYPES", "MAX_BODY", "checked", "decoded", "media_type", "parsed")

MAX_BODY = 3 * 1024 * 1024
JSON_TYPES = ("application/json", "application/yaml")
BINARY = "application/vnd.kubernetes.protobuf"


def media_type(content_type: str) -> str:
    """Without parameters; JSON when a client says nothing."""
    return content_type.partition(";")[0].strip().lower() or "application/json"


def parsed(request: Request, allowed: tuple[str, ...] = JSON_TYPES, expected: str = "") -> tuple[Object, list[str]]:
    """The JSON object of a body and the duplicate fields in it. `expected`: the kind that it should be, for messages.

    Raises StatusError 400, 413 or 415.
    """
    kind = media_type(request.content_type)
    if kind not in allowed:
        listed = ", ".join((*allowed, BINARY) if allowed == JSON_TYPES else allowed)
        raise unsupported_media_type(f"the body of the request was in an unknown format - accepted media types include: {listed}")
    if len(request.body) > MAX_BODY:
        raise too_large(f"Request entity too large: limit is {MAX_BODY}")
    if "yaml" not in kind:
        return decode_json(request.body, expected)
    if request.body.startswith(b"{"):
        # Nearly always JSON, which is YAML too and much faster to read; flow mappings that are no JSON are left to YAML.
        with contextlib.suppress(StatusError):
            return decode_json(request.body)
    return decode_yaml(request.body, expected)


def decoded(request: Request, resource: Resource, version: Version, validation: str) -> tuple[Object, list[str]]:
    """A private copy of the object in a body, pruned to what its schema knows, and warnings. Raises StatusError."""
    obj, duplicates = parsed(request, expected=resource.kind)
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    wanted = resource.api_version(version.name)
    if not kind and not api_version:
        obj["kind"], obj["apiVersion"] = resource.kind, wanted
    elif not kind:
        raise bad_request(f"Object 'Kind' is missing in '{request.body.decode(errors='replace').strip()}'")
    elif (kind, api_version) != (resource.kind, wanted):
        if api_version != wanted:
            raise bad_request(f"the API version in the data ({api_version}) does not match the expected API version ({wanted})")
        raise bad_request(
            f"the object provided is unrecognized (must be of type {resource.kind}): {_group_kind(str(api_version), str(kind))}"
        )
    return checked(obj, resource, version, validation, duplicates)


def checked(obj: Object, resource: Resource, version: Version, validation: str, duplicates: list[str]) -> tuple[Object, list[str]]:
    """Brings a private copy into the form of its schema; what does not fit raises or is dropped, as `validation` says."""
    schema = version.schema
    if problem := type_errors(obj, schema, resource.kind, resource.api_version(version.name)):
        raise bad_request(problem)
    warnings: list[str] = []
    if validation != "Ignore":
        warnings = [*duplicates, *unknown_fields(obj, schema)]
        if warnings and validation == "Strict":
            short = version.name
            raise bad_request(f'{resource.kind} in version "{short}" cannot be handled as a {resource.kind}: {strict_text(warnings)}')
    prune(obj, schema)
    if not resource.is_custom:
        normalize(obj, schema)
    return obj, warnings


def _group_kind(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    return f'no kind "{kind}" is registered for version "{group + "/" if group else ""}{version}"'
