"""GET, LIST and the form of answers: versions, tables, metadata only, YAML."""

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec
import yaml

from sim.apiserver.fields.managed import encode
from sim.apiserver.front.accept import Accepted, negotiate
from sim.apiserver.front.table import table
from sim.apiserver.objects import Object, dig
from sim.apiserver.options import ListOptions, retry_later
from sim.apiserver.requests import Answer, Request
from sim.apiserver.resources import ObjectKey, Resource, Version
from sim.apiserver.selectors import field_requirements, label_selector, labels_of, matches
from sim.apiserver.status import bad_request, gone, not_found
from sim.apiserver.storage import Compacted, Entry, Storage
from sim.apiserver.versions import Converter

__all__ = ("Filter", "Form", "Reader", "answer", "form_of")

META_FIELDS = frozenset({"metadata.name", "metadata.namespace"})
TABLE, PARTIAL, PARTIAL_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter."
)


@dataclass(frozen=True, slots=True)
class Form:
    """How objects are answered. `include`: of tables; `lean`: without managedFields."""

    accepted: Accepted
    include: str = "Metadata"
    lean: bool = False

    @property
    def is_table(self) -> bool:
        return self.accepted.kind == TABLE

    @property
    def is_partial(self) -> bool:
        return self.accepted.kind in (PARTIAL, PARTIAL_LIST)


