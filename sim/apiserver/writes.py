"""Create and update: the pipeline that every write goes through.

decode → defaults → mutating admission → hooks of the kind → validation → validating admission → commit. Without webhooks nothing in it
waits, so no other request comes between the read of the old object and the commit of the new one; with webhooks the old one is compared
again before the commit.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from api.fielderrors import FieldError, invalid
from sim.apiserver import metadata as meta
from sim.apiserver.confining import confined, fill_written
from sim.apiserver.fields.lazy import NOBODY, Ledger
from sim.apiserver.fields.managed import Managers, claimed
from sim.apiserver.objects import Object, copied
from sim.apiserver.options import WriteOptions
from sim.apiserver.owning import reset_of
from sim.apiserver.resources import Context, ObjectKey, Resource, Version
from sim.apiserver.schema.fields import fill_defaults, prune
from sim.apiserver.schema.model import Schema
from sim.apiserver.status import StatusError, already_exists, conflict, forbidden, not_found
from sim.apiserver.status import invalid as invalid_status
from sim.apiserver.storage import Author, Entry, Storage, is_ending
from sim.apiserver.versions import Converter

__all__ = ("Admission", "Attributes", "Result", "Work", "Writer", "stale")

MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"
FOLDERS = {"nodes": "minions", "services": "services/specs", "endpoints": "services/endpoints", "ingresses": "ingress"}
"""Resources that are stored under another name."""
GENERATED_TRIES = 8
ENDING = "create not allowed while custom resource definition is terminating"
UINT64 = 2**64
DIGITS = re.compile(r"[0-9]+")
STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
UNQUALIFIED = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
TWINS = (
    ".metadata.ownerReferences contains duplicate entries{}; API server dedups owner references in 1.20+, and may reject such requests "
    "as early as 1.24; please fix your requests; duplicate UID(s) observed: {}"
)


@dataclass(slots=True)
class Work:
    """A write on its way. `version`: in which the client speaks; `author`, `options` and `warnings` go with it."""

    resource: Resource
    version: Version
    key: ObjectKey
    subresource: str
    options: WriteOptions
    ctx: Context
    author: Author
    warnings: list[str] = field(default_factory=list[str])
    operation: str = "CREATE"
    claim: Managers | None = None
    """Managers that the client put in place of the stored ones."""

    @property
    def api_version(self) -> str:
        """In which hooks, validation and ownership see the object: custom resources as the client speaks, others as stored."""
        return self.resource.api_version(self.version.name) if self.resource.is_custom else self.resource.stored_version


@dataclass(frozen=True, slots=True)
class Result:
    """What a write left: the entry (of a dry run: as it would have been) and whether it was created."""

    entry: Entry
    is_created: bool = False


@dataclass(frozen=True, slots=True)
class Attributes:
    """What admission is asked about. `obj` None for deletes; `options`: CreateOptions and so on as JSON."""

    operation: str
    resource: Resource
    version: Version
    key: ObjectKey
    subresource: str
    obj: Object | None
    old: Object | None
    options: Object
    ctx: Context


class Admission(Protocol):
    """Webhooks. `mutate` returns the object, changed or not; both raise StatusError to refuse and may add warnings."""

    @property
    def is_active(self) -> bool:
        """Whether there is any webhook at all."""
        ...

    async def mutate(self, attributes: Attributes, warnings: list[str]) -> Object: ...

    async def validate(self, attributes: Attributes, warnings: list[str]) -> None: ...


Change = Callable[[Entry], Awaitable[tuple[Object, Ledger | None]]]
"""From the stored entry to the wanted object (a private copy) in `Work.api_version`; with a ledger of its own for server-side apply."""


class Writer:
    """Carries out creates and updates on a storage."""

    def __init__(self, storage: Storage, converter: Converter, admission: Admission) -> None:
        self._storage = storage
        self._converter = converter
        self._admission = admission

    async def create(self, work: Work, obj: Object, ledger: Ledger | None = None) -> Result:
        """Stores a new object, given as a private copy in the client's version. `ledger`: of a server-side apply."""
        resource, ctx, strategy = work.resource, work.ctx, work.resource.strategy
        metadata = meta.opened(obj)
        if metadata.pop("resourceVersion", ""):
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        _drop_twins(work, metadata)
        if resource.is_namespaced:
            metadata["namespace"] = work.key.namespace
        obj = await self._converter.convert(resource, obj, work.api_version)
        fill_defaults(obj, self._schema(work))
        strategy.default(obj)
        # What admission and the hooks of the kind add belongs to nobody.
        owned = obj if resource.is_custom else copied(obj)
        obj = await self._mutate(work, obj, None)
        meta.prepare_create(metadata := meta.opened(obj), ctx.now, ctx.rng, strategy.generation)
        if work.version.has_status and resource.is_custom:
            obj.pop("status", None)
        self._name(work, metadata)
        strategy.prepare_create(ctx, obj)
        errors = meta.validate(metadata, namespaced=resource.is_namespaced, name_errors=self._name_errors(resource, metadata))
        errors += _finalizer_errors(work, metadata)
        self._refuse(work, metadata.get("name", ""), [*errors, *strategy.validate_create(ctx, obj)])
        await self._validate(work, obj, None)
        key = work.key = ObjectKey(work.key.namespace, metadata["name"])
        if resource.is_custom and is_ending(self._storage, resource):
            raise forbidden(resource.group, resource.plural, key.name, ENDING)
        obj = await self._stored(work, obj)
        if (taken := self._storage.table(resource).entries.get(key)) is not None:
            error = already_exists(resource.group, resource.plural, key.name)
            if taken.obj["metadata"].get("deletionTimestamp"):
                error.message = f"object is being deleted: {error.message}"
            raise error
        if ledger is None:
            ledger = self._noted(work, NOBODY, None, obj if resource.is_custom else owned)
        if ctx.is_dry_run:
            return Result(Entry(obj, ledger, 0), is_created=True)
        entry = self._storage.commit(resource, key, obj, ledger, work.author)
        assert entry is not None  # noqa: S101 - an object was given
        return Result(entry, is_created=True)

    async def admit(self, work: Work, posted: Object) -> Object:
        """What is posted to a subresource, after all webhooks have seen it."""
        posted = await self._mutate(work, posted, None)
        await self._validate(work, posted, None)
        return posted

    async def update(self, work: Work, change: Change, *, retries: int = 0) -> Result:
        """Replaces a stored object by what `change` makes of it. `retries`: how often to begin again when it changed meanwhile."""
        work.operation = "UPDATE"
        table = self._storage.table(work.resource)
        while True:
            old = table.entries.get(work.key)
            if old is None:
                raise not_found(work.resource.group, work.resource.plural, work.key.name)
            obj, ledger = await change(old)
            result = await self._replace(work, old, obj, ledger)
            if result is not None:
                return result
            if retries == 0:
                raise self._modified(work)
            retries -= 1

    async def _replace(self, work: Work, old: Entry, obj: Object, ledger: Ledger | None) -> Result | None:
        """None: the stored object is not `old` any more."""
        resource, ctx, strategy = work.resource, work.ctx, work.resource.strategy
        before = await self._converter.convert(resource, old.obj, work.api_version)
        if not work.subresource and ledger is None and "managedFields" in obj["metadata"]:
            managers = old.ledger.managers(self._schema(work))
            claim = claimed(managers, obj["metadata"]["managedFields"], subresource="")
            work.claim = None if claim is managers or claim == managers else claim
        metadata = meta.opened(obj)
        self._check_version(work, metadata, old)
        obj["metadata"] = metadata
        obj = confined(obj, before, resource, work.version, work.subresource)
        fill_written(obj, self._schema(work), work.subresource)
        strategy.default(obj)
        if self._admission.is_active:
            obj = confined(await self._mutate(work, obj, before), before, resource, work.version, work.subresource)
        metadata = meta.opened(obj)
        metadata.pop("resourceVersion", None)
        _drop_twins(work, metadata)
        meta.prepare_update(metadata, before["metadata"])
        strategy.prepare_update(ctx, obj, before, work.subresource)
        self._count_generation(work, obj, before)
        errors = meta.validate_update(metadata, before["metadata"], meta.layers(resource.plural, work.subresource))
        if (known := before["metadata"].get("finalizers")) != metadata.get("finalizers"):
            # Two layers of the server say the same.
            errors += _finalizer_errors(work, metadata, known or ()) * 2
        self._refuse(work, work.key.name, [*errors, *strategy.validate_update(ctx, obj, before, work.subresource)])
        await self._validate(work, obj, before)
        obj = await self._stored(work, obj)
        if self._storage.table(resource).entries.get(work.key) is not old:
            return None
        return Result(self.settle(work, old, obj, ledger))

    async def _stored(self, work: Work, obj: Object) -> Object:
        """The object as it is stored: custom resources are pruned and get their defaults once more, by the schema of that version."""
        resource = work.resource
        if obj["apiVersion"] == resource.stored_version:
            return obj
        stored = await self._converter.convert(resource, obj, resource.stored_version)
        version = resource.version(resource.storage)
        if resource.is_custom and version is not None:
            stored = copied(stored)
            prune(stored, version.schema)
            fill_defaults(stored, version.schema)
        return stored

    def settle(self, work: Work, old: Entry, obj: Object, ledger: Ledger | None = None) -> Entry:
        """Commits an object that has passed everything; deletes it when that was all that its deletion waited for."""
        if work.ctx.is_dry_run or not self._is_done(work.resource, obj["metadata"], obj):
            return self.keep(work, old, obj, ledger)
        self._storage.commit(work.resource, work.key, None, old.ledger, work.author)
        # What is answered was never stored, and so has no revision of its own.
        metadata = {**obj["metadata"], "resourceVersion": old.obj["metadata"]["resourceVersion"]}
        return Entry({**obj, "metadata": metadata}, ledger or old.ledger, old.revision)

    def keep(self, work: Work, old: Entry, obj: Object, ledger: Ledger | None = None) -> Entry:
        """Commits an object if it has changed."""
        metadata = obj["metadata"] = {**obj["metadata"], "resourceVersion": old.obj["metadata"]["resourceVersion"]}
        if metadata == old.obj["metadata"] and obj == old.obj and work.claim is None and (ledger is None or ledger is old.ledger):
            return old
        if ledger is None:
            ledger = self._noted(work, old.ledger if work.claim is None else Ledger(work.claim), old.obj, obj)
        if work.ctx.is_dry_run:
            return Entry(obj, ledger, old.revision)
        entry = self._storage.commit(work.resource, work.key, obj, ledger, work.author)
        assert entry is not None  # noqa: S101 - an object was given
        return entry

    @staticmethod
    def _is_done(resource: Resource, metadata: Object, obj: Object) -> bool:
        """Whether an object that is being deleted has nothing left to wait for."""
        if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
            return False
        return not metadata.get("deletionGracePeriodSeconds") and not resource.strategy.is_held(obj)

    def _check_version(self, work: Work, metadata: Object, old: Entry) -> None:
        """Preconditions in the object itself: its uid and resourceVersion."""
        resource, key = work.resource, work.key
        uid, known = metadata.get("uid"), old.obj["metadata"]["uid"]
        if uid and uid != known and work.author.verb not in ("patch", "apply"):
            raise conflict(resource.group, resource.plural, key.name, stale(resource, key, "UID", uid, known))
        revision = metadata.get("resourceVersion", "")
        if revision in ("", "0"):
            if not resource.strategy.may_update_unconditionally and work.subresource != "scale":
                error = invalid("metadata.resourceVersion", 0, "must be specified for an update")
                raise invalid_status(resource.group, resource.plural, key.name, [error])
        elif revision != str(old.revision):
            if not DIGITS.fullmatch(revision):
                raise StatusError(500, "", f'strconv.ParseUint: parsing "{revision}": invalid syntax')
            if int(revision) >= UINT64:
                raise StatusError(500, "", f'strconv.ParseUint: parsing "{revision}": value out of range')
            raise self._modified(work)

    def _modified(self, work: Work) -> Exception:
        return conflict(work.resource.group, work.resource.plural, work.key.name, MODIFIED)

    def _name(self, work: Work, metadata: Object) -> None:
        """Makes up a name where only its beginning was given."""
        if metadata.get("name") or not (base := metadata.get("generateName")):
            return
        entries = self._storage.table(work.resource).entries
        for _ in range(GENERATED_TRIES):
            metadata["name"] = meta.generated_name(base, work.ctx.rng)
            if ObjectKey(work.key.namespace, metadata["name"]) not in entries:
                return

    @staticmethod
    def _name_errors(resource: Resource, metadata: Object) -> list[str]:
        name = metadata.get("name", "")
        check = resource.strategy.name_check
        return list(check(name)) if check is not None else [] if meta.is_subdomain(name) else meta.subdomain_errors(name)

    @staticmethod
    def _refuse(work: Work, name: str, errors: list[FieldError]) -> None:
        if errors:
            raise invalid_status(work.resource.place[0], work.resource.kind, name, errors)

    def _schema(self, work: Work) -> Schema:
        if work.resource.is_custom or work.version.name == work.resource.storage:
            return work.version.schema
        stored = work.resource.version(work.resource.storage)
        return (stored or work.version).schema

    @staticmethod
    def _count_generation(work: Work, obj: Object, before: Object) -> None:
        if not work.resource.strategy.generation or work.subresource == "status":
            return
        keeps_status = work.version.has_status or not work.resource.is_custom
        ignored = ("metadata", "status") if keeps_status else ("metadata",)
        if any(obj.get(k) != before.get(k) for k in {**obj, **before} if k not in ignored):
            obj["metadata"]["generation"] = before["metadata"].get("generation", 0) + 1

    async def _mutate(self, work: Work, obj: Object, old: Object | None) -> Object:
        if not self._admission.is_active:
            return obj
        return await self._admission.mutate(self._attributes(work, obj, old), work.warnings)

    async def _validate(self, work: Work, obj: Object, old: Object | None) -> None:
        if self._admission.is_active:
            await self._admission.validate(self._attributes(work, obj, old), work.warnings)

    @staticmethod
    def _attributes(work: Work, obj: Object, old: Object | None) -> Attributes:
        options: Object = {"kind": "CreateOptions" if work.operation == "CREATE" else "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}
        if work.options.manager:
            options["fieldManager"] = work.options.manager
        if work.ctx.is_dry_run:
            options["dryRun"] = ["All"]
        key = ObjectKey(work.key.namespace, work.key.name or obj["metadata"].get("name", ""))
        return Attributes(work.operation, work.resource, work.version, key, work.subresource, obj, old, options, work.ctx)

    def _noted(self, work: Work, ledger: Ledger, old: Object | None, new: Object) -> Ledger:
        """The ledger after a write by the work's manager."""
        return ledger.update(
            old,
            new,
            self._schema(work),
            manager=work.author.manager,
            subresource=work.subresource,
            api_version=work.api_version,
            now=meta.timestamp(work.ctx.now),
            reset=reset_of(work.resource, work.version, work.subresource),
        )


def stale(resource: Resource, key: ObjectKey, what: str, wanted: str, found: str) -> str:
    """The storage layer's words for a precondition that does not hold."""
    where = f"{resource.group}/{resource.plural}" if resource.is_custom else FOLDERS.get(resource.plural, resource.plural)
    path = f"/registry/{where}/{key.namespace}/{key.name}" if key.namespace else f"/registry/{where}/{key.name}"
    why = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    return f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: {why}"


def _drop_twins(work: Work, metadata: Object) -> None:
    """Leaves out owner references that are there already, with a warning."""
    owners: list[Object] = metadata.get("ownerReferences") or []
    if len(owners) < 2:
        return
    kept: list[Object] = []
    for owner in owners:
        if owner not in kept:
            kept.append(owner)
    if len(kept) < len(owners):
        twins = [owner["uid"] for i, owner in enumerate(owners) if owner in owners[:i]]
        when = " after mutating admission happens" if work.author.verb == "patch" else ""
        work.warnings.append(TWINS.format(when, ", ".join(twins)))
        metadata["ownerReferences"] = kept


def _finalizer_errors(work: Work, metadata: Object, known: Sequence[str] = ()) -> list[FieldError]:
    """Built-in kinds want names of finalizers to be qualified; others warn of new ones that are not."""
    names: list[str] = metadata.get("finalizers") or []
    odd = [(i, name) for i, name in enumerate(names) if "/" not in name and name not in STANDARD_FINALIZERS]
    if work.resource.is_custom:
        new = sorted({name for _, name in odd} - set(known))
        work.warnings += [f'metadata.finalizers: "{name}": {UNQUALIFIED}' for name in new]
        return []
    text = "name is neither a standard finalizer name nor is it fully qualified"
    return [invalid(f"metadata.finalizers[{i}]", name, text) for i, name in odd]
