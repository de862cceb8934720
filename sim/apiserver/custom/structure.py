"""Whether an openAPIV3Schema is structural, and its rules and defaults sound."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

from collections.abc import Iterator
from typing import Any, Final, cast

from api.fielderrors import FieldError, forbidden, invalid, not_supported, required
from sim.apiserver.custom.ruling import check_entries
from sim.apiserver.objects import Object, copied
from sim.apiserver.schema.cel.syntax import CelSyntaxError
from sim.apiserver.schema.check import validate
from sim.apiserver.schema.fields import prune
from sim.apiserver.schema.regexes import PatternError, go_regex
from sim.apiserver.schema.structural import compile_structural

__all__ = ("check_schema",)

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_LISTS: Final = ("atomic", "set", "map")
_NOT_IN_LOGIC: Final = ("type", "default", "description", "nullable", "additionalProperties", "x-kubernetes-preserve-unknown-fields",
                        "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string")  # fmt: skip


def check_schema(root: Object, path: str) -> list[FieldError]:
    """Errors of a whole schema; `path`: of the schema in the definition."""
    errors = list(_form(root, path))
    kind = root.get("type", "")
    if not errors and not kind:
        errors.append(required(f"{path}.type", "must not be empty at the root"))
    elif not errors:
        if kind != "object":
            errors.append(invalid(f"{path}.type", kind, "must be object at the root"))
        errors += _identity(root, path)
        errors += _node(root, path, "root")
    if not errors:
        errors += check_entries(root, path)
    if not errors:
        errors += _defaults(root, path)
    return errors


def _identity(root: Object, path: str) -> Iterator[FieldError]:
    properties: Object = root.get("properties") or {}
    for key, wanted in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
        kind = (properties.get(key) or {}).get("type", wanted)
        if kind != wanted:
            yield invalid(f"{path}.properties[{key}].type", kind, f"must be {wanted}")
    metadata: Object = properties.get("metadata") or {}
    if set(metadata.get("properties") or {}) - {"name", "generateName"}:
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(f"{path}.properties[metadata]", text)


def _form(node: Object, path: str) -> Iterator[FieldError]:
    """What no schema may have, structural or not."""
    kind = node.get("type", "")
    if kind and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    yield from _extensions(node, path)
    if "properties" in node and isinstance(node.get("additionalProperties"), dict):
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    if isinstance(node.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if "$ref" in node:
        yield forbidden(f"{path}.$ref", "$ref is not supported")
    if node.get("uniqueItems"):
        yield forbidden(f"{path}.uniqueItems", "uniqueItems cannot be set to true since the runtime complexity becomes quadratic")
    for key, child in (node.get("properties") or {}).items():
        yield from _form(child, f"{path}.properties[{key}]")
    for word in ("items", "additionalProperties"):
        if isinstance(node.get(word), dict):
            yield from _form(node[word], f"{path}.{word}")


def _node(node: Object, path: str, place: str) -> Iterator[FieldError]:
    """What structural schemas have to have."""
    kind = node.get("type", "")
    is_open = node.get("x-kubernetes-preserve-unknown-fields")
    if kind == "array" and not node.get("items"):
        yield required(f"{path}.items", "must be specified")
    if node.get("x-kubernetes-embedded-resource"):
        if not is_open and not node.get("properties"):
            text = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
            yield required(f"{path}.properties", text)
        if kind != "object":
            text = "must be object if x-kubernetes-embedded-resource is true"
            yield invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text)
    elif not kind and not is_open and not node.get("x-kubernetes-int-or-string"):
        yield required(f"{path}.type", f"must not be empty for specified {place}")
    yield from _pattern(node, path)
    yield from _logic(node, path)
    for key, child in (node.get("properties") or {}).items():
        yield from _node(child, f"{path}.properties[{key}]", "object fields")
    if isinstance(node.get("items"), dict):
        yield from _node(node["items"], f"{path}.items", "array items")
    if isinstance(node.get("additionalProperties"), dict):
        yield from _node(node["additionalProperties"], f"{path}.additionalProperties", "object fields")


def _pattern(node: Object, path: str) -> Iterator[FieldError]:
    pattern = node.get("pattern")
    if pattern is None:
        return
    try:
        go_regex(pattern)
    except PatternError as error:
        text = f"must be a valid regular expression, but isn't: error parsing regexp: {error}"
        yield invalid(f"{path}.pattern", pattern, text)


def _extensions(node: Object, path: str) -> Iterator[FieldError]:
    if node.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(f"{path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    if node.get("x-kubernetes-map-type") not in (None, "atomic", "granular"):
        yield not_supported(f"{path}.x-kubernetes-map-type", node["x-kubernetes-map-type"], ["atomic", "granular"])
    yield from _list(node, path)


def _list(node: Object, path: str) -> Iterator[FieldError]:
    kind, keys = node.get("x-kubernetes-list-type"), node.get("x-kubernetes-list-map-keys") or []
    if kind is None:
        return
    if kind not in _LISTS:
        yield not_supported(f"{path}.x-kubernetes-list-type", kind, _LISTS)
    if node.get("type") != "array":
        yield invalid(f"{path}.type", node.get("type", ""), "must be array if x-kubernetes-list-type is specified")
        return
    items: Object = node["items"] if isinstance(node.get("items"), dict) else {}
    if kind == "set" and items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        text = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield invalid(f"{path}.items.x-kubernetes-map-type", items.get("x-kubernetes-map-type"), text)
    if kind == "map":
        yield from _keys(items, keys, path)


def _keys(items: Object, keys: list[str], path: str) -> Iterator[FieldError]:
    if not keys:
        yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
    properties: Object = items.get("properties") or {}
    if any(key not in properties for key in keys):
        yield invalid(f"{path}.x-kubernetes-list-map-keys", keys, "entries must all be names of item properties")
        return
    for key in keys:
        if key not in items.get("required", ()) and "default" not in properties[key]:
            text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            yield required(f"{path}.items.properties[{key}].default", text)


def _logic(node: Object, path: str) -> Iterator[FieldError]:
    branches: list[tuple[Any, str]] = [
        (b, f"{path}.{w}[{i}]") for w in ("allOf", "anyOf", "oneOf") for i, b in enumerate(node.get(w) or ())
    ]
    if "not" in node:
        branches.append((node["not"], f"{path}.not"))
    for branch, where in branches:
        for key in _NOT_IN_LOGIC:
            if branch.get(key) and not (key == "type" and node.get("x-kubernetes-int-or-string")):
                yield forbidden(f"{where}.{key}", "must be empty to be structural")


def _defaults(node: Object, path: str) -> Iterator[FieldError]:
    """Defaults must be valid by themselves and hold no unknown fields."""
    if "default" in node and node["default"] is not None:
        yield from _default(node, path)
    for key, child in (node.get("properties") or {}).items():
        yield from _defaults(child, f"{path}.properties[{key}]")
    for word in ("items", "additionalProperties"):
        if isinstance(node.get(word), dict):
            yield from _defaults(node[word], f"{path}.{word}")


def _default(node: Object, path: str) -> Iterator[FieldError]:
    where = f"{path}.default"
    try:
        schema = compile_structural(node)
    except CelSyntaxError:
        return
    pruned = copied(node["default"])
    if isinstance(pruned, dict | list) and prune(cast("Object", pruned), schema):
        yield invalid(where, node["default"], "must not have unknown fields")
        return
    for error in validate(pruned, schema):  # pyright: ignore[reportArgumentType] - any value will do
        place = where if error.path in ("", "<nil>") else f"{where}.{error.path}"
        yield FieldError(error.kind, place, error.value, error.detail)
