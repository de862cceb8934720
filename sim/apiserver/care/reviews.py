"""AdmissionReview: what webhooks are asked, and what their answers must be like."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any

import msgspec

from sim.apiserver.objects import Object, as_list, as_map
from sim.apiserver.patches.failures import json_type
from sim.apiserver.resources import Resource, Version
from sim.apiserver.schema.jsonerrors import json_error
from sim.apiserver.status import StatusError
from sim.apiserver.writes import Attributes

__all__ = (
    "BadAnswer",
    "Kind",
    "Response",
    "decoded",
    "denial",
    "headless",
    "internal",
    "kind_of",
    "namespace_of",
    "request_of",
    "response_in",
    "review_of",
)

API_VERSION, KIND = "admission.k8s.io/v1", "AdmissionReview"
HEADER = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
NESTING = 10_000


class BadAnswer(Exception):
    """An answer that is no review, or not the right one."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is sent to a subresource, or the resource's own kind."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def as_json(self) -> Object:
        return {"group": self.group, "version": self.version, "kind": self.kind}


@dataclass(frozen=True, slots=True)
class Response:
    """A checked answer. `patch`: operations, None where there is none; `patch_type` as it came."""

    is_allowed: bool
    status: Object | None
    patch: list[Any] | None
    patch_type: str
    warnings: tuple[str, ...]


def kind_of(resource: Resource, version: Version, subresource: str) -> Kind:
    """The kind of objects in requests."""
    if subresource == "scale":
        return Kind("autoscaling", "v1", "Scale")
    found = resource.subresources.get(subresource)
    if found is None:
        return Kind(resource.group, version.name, resource.kind)
    return Kind(found.group or resource.group, found.version or version.name, found.kind)


def request_of(attributes: Attributes, version: Version) -> Object:
    """An AdmissionRequest without uid and objects. `version`: in which the webhook wants to see them."""
    resource, subresource, user = attributes.resource, attributes.subresource, attributes.ctx.user
    out: Object = {
        "kind": kind_of(resource, version, subresource).as_json(),
        "resource": {"group": resource.group, "version": version.name, "resource": resource.plural},
    }
    if subresource:
        out["subResource"] = subresource
    out["requestKind"] = kind_of(resource, attributes.version, subresource).as_json()
    out["requestResource"] = {"group": resource.group, "version": attributes.version.name, "resource": resource.plural}
    if subresource:
        out["requestSubResource"] = subresource
    if attributes.key.name:
        out["name"] = attributes.key.name
    if namespace := namespace_of(attributes):
        out["namespace"] = namespace
    out["operation"] = attributes.operation
    out["userInfo"] = {"username": user.name, "groups": list(user.groups)}
    out["dryRun"] = attributes.ctx.is_dry_run
    out["options"] = attributes.options
    return out


def namespace_of(attributes: Attributes) -> str:
    """The namespace of the request; a namespace counts as being in itself."""
    if attributes.resource.place == ("", "namespaces"):
        return attributes.key.name
    return attributes.key.namespace


def review_of(request: Object, uid: str, obj: Object | None, old: Object | None) -> Object:
    """A whole AdmissionReview."""
    return {"kind": KIND, "apiVersion": API_VERSION, "request": {"uid": uid, **request, "object": obj, "oldObject": old}}