def form_of(request: Request, resource: Resource, *, is_watch: bool = False) -> Form:
    """Raises StatusError 406."""
    accepted = negotiate(request.accept, is_custom=resource.is_custom, is_watch=is_watch)
    return Form(accepted, request.query.get("includeObject", "Metadata"), request.lean)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which objects a list or watch is about; `accepts` looks at an object in its storage version."""

    accepts: Callable[[Object], bool]
    is_everything: bool
    name: str = ""
    """The only name that can be accepted, "" when there are more."""


def filter_of(resource: Resource, version: Version, options: ListOptions) -> Filter:
    """Raises StatusError 400 for selectors that cannot be read."""
    labels = label_selector(options.label_selector)
    fields_of = _fields_of(resource, version)
    known = META_FIELDS | fields_of({"metadata": {"name": "x"}, "spec": {}, "status": {}}).keys()
    fields = field_requirements(options.field_selector, known.__contains__)
    names = [value for name, equal, value in fields if equal and name == "metadata.name"]

    def accepts(obj: Object) -> bool:
        if labels and not matches(labels, labels_of(obj)):
            return False
        if not fields:
            return True
        have = {"metadata.name": obj["metadata"]["name"], "metadata.namespace": obj["metadata"].get("namespace", ""), **fields_of(obj)}
        return all((have[name] == value) == equal for name, equal, value in fields)

    return Filter(accepts, not labels and not fields, names[0] if names else "")


def _fields_of(resource: Resource, version: Version) -> Callable[[Object], Any]:
    if not version.selectable:
        return resource.strategy.selectable_fields
    paths = {path.removeprefix("."): path.removeprefix(".").split(".") for path in version.selectable}

    def read(obj: Object) -> dict[str, str]:
        out: dict[str, str] = {}
        for name, path in paths.items():
            value = dig(obj, *path)
            out[name] = "" if value is None else ("true" if value else "false") if isinstance(value, bool) else str(value)
        return out

    return read


def answer(obj: Object, accepted: Accepted, status: int = 200, warnings: Sequence[str] = ()) -> Answer:
    """Encodes an answer."""
    body = yaml.safe_dump(obj, sort_keys=False).encode() if accepted.is_yaml else msgspec.json.encode(obj)
    headers = {"Warning": ", ".join(f'299 - "{_quoted(text)}"' for text in warnings)} if warnings else {}
    return Answer(status, body, accepted.content_type, headers)


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


class Reader:
    """Answers reads from a storage."""

    def __init__(self, storage: Storage, converter: Converter, now: Callable[[], datetime]) -> None:
        self._storage = storage
        self._converter = converter
        self._now = now

    async def get(self, resource: Resource, version: Version, key: ObjectKey, form: Form) -> Object:
        """One object in the form that is wanted. Raises StatusError 404."""
        entry = self._storage.table(resource).entries.get(key)
        if entry is None:
            raise not_found(resource.group, resource.plural, key.name)
        return await self.shown(resource, version, entry, form)

    async def shown(self, resource: Resource, version: Version, entry: Entry, form: Form) -> Object:
        """An entry as clients see it."""
        obj = await self.whole(resource, version, entry, lean=form.lean)
        if form.is_table:
            return table(resource, version, [obj], include=form.include, now=self._now(), list_meta=_table_meta(obj))
        return _partial(obj, form) if form.is_partial else obj

    async def whole(self, resource: Resource, version: Version, entry: Entry, *, lean: bool) -> Object:
        """The object in a version, with managedFields unless `lean`."""
        obj = await self._converter.convert(resource, entry.obj, resource.api_version(version.name))
        return obj if lean else with_managers(obj, entry, version)

    async def list(self, resource: Resource, version: Version, namespace: str, options: ListOptions, form: Form) -> Object:
        """A list in the form that is wanted. Raises StatusError 400, 410 or 504."""
        wanted = filter_of(resource, version, options)
        revision, after = self._revision(options)
        try:
            entries = self._storage.table(resource).at(revision, namespace)
        except Compacted:
            raise gone(EXPIRED if options.continue_token else "The resourceVersion for the provided list is too old.") from None
        found = [(key, entry) for key, entry in entries if wanted.is_everything or wanted.accepts(entry.obj)]
        if after:
            found = [(key, entry) for key, entry in found if _path(key) > after]
        meta: Object = {"resourceVersion": str(revision)}
        if options.limit and len(found) > options.limit:
            left = len(found) - options.limit
            found = found[: options.limit]
            meta["continue"] = _token(revision, _path(found[-1][0]))
            if wanted.is_everything:
                meta["remainingItemCount"] = left
        return await self._as_list(resource, version, [entry for _, entry in found], meta, form)

    async def _as_list(self, resource: Resource, version: Version, entries: Sequence[Entry], meta: Object, form: Form) -> Object:
        objects = await self._converter.convert_all(resource, [e.obj for e in entries], resource.api_version(version.name))
        if not form.lean:
            objects = [with_managers(o, e, version) for o, e in zip(objects, entries, strict=True)]
        if form.is_table:
            return table(resource, version, objects, include=form.include, now=self._now(), list_meta=meta)
        if form.is_partial:
            kind = {"kind": PARTIAL_LIST, "apiVersion": f"meta.k8s.io/{form.accepted.version}"}
            return {**kind, "metadata": meta, "items": [_partial(o, form) for o in objects]}
        if not resource.is_custom:
            objects = [{k: v for k, v in o.items() if k not in ("kind", "apiVersion")} for o in objects]
        kind = {"kind": resource.list_kind or f"{resource.kind}List", "apiVersion": resource.api_version(version.name)}
        return {**kind, "metadata": meta, "items": list(objects)}

    def _revision(self, options: ListOptions) -> tuple[int, str]:
        """As of which revision, and after which object."""
        current = self._storage.revision
        if options.continue_token:
            return _parse_token(options.continue_token)
        text = options.resource_version
        if not text or text == "0":
            return current, ""
        revision = revision_of(text)
        if revision > current:
            raise retry_later_for(revision, current)
        is_exact = options.match == "Exact" or (not options.match and options.limit > 0)
        return (revision if is_exact else current), ""


def with_managers(obj: Object, entry: Entry, version: Version) -> Object:
    """A copy of the object with metadata.managedFields."""
    managed = encode(entry.ledger.managers(version.schema))
    return {**obj, "metadata": {**obj["metadata"], "managedFields": managed}} if managed else obj


def revision_of(text: str) -> int:
    """A resourceVersion from a query. Raises StatusError 400."""
    if not text.isascii() or not text.isdigit():
        raise bad_request(f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text)


def retry_later_for(revision: int, current: int) -> Exception:
    """A revision that has not happened yet."""
    error = retry_later(f"Too large resource version: {revision}, current: {current}", 1)
    error.details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
    return error


def _partial(obj: Object, form: Form) -> Object:
    return {"kind": PARTIAL, "apiVersion": f"meta.k8s.io/{form.accepted.version}", "metadata": obj["metadata"]}


def _table_meta(obj: Object) -> Object:
    return {"resourceVersion": obj["metadata"]["resourceVersion"]}


def _path(key: ObjectKey) -> str:
    return f"{key.namespace}/{key.name}" if key.namespace else key.name


def _token(revision: int, after: str) -> str:
    return (
        base64.urlsafe_b64encode(msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": revision, "start": f"{after}\0"})).decode().rstrip("=")
    )


def _parse_token(token: str) -> tuple[int, str]:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        content = msgspec.json.decode(raw, type=dict[str, Any])
        return int(content["rv"]), str(content["start"]).removesuffix("\0")
    except (ValueError, KeyError, TypeError, msgspec.MsgspecError):
        raise bad_request(f"invalid continue token: {token}") from None
