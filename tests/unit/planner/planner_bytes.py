"""Protobuf written by hand, by number and wire type, so that what the program says is held against the format and not against itself."""

import struct
from typing import Any, TypeAlias

Field: TypeAlias = tuple[int, int, Any]
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes((*out, number))


def encode(*fields: Field) -> bytes:
    out = bytearray()
    for number, kind, value in fields:
        out += varint(number << 3 | kind)
        match kind:
            case 0:
                out += varint(value)
            case 1:
                out += struct.pack("<d", value)
            case 2:
                data = value.encode() if isinstance(value, str) else value
                out += varint(len(data)) + data
            case _:
                out += struct.pack("<f", value)
    return bytes(out)


def text(number: int, value: str | bytes) -> Field:
    return number, BYTES, value


def integer(number: int, value: int) -> Field:
    return number, VARINT, value


def double(number: int, value: float) -> Field:
    return number, FIXED64, value


def single(number: int, value: float) -> Field:
    return number, FIXED32, value


def message(number: int, *fields: Field) -> Field:
    return number, BYTES, encode(*fields)


def decode(data: bytes) -> list[Field]:
    """Fields as they stand, in order. Doubles and floats as numbers, the rest as integers and bytes."""
    fields: list[Field] = []
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = _varint(data, at)
        elif kind == FIXED64:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        elif kind == FIXED32:
            (value,), at = struct.unpack_from("<f", data, at), at + 4
        else:
            assert kind == BYTES
            length, at = _varint(data, at)
            value, at = data[at : at + length], at + length
        fields.append((number, kind, value))
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return number, at
