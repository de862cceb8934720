"""PATCH in its four forms, through the same pipeline as updates."""

from typing import Any

from sim.apiserver import metadata as meta
from sim.apiserver.bodies import checked
from sim.apiserver.fields.applying import applied
from sim.apiserver.fields.checking import mistakes
from sim.apiserver.fields.lazy import Ledger
from sim.apiserver.fields.managed import Managers, encode, settled
from sim.apiserver.fitting import APPLY, fitted, patch_kind, patch_of
from sim.apiserver.objects import Object, as_map, copied, dig
from sim.apiserver.owning import reset_of
from sim.apiserver.patches import read_config
from sim.apiserver.requests import Request
from sim.apiserver.resources import Resource
from sim.apiserver.status import StatusError, bad_request, conflict, not_found
from sim.apiserver.storage import Entry, Storage
from sim.apiserver.versions import Converter
from sim.apiserver.writes import Result, Work, Writer

__all__ = ("RETRIES", "Patcher", "check_identity", "check_kind")

RETRIES = 5


class Patcher:
    """Carries out patches."""

    def __init__(self, storage: Storage, writer: Writer, converter: Converter) -> None:
        self._storage = storage
        self._writer = writer
        self._converter = converter

    async def patch(self, work: Work, request: Request) -> Result:
        """Raises StatusError 400, 404, 409, 415 or 422."""
        kind = patch_kind(request, work.resource)
        if kind == APPLY:
            return await self._apply(work, request)
        if work.key not in self._storage.table(work.resource).entries:
            raise not_found(work.resource.group, work.resource.plural, work.key.name)
        patch = patch_of(request, kind)

        async def change(old: Entry) -> tuple[Object, Ledger | None]:
            current = await self.current(work, old)
            if patch.reads_managers:
                entries = encode(old.ledger.managers(work.version.schema))
                current = {**current, "metadata": {**current["metadata"], "managedFields": entries}}
            obj, warnings = fitted(patch, current, work.resource, work.version, work.options.validation)
            check_identity(work, obj)
            if work.subresource != "status":
                obj = {key: copied(value) if value is current.get(key) else value for key, value in obj.items()}
            result = await self.converted(work, obj)
            work.warnings = [*dict.fromkeys((*work.warnings, *warnings))]
            return result, None

        return await self._writer.update(work, change, retries=RETRIES)

    async def current(self, work: Work, old: Entry) -> Object:
        """The stored object in the client's version; not to be changed."""
        return await self._converter.convert(work.resource, old.obj, work.resource.api_version(work.version.name))

    async def converted(self, work: Work, obj: Object) -> Object:
        """An object of the client's in the version of the pipeline."""
        return await self._converter.convert(work.resource, obj, work.api_version)

    async def _apply(self, work: Work, request: Request) -> Result:
        config, duplicates = read_config(request.body)
        check_kind(config, work.resource.kind, work.resource.api_version(work.version.name))
        if duplicates and work.options.validation == "Strict":
            problem = "error converting YAML to JSON: yaml: unmarshal errors:\n  " + "\n  ".join(duplicates)
            raise bad_request(f"error strict decoding YAML: {problem}")
        if work.options.validation == "Warn":
            work.warnings += duplicates
        work.author = _applying(work)
        if work.key not in self._storage.table(work.resource).entries:
            return await self._create(work, config)

        async def change(old: Entry) -> tuple[Object, Ledger | None]:
            live = await self.current(work, old)
            before = old.ledger.managers(work.version.schema)
            obj, managers = applied(_known(before, work.resource), live, config, work.version.schema, **self._as(work))
            await self._check_versions(work, obj, managers)
            managers = settled(before, managers) if obj is live else managers
            return await self._taken(work, obj), old.ledger if managers is before else Ledger(managers)

        return await self._writer.update(work, change, retries=RETRIES)

    async def _create(self, work: Work, config: Object) -> Result:
        """An object that does not exist yet is created, unless the configuration is about one life of it or a subresource."""
        resource, key = work.resource, work.key
        if work.subresource:
            raise not_found(resource.group, resource.plural, key.name)
        obj, managers = applied((), None, config, work.version.schema, **self._as(work))
        if uid := dig(config, "metadata", "uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(resource.group, resource.plural, key.name, why)
        obj = await self._taken(work, obj)
        obj["metadata"].pop("resourceVersion", None)
        return await self._writer.create(work, obj, Ledger(managers))

    async def _taken(self, work: Work, obj: Object) -> Object:
        """What applying made, as a private copy in the form of its schema and the version of the pipeline."""
        obj = copied(obj)
        check_identity(work, obj)
        return await self.converted(work, checked(obj, work.resource, work.version, "Ignore", [])[0])

    async def _check_versions(self, work: Work, obj: Object, managers: Managers) -> None:
        """Whoever owns fields in another version must be able to see the object in that one."""
        own = work.resource.api_version(work.version.name)
        for api_version in dict.fromkeys(m.api_version for m in managers if m.api_version != own):
            version = next(v for v in work.resource.versions if work.resource.api_version(v.name) == api_version)
            seen = await self._converter.convert(work.resource, obj, api_version)
            if problem := mistakes(seen, version.schema):
                raise StatusError(500, "", f"failed to convert new object: {problem}")

    @staticmethod
    def _as(work: Work) -> dict[str, Any]:
        return {
            "manager": work.author.manager,
            "force": bool(work.options.force),
            "subresource": work.subresource,
            "api_version": work.resource.api_version(work.version.name),
            "now": meta.timestamp(work.ctx.now),
            "reset": reset_of(work.resource, work.version, work.subresource),
        }


def _applying(work: Work) -> Any:
    return type(work.author)(work.author.user, work.author.user_agent, "apply", work.subresource, work.options.manager)


def _known(managers: Managers, resource: Resource) -> Managers:
    """Those that speak of versions which there still are; the same tuple if all do."""
    versions = {resource.api_version(v.name) for v in resource.versions}
    if all(m.api_version in versions for m in managers):
        return managers
    return tuple(m for m in managers if m.api_version in versions)


def check_identity(work: Work, obj: Object) -> None:
    """The object has to be the one of the path; a namespace that it lacks is filled in."""
    metadata = as_map(obj.get("metadata")) or {}
    name, namespace, key = metadata.get("name") or "", metadata.get("namespace") or "", work.key
    if not name:
        raise bad_request(f"the name of the object ({key.name} based on URL) was undeterminable: name must be provided")
    if name != key.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({key.name})")
    if namespace == key.namespace:
        return
    if namespace and key.namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    obj["metadata"] = {**metadata, "namespace": key.namespace}


def check_kind(config: Object, wanted: str, wanted_version: str) -> None:
    """An applied configuration says what it is."""
    api_version, kind = config.get("apiVersion") or "", config.get("kind") or ""
    if api_version != wanted_version or kind != wanted:
        group, _, version = str(api_version).rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={kind}")
