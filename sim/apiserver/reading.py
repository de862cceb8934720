"""GET, LIST and the form of answers: versions, tables, metadata only, YAML."""

import base64
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import msgspec
import yaml

from api.fielderrors import invalid
from sim.apiserver.fields.managed import encode
from sim.apiserver.front.accept import Accepted, negotiate
from sim.apiserver.front.table import Include, partial, table
from sim.apiserver.objects import Object, dig
from sim.apiserver.options import ListOptions, retry_later
from sim.apiserver.requests import Answer, Request
from sim.apiserver.resources import ObjectKey, Resource, Version
from sim.apiserver.schema.jsonerrors import json_error
from sim.apiserver.scheme import go_kind
from sim.apiserver.selectors import field_requirements, label_selector, labels_of, matches
from sim.apiserver.status import StatusError, bad_request, gone, not_acceptable, not_found
from sim.apiserver.storage import Compacted, Entry, Storage
from sim.apiserver.versions import Converter

__all__ = ("Filter", "Form", "Reader", "answer", "form_of", "warned")

TABLE, PARTIAL, PARTIAL_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
FORMAT = "meta.k8s.io/v1"
BASE64 = re.compile(r"[A-Za-z0-9_-]*")
INCLUDES: Mapping[str, Include] = {"None": "None", "Metadata": "Metadata", "Object": "Object"}
MAX_TOKEN_DEPTH = 10_000
EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. "
    "You can start a new list without the continue parameter."
)


class _Token(msgspec.Struct):
    v: str = ""
    rv: int = 0
    start: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """How objects are answered. `include`: of tables; `lean`: without managedFields."""

    accepted: Accepted
    include: Include = "Metadata"
    lean: bool = False

    @property
    def is_table(self) -> bool:
        return self.accepted.kind == TABLE

    @property
    def is_partial(self) -> bool:
        return self.accepted.kind in (PARTIAL, PARTIAL_LIST)


