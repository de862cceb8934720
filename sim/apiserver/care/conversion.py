"""Conversion webhooks of custom resources."""

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec

from api.fielderrors import aggregate, invalid
from sim.apiserver.care.calls import Caller, CallFailed, url_of
from sim.apiserver.care.reviews import BadAnswer, decoded, headless
from sim.apiserver.metadata import label_errors, new_uid, qualified_name_errors
from sim.apiserver.objects import Object, as_list, as_map, dig
from sim.apiserver.patches.failures import json_type
from sim.apiserver.resources import Resource
from sim.apiserver.schema.fields import prune
from sim.apiserver.status import StatusError

__all__ = ("Conversions",)

API_VERSION, KIND = "apiextensions.k8s.io/v1", "ConversionReview"
TIMEOUT_S = 30.0
SAME = (("name", "name"), ("namespace", "namespace"), ("uid", "UID"))


class Conversions:
    """Asks webhooks, as the real server does: one object per review, in order. `rng`: uids of reviews."""

    def __init__(self, caller: Caller, rng: Random) -> None:
        self._caller = caller
        self._rng = rng

    async def convert(self, resource: Resource, objects: Sequence[Object], api_version: str) -> Sequence[Object]:
        """Raises StatusError 500 when the webhook fails or answers badly."""
        assert resource.conversion is not None  # noqa: S101 - only such resources come here
        client: Object = dig(resource.conversion, "webhook", "clientConfig") or {}
        version = resource.version(api_version.rpartition("/")[2])
        converted = [await self._converted(client, obj, api_version) for obj in objects]
        if version is not None:
            for obj in converted:
                prune(obj, version.schema)
        return converted

    async def _converted(self, client: Object, obj: Object, api_version: str) -> Object:
        what = f"conversion webhook for {obj['apiVersion']}, Kind={obj['kind']}"
        uid = new_uid(self._rng)
        request = {"uid": uid, "desiredAPIVersion": api_version, "objects": [obj]}
        review = {"kind": KIND, "apiVersion": API_VERSION, "request": request}
        try:
            body = await self._caller.post(client, url_of(client), msgspec.json.encode(review), TIMEOUT_S)
        except CallFailed as error:
            raise _failure(f"{what} failed: {error}") from None
        found, problem = _objects(body, uid)
        if problem:
            raise _failure(f"{what} failed: {problem}")
        if len(found) != 1:
            raise _failure(f"{what} returned {len(found)} objects, expected 1")
        return _accepted(what, obj, found[0], api_version)


def _objects(body: bytes, uid: str) -> tuple[list[Any], str]:
    """The converted objects, and what is wrong with the answer."""
    try:
        review = decoded(body, API_VERSION, KIND)
    except BadAnswer as error:
        return [], str(error)
    response = as_map(review.get("response"))
    if response is None:
        return [], "no response provided"
    if (found := response.get("uid") or "") != uid:
        return [], f'expected response.uid="{uid}", got "{found}"'
    if problem := headless(review, API_VERSION, KIND):
        return [], problem
    result: Object = as_map(response.get("result")) or {}
    status = result.get("status") or ""
    if status != "Success":
        return [], result.get("message") or f"response.result.status was '{status}', not 'Success'"
    return as_list(response.get("convertedObjects")) or [], ""


def _accepted(what: str, original: Object, converted: Any, api_version: str) -> Object:
    """The converted object; of its metadata only labels and annotations are the webhook's."""
    obj = as_map(converted)
    if obj is None:
        why = f"json: cannot unmarshal {json_type(converted)} into Go value of type map[string]interface {{}}"
        raise _failure("unexpected end of JSON input" if converted is None else why)
    if not obj.get("kind"):
        raise _failure(f"Object 'Kind' is missing in '{msgspec.json.encode(obj).decode()}'")
    at = f"{what} returned invalid object at index 0: "
    if (got := obj.get("apiVersion") or "") != api_version:
        raise _failure(f"{at}invalid groupVersion (expected {api_version}, received {got})")
    if (got := obj["kind"]) != original["kind"]:
        raise _failure(f"{at}invalid kind (expected {original['kind']}, received {got})")
    metadata, kept = as_map(obj.get("metadata")) or {}, original["metadata"]
    for field, shown in SAME:
        before, after = kept.get(field) or "", metadata.get(field) or ""
        if before != after:
            raise _failure(f"{what} returned invalid object: must have the same {shown}: {before} != {after}")
    out = {key: value for key, value in kept.items() if key not in ("labels", "annotations")}
    for field in ("labels", "annotations"):
        if value := metadata.get(field):
            if problem := _bad_map(field, value):
                raise _failure(f"{what} returned invalid metadata: {problem}")
            out[field] = value
    return {**obj, "metadata": out}


def _bad_map(field: str, value: Object) -> str:
    """What is wrong with labels or annotations, "" if nothing."""
    for key, text in value.items():
        if not isinstance(text, str):
            number = "int64" if isinstance(text, int) and not isinstance(text, bool) else "float64"
            shown = number if (found := json_type(text)) == "number" else found
            return f"metadata.{field}[{key}] must be a string, but is {shown} in converted object"
    if field == "labels":
        return aggregate(label_errors(value, "metadata.labels"))
    return aggregate([invalid("metadata.annotation", key, text) for key in sorted(value) for text in qualified_name_errors(key)])


def _failure(text: str) -> StatusError:
    return StatusError(500, "", text)
