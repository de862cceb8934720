"""Field errors in the words of the server where the usual constructors print them otherwise."""

import json
from dataclasses import dataclass

from api.fielderrors import OMITTED, ErrorKind, FieldError

__all__ = ("forbidden_change", "invalid_whole")


@dataclass(frozen=True, slots=True)
class _Lines(FieldError):
    """Its detail has several lines and is printed as it is."""

    @property
    def body(self) -> str:
        return f"{self.kind.value}: {self.detail}"


def forbidden_change(path: str, detail: str) -> FieldError:
    """A change that is not allowed, with a detail of several lines (a diff)."""
    return _Lines(ErrorKind.FORBIDDEN, path, OMITTED, detail)


def invalid_whole(path: str, value: object, detail: str) -> FieldError:
    """A wrong value that is printed however long it is."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return _Lines(ErrorKind.INVALID, path, OMITTED, f"{text}: {detail}")