def form_of(request: Request, resource: Resource, *, is_watch: bool = False, is_list: bool = False) -> Form:
    """Raises StatusError 406."""
    accepted = negotiate(request.accept, is_custom=resource.is_custom, is_watch=is_watch, is_list=is_list)
    asked = request.query.get("includeObject") or "Metadata"
    if (include := INCLUDES.get(asked)) is None and accepted.kind == TABLE:
        error = invalid("includeObject", asked, "must be 'Metadata', 'Object', 'None', or empty")
        raise bad_request(f"Unable to convert to Table as requested: {error}")
    return Form(accepted, include or "Metadata", request.lean)


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
    own = fields_of({"metadata": {"name": "x"}, "spec": {}, "status": {}}).keys()
    has_words = bool(own) or resource.is_custom

    def check(field: str) -> None:
        if field in own or field == "metadata.name" or (field == "metadata.namespace" and (resource.is_namespaced or not has_words)):
            return
        if has_words:
            raise bad_request(resource.strategy.unselectable.format(field))
        raise bad_request(f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"')

    fields = field_requirements(options.field_selector, check)
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
    body = yaml.safe_dump(obj).encode() if accepted.is_yaml else msgspec.json.encode(obj) + b"\n"
    headers = {"Warning": ", ".join(f'299 - "{_quoted(text)}"' for text in warnings)} if warnings else {}
    return Answer(status, body, accepted.content_type, headers)


def warned(answered: Answer, text: str) -> Answer:
    """The answer with one more warning, before all others."""
    others = answered.headers.get("Warning")
    warning = f'299 - "{_quoted(text)}"'
    return replace(answered, headers={**answered.headers, "Warning": f"{warning}, {others}" if others else warning})


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


class Reader:
    """Answers reads from a storage."""

    def __init__(self, storage: Storage, converter: Converter, now: Callable[[], datetime]) -> None:
        self._storage = storage
        self._converter = converter
        self._now = now

    async def get(self, resource: Resource, version: Version, key: ObjectKey, form: Form, revision: str = "") -> Object:
        """One object in the form that is wanted, not older than `revision`. Raises StatusError 404, or 504 for the future."""
        if revision and (wanted := revision_of(revision)) > self._storage.revision:
            raise retry_later_for(wanted, self._storage.revision)
        entry = self._storage.table(resource).entries.get(key)
        if entry is None:
            raise not_found(resource.group, resource.plural, key.name)
        return await self.shown(resource, version, entry, form)

    async def shown(self, resource: Resource, version: Version, entry: Entry, form: Form) -> Object:
        """An entry as clients see it."""
        obj = await self.whole(resource, version, entry, lean=form.lean)
        if form.is_table:
            return table(resource, version, [obj], include=form.include, now=self._now(), list_meta=_table_meta(obj))
        if form.accepted.kind == PARTIAL_LIST:
            raise _no_list(resource)
        return partial(obj, form.accepted.version) if form.is_partial else obj

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
            raise _expired(options.continue_token, after) from None
        found = [(key, entry) for key, entry in entries if wanted.is_everything or wanted.accepts(entry.obj)]
        if after:
            found = [(key, entry) for key, entry in found if _path(key, namespace) > after]
        meta: Object = {"resourceVersion": str(revision)}
        if resource.is_custom and not form.accepted.kind:
            meta["continue"] = ""
        limit = 0 if options.resource_version == "0" and not options.continue_token else max(options.limit, 0)
        if limit and len(found) > limit:
            left = len(found) - limit
            found = found[:limit]
            meta["continue"] = _token(revision, _path(found[-1][0], namespace))
            if wanted.is_everything:
                meta["remainingItemCount"] = left
        return await self._as_list(resource, version, [entry for _, entry in found], meta, form)

    async def _as_list(self, resource: Resource, version: Version, entries: Sequence[Entry], meta: Object, form: Form) -> Object:
        objects = await self._converter.convert_all(resource, [e.obj for e in entries], resource.api_version(version.name))
        if not form.lean:
            objects = [with_managers(o, e, version) for o, e in zip(objects, entries, strict=True)]
        if form.is_table:
            return table(resource, version, objects, include=form.include, now=self._now(), list_meta=meta)
        if form.accepted.kind == PARTIAL:
            raise _mistaken(PARTIAL, "a list", resource, "List")
        if form.is_partial:
            kind = {"kind": PARTIAL_LIST, "apiVersion": f"meta.k8s.io/{form.accepted.version}"}
            return {**kind, "metadata": meta, "items": [partial(o, form.accepted.version) for o in objects]}
        if not resource.is_custom:
            objects = [{k: v for k, v in o.items() if k not in ("kind", "apiVersion")} for o in objects]
        kind = {"kind": resource.list_kind or f"{resource.kind}List", "apiVersion": resource.api_version(version.name)}
        return {**kind, "metadata": meta, "items": list(objects)}

    def _revision(self, options: ListOptions) -> tuple[int, str]:
        """As of which revision, and after which object."""
        current = self._storage.revision
        text = options.resource_version
        if options.continue_token:
            if text not in ("", "0"):
                raise bad_request("specifying resource version is not allowed when using continue")
            revision, after = _parse_token(options.continue_token)
            return (current if revision < 0 else revision), after
        if not text or text == "0":
            return current, ""
        try:
            revision = revision_of(text)
        except StatusError as error:
            raise bad_request(f"invalid resource version: {error.message}") from None
        if revision > current:
            raise retry_later_for(revision, current)
        is_exact = options.match == "Exact" or (not options.match and options.limit > 0)
        return (revision if is_exact else current), ""


def _no_list(resource: Resource) -> StatusError:
    if resource.is_custom:
        return StatusError(500, "", "content is not a list")
    return _mistaken(PARTIAL_LIST, "not a list", resource, "")


def _mistaken(asked: str, found: str, resource: Resource, suffix: str) -> StatusError:
    """Of a form that only lists have, or only objects."""
    kind = "unstructured.Unstructured" if resource.is_custom else go_kind(resource.group, resource.kind)
    return not_acceptable(f"you requested {asked}, but the requested object is {found} (*{kind}{suffix})")


def with_managers(obj: Object, entry: Entry, version: Version) -> Object:
    """A copy of the object with metadata.managedFields."""
    managed = encode(entry.ledger.managers(version.schema))
    return {**obj, "metadata": {**obj["metadata"], "managedFields": managed}} if managed else obj


def revision_of(text: str) -> int:
    """A resourceVersion from a query. Raises StatusError 500, as the server takes it for a fault of its own."""
    if not text.isascii() or not text.isdigit():
        raise StatusError(500, "", f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')
    # More digits than any such number has need not be read.
    digits = text.lstrip("0") or "0"
    if len(digits) > 20 or int(digits) >= 2**64:
        raise StatusError(500, "", f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": value out of range')
    return int(digits)


def retry_later_for(revision: int, current: int) -> StatusError:
    """A revision that has not happened yet."""
    error = retry_later(f"Timeout: Too large resource version: {revision}, current: {current}", 1)
    error.details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}
    return error


def _table_meta(obj: Object) -> Object:
    return {"resourceVersion": obj["metadata"]["resourceVersion"]}


def _path(key: ObjectKey, namespace: str) -> str:
    """Of an object below what is listed."""
    return key.name if namespace or not key.namespace else f"{key.namespace}/{key.name}"


def _token(revision: int, after: str) -> str:
    """`revision` -1: whatever is current when the token is used."""
    content = msgspec.json.encode({"v": FORMAT, "rv": revision, "start": f"{after}\0"})
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _expired(token: str, after: str) -> StatusError:
    """Of a list it is the end; of a continued one the answer offers to go on in what is there now."""
    if not token:
        return gone("The resourceVersion for the provided list is too old.")
    error = gone(EXPIRED)
    error.metadata = {"continue": _token(-1, after)}
    return error


def _parse_token(token: str) -> tuple[int, str]:
    bad = BASE64.match(token)
    end = bad.end() if bad is not None else 0
    if end < len(token) or len(token) % 4 == 1:
        at = end if end < len(token) else len(token) - 1
        raise _bad_token(f"illegal base64 data at input byte {at}")
    text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    try:
        content = msgspec.json.decode(text, type=_Token)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _bad_token(json_error(text.decode("latin-1"), MAX_TOKEN_DEPTH) or str(error)) from None
    if content.v != FORMAT:
        raise _bad_token(f"server does not recognize this encoded version {content.v}")
    if content.rv == 0:
        raise _bad_token(f"incorrect encoded start resourceVersion (version {content.v})")
    if not content.start:
        raise _bad_token(f"encoded start key empty (version {content.v})")
    start = content.start.removeprefix("/")
    if posixpath.normpath(f"/{start}") != f"/{start}":
        raise _bad_token(content.start)
    return content.rv, start.removesuffix("\0")


def _bad_token(why: str) -> StatusError:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")