def response_in(body: bytes, uid: str, *, is_mutating: bool) -> Response:
    """Reads an answer. Raises BadAnswer."""
    try:
        review = decoded(body, API_VERSION, KIND)
    except BadAnswer as error:
        raise BadAnswer(f"failed to call webhook: {error}") from None
    response = as_map(review.get("response"))
    if response is None:
        raise _invalid("webhook response was absent")
    _check_types(response)
    if (found := response.get("uid") or "") != uid:
        raise _invalid(f'expected response.uid="{uid}", got "{found}"')
    if problem := headless(review, API_VERSION, KIND):
        raise _invalid(problem)
    patch, patch_type = response.get("patch") or "", response.get("patchType")
    if not is_mutating and (patch or patch_type is not None):
        raise _invalid(f"validating webhook may not return response.{'patch' if patch else 'patchType'}")
    if patch and patch_type is None:
        raise _invalid("webhook returned response.patch but not response.patchType")
    if not patch and patch_type is not None:
        raise _invalid("webhook returned response.patchType but not response.patch")
    warnings = tuple(text for text in response.get("warnings") or () if text and text.isprintable())
    operations = _operations(patch) if patch and response.get("allowed") else None
    return Response(bool(response.get("allowed")), as_map(response.get("status")), operations, patch_type or "", warnings)


def denial(name: str, status: Object | None) -> StatusError:
    """What the client of a denied request is told."""
    given = status or {}
    code: int = given.get("code") or 0
    denied = f'admission webhook "{name}" denied the request'
    why = given.get("message") or given.get("reason")
    message = f"{denied}: {why}" if why else f"{denied} without explanation"
    details: Object = dict(given.get("details") or {})
    retry_after_s: int = details.pop("retryAfterSeconds", 0)
    metadata: Object = given.get("metadata") or {}
    return StatusError(max(code, 400), given.get("reason") or "", message, details, retry_after_s, metadata)


def internal(text: str) -> StatusError:
    """A failure that is nobody's fault but the server's or the webhook's."""
    return StatusError(500, "InternalError", f"Internal error occurred: {text}", {"causes": [{"message": text}]})


def decoded(body: bytes, api_version: str, kind: str) -> Object:
    """A review of a kind, or one that does not say what it is. Raises BadAnswer in the words of the real decoder."""
    try:
        review = msgspec.json.decode(body)
    except msgspec.DecodeError:
        review = ""  # it is read as YAML then, and is a text
    fields = as_map(review)
    if fields is None:
        type_name = json_type(review)
        text = f"couldn't get version/kind; json parse error: json: cannot unmarshal {type_name} into Go value of type {HEADER}"
        raise BadAnswer(text)
    found_version, found_kind = fields.get("apiVersion") or "", fields.get("kind") or ""
    if (found_version, found_kind) in ((api_version, kind), ("", "")):
        return fields
    if found_kind in (kind, "Status"):
        raise BadAnswer(f"converting ({found_version.rpartition('/')[2]}.{found_kind}) to (v1.{kind}): unknown conversion")
    raise BadAnswer(f'no kind "{found_kind}" is registered for version "{found_version}" in scheme "pkg/runtime/scheme.go:111"')


def headless(review: Object, api_version: str, kind: str) -> str:
    """The complaint about a review that does not say what it is."""
    return "" if review.get("kind") else f"expected webhook response of {api_version}, Kind={kind}, got /, Kind="


def _check_types(response: Object) -> None:
    for field, wanted, words in (("uid", str, "types.UID"), ("allowed", bool, "bool"), ("patchType", str, "v1.PatchType")):
        value = response.get(field)
        if value is not None and not isinstance(value, wanted):
            where = f"Go struct field AdmissionResponse.response.{field} of type {words}"
            raise BadAnswer(f"failed to call webhook: json: cannot unmarshal {json_type(value)} into {where}")


def _operations(patch: str) -> list[Any]:
    try:
        text = base64.b64decode(patch, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise BadAnswer("failed to call webhook: illegal base64 data at input byte 0") from None
    complaint = json_error(text, NESTING)
    if complaint is not None:
        raise BadAnswer(f"received undecodable patch in webhook response: {complaint}")
    found = msgspec.json.decode(text)
    operations = as_list(found)
    if operations is None:
        why = f"json: cannot unmarshal {json_type(found)} into Go value of type jsonpatch.Patch"
        raise BadAnswer(f"received undecodable patch in webhook response: {why}")
    return operations


def _invalid(why: str) -> BadAnswer:
    return BadAnswer(f"received invalid webhook response: {why}")
