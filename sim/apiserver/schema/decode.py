"""Bodies of requests to JSON data: duplicate keys, malformed texts and limits in the words of kube-apiserver."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

import json
from typing import Any, Final

import msgspec
import yaml

from sim.apiserver.objects import Object
from sim.apiserver.schema.jsonerrors import json_error
from sim.apiserver.schema.yamls import Yaml, load_yaml, yaml_text
from sim.apiserver.status import StatusError, bad_request

__all__ = ("TYPE_META", "decode_any", "decode_json", "decode_yaml")

_MAX_DEPTH: Final = 10_000
_SHOWN: Final = 30
TYPE_META: Final = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def decode_json(body: bytes, kind: str = "") -> tuple[Object, list[str]]:
    """The object and complaints about duplicate keys (`duplicate field "spec.x"`, of which the last one counts).

    `kind`: what was expected, for the message. Raises StatusError 400 for anything that is no JSON object; null is an empty one.
    """
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = _lenient(body, kind)
    return _object(value, body, kind), _duplicates(body, value)


def _lenient(body: bytes, kind: str) -> Any:
    """What Go takes and msgspec does not (broken UTF-8, halves of surrogate pairs), or the error."""
    try:
        return _loaded(body)
    except ValueError as error:
        raise unrecognized(f"couldn't get version/kind; json parse error: {error}", body, kind) from None


def _loaded(body: bytes) -> Any:
    """Raises ValueError with the words of Go's scanner, which looks at bytes."""
    if (problem := json_error(body.decode("latin-1"), _MAX_DEPTH)) is not None:
        raise ValueError(problem)
    try:
        return _whole(json.loads(body.decode(errors="replace")))
    except RecursionError:
        raise ValueError("exceeded max depth") from None


def _whole(value: Any) -> Any:
    """Without halves of surrogate pairs, which no text can hold."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def decode_any(body: bytes) -> tuple[Any, list[str]]:
    """Any JSON value and complaints about duplicate keys. Raises ValueError with the words of Go's scanner."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = _loaded(body)
    return value, _duplicates(body, value) if isinstance(value, dict | list) else []


def decode_yaml(body: bytes, kind: str = "") -> tuple[Object, list[str]]:
    """The first document of a YAML stream, with complaints about duplicate keys. Raises StatusError 400.

    Aliases may not blow up a document beyond measure.
    """
    try:
        found: Yaml = load_yaml(body)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise unrecognized(f"yaml: {yaml_text(error)}", body, kind) from None
    if not found.duplicates:
        return _object(found.value, body, kind), []
    lines = "".join(f'\n  line {line}: key "{key}" already set in map' for key, line in found.duplicates)
    return _object(found.value, body, kind), [f"yaml: unmarshal errors:{lines}"]


def _object(value: Any, body: bytes, kind: str) -> Object:
    if value is None:
        return {}
    if isinstance(value, dict):
        for key in ("kind", "apiVersion") if kind else ():
            if not isinstance(value.get(key, ""), str | None):
                problem = f"json: cannot unmarshal {_name(value[key])} into Go struct field .{key} of type string"
                raise unrecognized(f"couldn't get version/kind; json parse error: {problem}", body, kind)
        return value  # pyright: ignore[reportUnknownVariableType] - keys of JSON are texts
    name = _name(value)
    problem = f"json: cannot unmarshal {name} into Go value of type {TYPE_META}"
    raise unrecognized(f"couldn't get version/kind; json parse error: {problem}", body, kind)


def _name(value: Any) -> str:
    return "bool" if isinstance(value, bool) else {str: "string", list: "array", dict: "object"}.get(type(value), "number")


def unrecognized(problem: str, body: bytes, kind: str) -> StatusError:
    """A body that does not say what it is. `kind`: what was expected, "" where the server does not say."""
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {problem} ({_excerpt(body)})" if kind else problem)


def _excerpt(body: bytes) -> str:
    """How the server shows what it could not read: as text where it looks like an object, else in hexadecimal."""
    if not body:
        return "<empty>"
    head = body[:_SHOWN]
    shown = head.decode(errors="replace") if head.startswith(b"{") else head.hex()
    return f"{shown} ..." if len(body) > _SHOWN else shown


def _duplicates(body: bytes, value: Any) -> list[str]:
    """Looked for only where the number of keys in the text cannot be that of the decoded object."""
    if body.count(b'":') + body.count(b'" :') <= _keys(value):
        return []
    found: list[str] = []
    try:
        _pairs(json.loads(body, object_pairs_hook=_Pairs), "", found)
    except (ValueError, RecursionError):
        return []
    return found


class _Pairs(list[tuple[str, Any]]):
    """An object with its keys as they were written."""


def _keys(value: Any) -> int:
    if isinstance(value, dict):
        fields: Object = value
        return len(fields) + sum(_keys(v) for v in fields.values() if isinstance(v, (dict, list)))
    items: list[Any] = value if isinstance(value, list) else []
    return sum(_keys(v) for v in items if isinstance(v, (dict, list)))


def _pairs(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, item in value:
            where = f"{path}.{key}" if path else key
            if key in seen:
                found.append(f'duplicate field "{where}"')
            seen.add(key)
            _pairs(item, where, found)
    elif isinstance(value, list):
        items: list[Any] = value
        for index, item in enumerate(items):
            _pairs(item, f"{path}[{index}]", found)
