"""Bodies in protobuf, which kubectl 1.36 sends where it creates built-in kinds itself: read into JSON. Answers are never protobuf."""

import base64
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from sim.apiserver.objects import Object
from sim.apiserver.status import bad_request

__all__ = ("PROTOBUF_TYPE", "json_of")

PROTOBUF_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"
META_KINDS: Final = frozenset({"DeleteOptions", "CreateOptions", "PatchOptions", "UpdateOptions"})
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class Field(NamedTuple):
    """As protobuf.json has it, made by hack/codegen/refresh_protobuf.py, which explains kind and flags."""

    name: str
    kind: str
    flags: str


def json_of(body: bytes) -> bytes:
    """The same object as JSON. Raises StatusError (400) for bytes that are no known object."""
    if not body.startswith(MAGIC):
        raise bad_request("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        envelope = dict(_entries(memoryview(body)[4:]))
        head = {number: bytes(value).decode() for number, value in _entries(envelope.get(1, b""))}
        api_version, kind = head.get(1, ""), head.get(2, "")
        found = _message(_name(api_version, kind), envelope.get(2, memoryview(b"")))
    except KeyError as error:
        raise bad_request(f"no protobuf form is known of {error.args[0]}") from None
    except (ValueError, IndexError, struct.error, TypeError) as error:
        raise bad_request(f"the protobuf message cannot be read: {error}") from None
    return msgspec.json.encode({"apiVersion": api_version, "kind": kind, **found})


def _name(api_version: str, kind: str) -> str:
    """apps/v1 Deployment is apps/v1.Deployment, rbac.authorization.k8s.io/v1 Role is rbac/v1.Role, v1 Pod is core/v1.Pod."""
    if kind in META_KINDS:
        return f"meta/v1.{kind}"
    group, _, version = api_version.rpartition("/")
    return f"{group.partition('.')[0] or 'core'}/{version}.{kind}"


@cache
def _messages() -> dict[str, dict[str, Field]]:
    read = msgspec.json.decode(Path(__file__).with_name("protobuf.json").read_bytes())["messages"]
    return {name: {number: Field(*field) for number, field in fields.items()} for name, fields in read.items()}


def _message(name: str, data: Any) -> Object:
    fields = _messages()[name]
    out: Object = {}
    for number, raw in _entries(data):
        field = fields.get(str(number))
        if field is None:
            continue
        if field.kind.startswith("map:"):
            pair = dict(_entries(raw))
            key = bytes(pair.get(1, b"")).decode()
            out.setdefault(field.name, {})[key] = _value(field.kind.removeprefix("map:"), pair.get(2, b""))
            continue
        value = _value(field.kind, raw)
        if "n" in field.flags:
            out |= value
        elif "r" in field.flags:
            out.setdefault(field.name, []).append(value)
        elif _is_kept(field, value):
            out[field.name] = value
    return out


def _is_kept(field: Field, value: Any) -> bool:
    """Protobuf sends the zero of every plain field; JSON leaves out those that may be left out, and times that are none."""
    if value is None:
        return False
    return "p" in field.flags or "o" not in field.flags or value not in ("", 0, False) or isinstance(value, dict)


def _value(kind: str, raw: Any) -> Any:
    if kind.startswith("m:"):
        return _message(kind.removeprefix("m:"), raw)
    if kind.startswith("list:"):
        return [_value(kind.removeprefix("list:"), item) for _, item in _entries(raw)]
    return _SCALARS[kind](raw)


def _entries(data: Any) -> Iterator[tuple[int, Any]]:
    """(number, value) of a message: integers as they are, everything with a length as bytes."""
    view = memoryview(data)
    at = 0
    while at < len(view):
        key, at = _varint(view, at)
        wire = key & 7
        if wire == VARINT:
            value, at = _varint(view, at)
            yield key >> 3, value
            continue
        if wire == BYTES:
            size, at = _varint(view, at)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise ValueError(f"wire type {wire}")
        if at + size > len(view):
            raise ValueError("unexpected EOF")
        yield key >> 3, view[at : at + size]
        at += size


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("integer overflow")


def _integer(value: Any) -> int:
    """Negative numbers travel as 64-bit two's complement."""
    number = int(value) if value != b"" else 0
    return number - (1 << 64) if number >= 1 << 63 else number


def _text(raw: Any) -> str:
    return bytes(raw).decode()


def _instant(raw: Any) -> datetime | None:
    parts = dict(_entries(raw))
    if not parts:
        return None
    return EPOCH + timedelta(seconds=_integer(parts.get(1, 0)), microseconds=_integer(parts.get(2, 0)) // 1000)


def _time(raw: Any) -> str | None:
    return f"{then:%Y-%m-%dT%H:%M:%SZ}" if (then := _instant(raw)) else None


def _micro_time(raw: Any) -> str | None:
    return f"{then:%Y-%m-%dT%H:%M:%S.%fZ}" if (then := _instant(raw)) else None


def _int_or_string(raw: Any) -> int | str:
    parts = dict(_entries(raw))
    return _text(parts.get(3, b"")) if parts.get(1) else _integer(parts.get(2, 0))


def _raw(raw: Any) -> Any:
    held = bytes(dict(_entries(raw)).get(1, b""))
    return msgspec.json.decode(held) if held else None


_SCALARS: Final[dict[str, Callable[[Any], Any]]] = {
    "s": _text,
    "y": lambda raw: base64.b64encode(raw).decode(),
    "i": _integer,
    "t": bool,
    "d": lambda raw: struct.unpack("<d", raw)[0],
    "Quantity": lambda raw: _text(dict(_entries(raw)).get(1, b"")),
    "IntOrString": _int_or_string,
    "Time": _time,
    "MicroTime": _micro_time,
    "Duration": lambda raw: f"{_integer(dict(_entries(raw)).get(1, 0)) / 1e9:g}s",
    "Raw": _raw,
}
