"""OpenAPI v3 documents: what kubectl explains, validates and patches by. The document of OpenAPI v2 is there but empty.

kubectl asks for v2 about kinds that v3 does not know, such as List, and leaves unchecked what it does not find there.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

import msgspec

from sim.apiserver.objects import Object
from sim.apiserver.requests import Answer, Request
from sim.apiserver.resources import Resource, Version
from sim.apiserver.schema.builtin import KUBERNETES, META, raw_document
from sim.apiserver.status import method_not_allowed

__all__ = ("OpenApi",)

INDEX: Final = "/openapi/v3"
REFERENCE: Final = "#/components/schemas/"
SCALE: Final = "io.k8s.api.autoscaling.v1.Scale"
KINDS: Final = "x-kubernetes-group-version-kind"
GENERIC: Final = tuple(f"{META}{kind}" for kind in ("DeleteOptions", "ListMeta", "ObjectMeta", "Patch", "Status"))
PATCHES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
STRATEGIC: Final = "application/strategic-merge-patch+json"
JSON_TYPES: Final = ("application/json", "application/yaml")
# A document never changes under its address, because the address has its hash.
FOREVER: Final = "public, immutable, max-age=31536000"

TITLE: Final = "Kubernetes"
OLD_TYPE: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
OLD_ANSWER_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

Listed = Sequence[tuple[Resource, Version]]


class OpenApi:
    """Documents of one set of resources, made when asked for; make a new one when a CustomResourceDefinition changes the set."""

    def __init__(self, resources: Sequence[Resource]) -> None:
        self._listed: dict[str, list[tuple[Resource, Version]]] = {}
        for resource in sorted(resources, key=lambda r: r.plural):
            for version in resource.versions:
                if version.is_served:
                    self._listed.setdefault(_place(resource.group, version.name), []).append((resource, version))
        groups = {r.group for r in resources if r.group and not r.is_custom}
        self._roots = frozenset({"api", "apis", "version", *(f"apis/{group}" for group in groups)})
        """Places of discovery."""
        self._made: dict[str, tuple[bytes, str]] = {}

    def answer(self, request: Request) -> Answer | None:
        """The answer when the path is below /openapi, else None. Raises StatusError (405)."""
        if request.path not in ("/openapi/v2", INDEX) and not request.path.startswith(f"{INDEX}/"):
            return None
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        if request.path == "/openapi/v2":
            return _old(request.accept)
        if request.path == INDEX:
            return Answer(200, self._index(), "text/plain; charset=utf-8")
        place = request.path.removeprefix(f"{INDEX}/")
        if place not in self._listed and place not in self._roots:
            return Answer(404, b"")
        if not _takes_json(request.accept):
            return Answer(406, b"", headers={"Vary": "Accept"})
        body, digest = self._document(place)
        if request.query.get("hash", digest) != digest:
            return Answer(301, b"", headers={"Location": _address(place, digest)})
        headers = {"Cache-Control": FOREVER, "ETag": f'"{digest}"', "Vary": "Accept"}
        known = [one.strip().removeprefix("W/") for one in request.if_none_match.split(",")]
        return Answer(304, b"", headers=headers) if headers["ETag"] in known else Answer(200, body, headers=headers)

    def _index(self) -> bytes:
        places = sorted({*self._listed, *self._roots})
        addresses = {place: {"serverRelativeURL": _address(place, self._document(place)[1])} for place in places}
        return msgspec.json.encode({"paths": addresses})

    def _document(self, place: str) -> tuple[bytes, str]:
        """Body and hash."""
        made = self._made.get(place)
        if made is None:
            listed = self._listed.get(place, [])
            # Built-in documents depend on nothing but which kinds are served, so all servers of a process share them.
            is_shared = not any(resource.is_custom for resource, _ in listed)
            key = (place, tuple(resource.plural for resource, _ in listed))
            made = _SHARED.get(key) if is_shared else None
            if made is None:
                body = msgspec.json.encode(_spec(listed) if listed else _root(place))
                made = body, hashlib.sha512(body).hexdigest().upper()
            if is_shared:
                _SHARED[key] = made
            self._made[place] = made
        return made


_SHARED: Final[dict[tuple[str, tuple[str, ...]], tuple[bytes, str]]] = {}


def _place(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _address(place: str, digest: str) -> str:
    return f"{INDEX}/{place}?hash={digest}"


def _takes_json(accept: str) -> bool:
    media = [clause.partition(";")[0].strip() for clause in accept.split(",")]
    return not accept or any(one in ("application/json", "application/*", "*/*") for one in media)


def _old(accept: str) -> Answer:
    info = {"title": TITLE, "version": KUBERNETES}
    if OLD_TYPE in accept:
        # Fields of the message Document: swagger 1, info 2 with title 1 and version 2, paths 8.
        return Answer(
            200, _field(1, b"2.0") + _field(2, _field(1, TITLE.encode()) + _field(2, KUBERNETES.encode())) + _field(8, b""), OLD_ANSWER_TYPE
        )
    if not _takes_json(accept):
        return Answer(406, b"", headers={"Vary": "Accept"})
    return Answer(200, msgspec.json.encode({"swagger": "2.0", "info": info, "paths": {}}))


def _field(number: int, value: bytes) -> bytes:
    """A field of a protobuf message that has a length, which must be below 128."""
    return bytes((number << 3 | 2, len(value))) + value


def _spec(listed: Listed) -> Object:
    group, version = listed[0][0].group, listed[0][1].name
    try:
        documented = raw_document(group, version)
    except KeyError:
        documented = {}
    schemas = dict(documented)
    names = {kind: name for name, schema in documented.items() for kind in _kinds(schema, group, version)}
    custom = [(resource, served) for resource, served in listed if resource.is_custom]
    if custom:
        schemas |= _referred((*GENERIC, SCALE))
    for resource, served in custom:
        names[resource.kind] = name = _name_of(resource, served)
        schemas[name] = _custom(resource, served)
        schemas[f"{name}List"] = _custom_list(resource, served, name)
    paths: Object = {}
    for resource, served in listed:
        paths |= _paths(resource, served, names.get(resource.kind, ""))
    info = {"title": TITLE, "version": KUBERNETES}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def _root(place: str) -> Object:
    """The document of a path that says what is served."""
    operation = {"operationId": f"get_{place.replace('/', '_')}", "responses": {"200": {"description": "OK"}}}
    info = {"title": TITLE, "version": KUBERNETES}
    return {"openapi": "3.0.0", "info": info, "paths": {f"/{place}/": {"get": operation}}, "components": {"schemas": {}}}


def _kinds(schema: Object, group: str, version: str) -> Iterator[str]:
    for known in schema.get(KINDS, ()):
        if (known["group"], known["version"]) == (group, version):
            yield known["kind"]


def _name_of(resource: Resource, version: Version) -> str:
    """io.grove.v1alpha1.PodClique: the group backwards."""
    return ".".join([*reversed(resource.group.split(".")), version.name, resource.kind])


def _gvk(resource: Resource, version: Version, suffix: str = "") -> Object:
    return {"group": resource.group, "kind": f"{resource.kind}{suffix}", "version": version.name}


def _reference(name: str) -> Object:
    return {"$ref": f"{REFERENCE}{name}"}


def _custom(resource: Resource, version: Version) -> Object:
    written = version.schema.source or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {**_TYPE_META, "metadata": {"allOf": [_reference(f"{META}ObjectMeta")]}}
    described: Mapping[str, Any] = written.get("properties") or {}
    own = {name: field for name, field in described.items() if name not in properties}
    return {**written, "properties": {**properties, **own}, KINDS: [_gvk(resource, version)]}


def _custom_list(resource: Resource, version: Version, name: str) -> Object:
    items = {"type": "array", "items": _reference(name)}
    properties = {**_TYPE_META, "metadata": {"allOf": [_reference(f"{META}ListMeta")]}, "items": items}
    head = {"description": f"{resource.kind}List is a list of {resource.kind}", "type": "object", "required": ["items"]}
    return {**head, "properties": properties, KINDS: [_gvk(resource, version, "List")]}


_TYPE_META: Final = {
    "apiVersion": {"type": "string", "description": "Group and version of the schema that the object follows."},
    "kind": {"type": "string", "description": "Name of the schema that the object follows."},
}


def _referred(names: Sequence[str]) -> dict[str, Object]:
    """Schemas by name with all that they refer to."""
    known = {**raw_document("autoscaling", "v1"), **raw_document("", "v1")}
    found: dict[str, Object] = {}
    waiting = [name for name in names if name in known]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = known[name]
            waiting += _references(known[name])
    return dict(sorted(found.items()))


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        fields = cast("Object", value)
        for key, inner in fields.items():
            if key == "$ref":
                yield inner.removeprefix(REFERENCE)
            else:
                yield from _references(inner)
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        for inner in items:
            yield from _references(inner)


def _query(name: str, kind: str = "string") -> Object:
    return {"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": True}}


WRITING: Final = (_query("dryRun"), _query("fieldManager"), _query("fieldValidation"))
READING: Final = (
    _query("labelSelector"),
    _query("fieldSelector"),
    _query("limit", "integer"),
    _query("continue"),
    _query("watch", "boolean"),
)
DELETING: Final = (_query("dryRun"), _query("gracePeriodSeconds", "integer"), _query("propagationPolicy"))


class How(NamedTuple):
    """HTTP method, x-kubernetes-action and query parameters of a verb."""

    method: str
    action: str
    parameters: tuple[Object, ...]


_ON_COLLECTION: Final[Mapping[str, How]] = {
    "list": How("get", "list", READING),
    "create": How("post", "post", WRITING),
    "deletecollection": How("delete", "deletecollection", (*DELETING, *READING)),
}
_ON_ITEM: Final[Mapping[str, How]] = {
    "get": How("get", "get", ()),
    "update": How("put", "put", WRITING),
    "patch": How("patch", "patch", (*WRITING, _query("force", "boolean"))),
    "delete": How("delete", "delete", DELETING),
}


def _paths(resource: Resource, version: Version, schema: str) -> Object:
    root = f"/{_place(resource.group, version.name)}"
    scope = f"{root}/namespaces/{{namespace}}" if resource.is_namespaced else root
    where = ("namespace", "name") if resource.is_namespaced else ("name",)
    content = _reference(schema) if schema else {"type": "object"}
    collection, item = (
        {how.method: _operation(resource, version, content, how) for verb, how in operations.items() if verb in resource.verbs}
        for operations in (_ON_COLLECTION, _ON_ITEM)
    )
    path = f"{scope}/{resource.plural}"
    out: Object = {path: {**collection, "parameters": [_in_path(one) for one in where[:-1]]}}
    if item:
        out[f"{path}/{{name}}"] = {**item, "parameters": [_in_path(one) for one in where]}
    if resource.is_namespaced and "get" in collection:
        out[f"{root}/{resource.plural}"] = {"get": collection["get"]}
    return out


def _in_path(name: str) -> Object:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}


def _operation(resource: Resource, version: Version, schema: Object, how: How) -> Object:
    operation: Object = {
        "operationId": f"{how.action}_{resource.group}_{version.name}_{resource.plural}",
        "parameters": list(how.parameters),
        "responses": {"200": {"description": "OK", "content": {media: {"schema": schema} for media in JSON_TYPES}}},
        "x-kubernetes-action": how.action,
        KINDS: _gvk(resource, version),
    }
    if how.method in ("post", "put"):
        operation["requestBody"] = {"content": {media: {"schema": schema} for media in JSON_TYPES}, "required": True}
    elif how.method == "patch":
        # kubectl takes from here whether it may send strategic merge patches.
        media = PATCHES if resource.is_custom else (*PATCHES, STRATEGIC)
        operation["requestBody"] = {"content": {one: {"schema": _reference(f"{META}Patch")} for one in media}, "required": True}
    return operation
