"""PATCH in its four forms, through the same pipeline as updates."""

from typing import Any

from sim.apiserver import metadata as meta
from sim.apiserver.bodies import checked, media_type, parsed
from sim.apiserver.fields.applying import applied
from sim.apiserver.fields.fieldset import from_v1
from sim.apiserver.fields.lazy import Ledger
from sim.apiserver.fields.managed import settled
from sim.apiserver.objects import Object, copied
from sim.apiserver.patches import json_patch, merge_patch, strategic_patch
from sim.apiserver.requests import Request
from sim.apiserver.schema.check import decode_json, strict_text
from sim.apiserver.status import bad_request, not_found, unsupported_media_type
from sim.apiserver.storage import Entry, Storage
from sim.apiserver.versions import Converter
from sim.apiserver.writes import Result, Work, Writer

__all__ = ("APPLY", "Patcher", "check_identity")

JSON, MERGE, STRATEGIC, APPLY = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
RETRIES = 5
STATUS_ONLY: Object = {"f:status": {}}
SPEC_ONLY: Object = {"f:spec": {}}
ALL_BUT_STATUS: Object = {"f:metadata": {}, "f:spec": {}}


class Patcher:
    """Carries out patches."""

    def __init__(self, storage: Storage, writer: Writer, converter: Converter) -> None:
        self._storage = storage
        self._writer = writer
        self._converter = converter

    async def patch(self, work: Work, request: Request) -> Result:
        """Raises StatusError 400, 404, 409, 415 or 422."""
        kind = media_type(request.content_type)
        if kind == APPLY:
            return await self._apply(work, request)
        allowed = (JSON, MERGE, APPLY) if work.resource.is_custom else (JSON, MERGE, STRATEGIC, APPLY)
        if kind not in allowed:
            listed = ", ".join(allowed)
            raise unsupported_media_type(f"the body of the request was in an unknown format - accepted media types include: {listed}")
        if work.key not in self._storage.table(work.resource).entries:
            raise not_found(work.resource.group, work.resource.plural, work.key.name)
        patch = self.body(request)

        async def change(old: Entry) -> tuple[Object, Ledger | None]:
            return await self._accepted(work, _patched(kind, await self.current(work, old), patch, work)), None

        return await self._writer.update(work, change, retries=RETRIES)

    async def _accepted(self, work: Work, obj: Any) -> Object:
        """A patched object, in the form of its schema and the version of the pipeline."""
        if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
            raise bad_request("the patch leaves no object")
        obj = copied(obj)
        check_identity(work, obj)
        obj, warnings = checked(obj, work.resource, work.version, work.options.validation, [])
        work.warnings += warnings
        return await self.converted(work, obj)

    @staticmethod
    def body(request: Request) -> Any:
        """What a patch says. Raises StatusError 400."""
        if media_type(request.content_type) != JSON:
            return decode_json(request.body)[0]
        return decode_json(b'{"patch":' + request.body + b"}")[0]["patch"]

    async def current(self, work: Work, old: Entry) -> Object:
        """The stored object in the client's version; not to be changed."""
        return await self._converter.convert(work.resource, old.obj, work.resource.api_version(work.version.name))

    async def converted(self, work: Work, obj: Object) -> Object:
        """An object of the client's in the version of the pipeline."""
        return await self._converter.convert(work.resource, obj, work.api_version)

    async def _apply(self, work: Work, request: Request) -> Result:
        config, duplicates = parsed(request, (APPLY,))
        _check_config(work, config)
        if duplicates and work.options.validation == "Strict":
            raise bad_request(strict_text(duplicates))
        if work.options.validation == "Warn":
            work.warnings += duplicates
        work.author = _applying(work)
        if work.key not in self._storage.table(work.resource).entries:
            return await self._create(work, config)

        async def change(old: Entry) -> tuple[Object, Ledger | None]:
            live = await self.current(work, old)
            before = old.ledger.managers(work.version.schema)
            obj, managers = applied(before, live, config, work.version.schema, **self._as(work))
            managers = settled(before, managers) if obj is live else managers
            return await self._taken(work, obj), old.ledger if managers is before else Ledger(managers)

        return await self._writer.update(work, change, retries=RETRIES)

    async def _create(self, work: Work, config: Object) -> Result:
        """An object that does not exist yet is created, unless the configuration is about one life of it or a subresource."""
        if work.subresource or config["metadata"].get("uid"):
            raise not_found(work.resource.group, work.resource.plural, work.key.name)
        obj, managers = applied((), None, config, work.version.schema, **self._as(work))
        obj = await self._taken(work, obj)
        obj["metadata"]["name"] = work.key.name
        return await self._writer.create(work, obj, Ledger(managers))

    async def _taken(self, work: Work, obj: Object) -> Object:
        """What applying made, as a private copy in the form of its schema and the version of the pipeline."""
        return await self.converted(work, checked(copied(obj), work.resource, work.version, "Ignore", [])[0])

    @staticmethod
    def _as(work: Work) -> dict[str, Any]:
        reset: Object = {}
        if work.version.has_status:
            reset = STATUS_ONLY if not work.subresource else ALL_BUT_STATUS if work.resource.is_custom else SPEC_ONLY
        return {
            "manager": work.author.manager,
            "force": bool(work.options.force),
            "subresource": work.subresource,
            "api_version": work.resource.api_version(work.version.name),
            "now": meta.timestamp(work.ctx.now),
            "reset": from_v1(reset),
        }


def _applying(work: Work) -> Any:
    return type(work.author)(work.author.user, work.author.user_agent, "apply", work.subresource, work.options.manager)


def _patched(kind: str, current: Object, patch: Any, work: Work) -> Any:
    if kind == JSON:
        return json_patch(current, patch)
    if kind == MERGE:
        return merge_patch(current, patch)
    return strategic_patch(current, patch, work.version.schema)


def check_identity(work: Work, obj: Object) -> None:
    name = obj["metadata"].get("name", "")
    if name != work.key.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({work.key.name})")
    namespace = obj["metadata"].get("namespace", "")
    if namespace != work.key.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")


def _check_config(work: Work, config: Object) -> None:
    """An applied configuration says what it is; name and namespace may be left out."""
    wanted = work.resource.api_version(work.version.name)
    if config.get("apiVersion") != wanted or config.get("kind") != work.resource.kind:
        if not config.get("apiVersion") or not config.get("kind"):
            raise bad_request("error when unmarshaling: apiVersion and kind must be set")
        raise bad_request(
            f"the API version in the data ({config['apiVersion']}) does not match the expected API version ({wanted})"
            if config.get("apiVersion") != wanted
            else f"the kind in the data ({config['kind']}) does not match the expected kind ({work.resource.kind})"
        )
    metadata = meta.opened(config)
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    metadata.setdefault("name", work.key.name)
    if work.key.namespace:
        metadata.setdefault("namespace", work.key.namespace)
    check_identity(work, config)
