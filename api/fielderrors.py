"""Mistakes in an object, each with the path of the field, in the text form of apimachinery's field errors."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

__all__ = (
    "OMITTED",
    "ErrorKind",
    "FieldError",
    "aggregate",
    "duplicate",
    "forbidden",
    "internal",
    "invalid",
    "not_found",
    "not_supported",
    "printable",
    "required",
    "too_long",
)

MAX_VALUE = 1024
MAX_ERRORS = 64
"""An aggregate names so many errors and counts the rest: its reader is a person, and status and responses are bounded."""
ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


class ErrorKind(StrEnum):
    """What is wrong, as it is printed but for TYPE_INVALID, which machines tell from INVALID and people do not."""

    REQUIRED = "Required value"
    INVALID = "Invalid value"
    DUPLICATE = "Duplicate value"
    NOT_FOUND = "Not found"
    NOT_SUPPORTED = "Unsupported value"
    FORBIDDEN = "Forbidden"
    TOO_LONG = "Too long"
    TOO_MANY = "Too many"
    TYPE_INVALID = "Invalid value of its type"
    INTERNAL = "Internal error"


PRINTED = {ErrorKind.TYPE_INVALID: str(ErrorKind.INVALID.value)}
OMITTED = object()
"""Stands for no value where the kind of error usually shows one."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """`path` as Kubernetes writes it, such as spec.template.cliques[0].name. `value`: the offending JSON value, or OMITTED."""

    kind: ErrorKind
    path: str
    value: object = OMITTED
    detail: str = ""

    @property
    def body(self) -> str:
        """The text without the path."""
        kind = PRINTED.get(self.kind, self.kind.value)
        text = kind if self.value is OMITTED else f"{kind}: {_shown(self.value)}"
        return f"{text}: {printable(self.detail)}" if self.detail else text

    def __str__(self) -> str:
        return f"{printable(self.path)}: {self.body}"


def required(path: str, detail: str = "") -> FieldError:
    """A value is missing."""
    return FieldError(ErrorKind.REQUIRED, path, detail=detail)


def invalid(path: str, value: object, detail: str) -> FieldError:
    """A value is wrong."""
    return FieldError(ErrorKind.INVALID, path, value, detail)


def duplicate(path: str, value: object) -> FieldError:
    """A value that has to be unique is there more than once."""
    return FieldError(ErrorKind.DUPLICATE, path, value)


def not_found(path: str, value: object) -> FieldError:
    """A value names something that does not exist."""
    return FieldError(ErrorKind.NOT_FOUND, path, value)


def not_supported(path: str, value: object, supported: Sequence[str]) -> FieldError:
    """A value is not one of those supported."""
    return FieldError(ErrorKind.NOT_SUPPORTED, path, value, "supported values: " + ", ".join(_quoted(s) for s in supported))


def forbidden(path: str, detail: str) -> FieldError:
    """A value or a change is not allowed here."""
    return FieldError(ErrorKind.FORBIDDEN, path, detail=detail)


def too_long(path: str, detail: str) -> FieldError:
    """A value has more characters or bytes than allowed."""
    return FieldError(ErrorKind.TOO_LONG, path, detail=detail)


def internal(path: str, detail: str) -> FieldError:
    """The check itself could not be done."""
    return FieldError(ErrorKind.INTERNAL, path, detail=detail)


def aggregate(errors: Iterable[FieldError]) -> str:
    """One text for all: a single error as it is, several as `[a, b]`, repetitions left out, "" for none."""
    texts = list(dict.fromkeys(str(e) for e in errors))
    if len(texts) <= 1:
        return "".join(texts)
    if len(texts) > MAX_ERRORS:
        texts = [*texts[:MAX_ERRORS], f"and {len(texts) - MAX_ERRORS} more"]
    return f"[{', '.join(texts)}]"


def _shown(value: object) -> str:
    if isinstance(value, str):
        text = _quoted(value[: MAX_VALUE + 1])
    else:
        text = printable(json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str))
    return text if len(text) <= MAX_VALUE else text[:MAX_VALUE] + "…"


def _quoted(text: str) -> str:
    """Quoted as Go does it."""
    return '"' + printable(text.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def printable(text: str) -> str:
    """Without control characters and the like: they would let a name speak for the program in a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(char: str) -> str:
    if char in ESCAPES:
        return ESCAPES[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
