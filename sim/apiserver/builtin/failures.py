"""Field errors in the words of the server where the usual constructors print them otherwise."""

from dataclasses import dataclass

from api.fielderrors import OMITTED, ErrorKind, FieldError

__all__ = ("forbidden_change",)


@dataclass(frozen=True, slots=True)
class _Lines(FieldError):
    """Its detail has several lines and is printed as it is."""

    @property
    def body(self) -> str:
        return f"{self.kind.value}: {self.detail}"


def forbidden_change(path: str, detail: str) -> FieldError:
    """A change that is not allowed, with a detail of several lines (a diff)."""
    return _Lines(ErrorKind.FORBIDDEN, path, OMITTED, detail)
