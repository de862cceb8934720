"""Go's regular expressions: the same engine, RE2, whose time is linear in the text whatever the pattern."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Protocol

import re2  # pyright: ignore[reportMissingTypeStubs] - the package has no types

__all__ = ("PatternError", "Regex", "go_regex")

_GO_WORDS = {
    "missing ): ": "missing closing ): ",
    "missing ]: ": "missing closing ]: ",
    "bad repetition operator: ": "invalid nested repetition operator: ",
    "no argument for repetition operator: ": "missing argument to repetition operator: ",
    "invalid perl operator: ": "invalid or unsupported Perl syntax: ",
    "invalid repetition size: ": "invalid repeat count: ",
}


class PatternError(ValueError):
    """A pattern that is none; the text is that of Go's parser."""


class Match(Protocol):
    """What was found; `[0]` is all of it."""

    def __getitem__(self, group: int, /) -> str: ...


class Regex(Protocol):
    """A compiled pattern."""

    def search(self, text: str, /) -> Match | None: ...

    def finditer(self, text: str, /) -> Iterator[Match]: ...


@lru_cache(maxsize=4096)
def go_regex(pattern: str) -> Regex:
    """The pattern compiled. Raises PatternError."""
    library: Any = re2
    options = library.Options()
    options.log_errors = False
    try:
        return library.compile(pattern, options)
    except library.error as error:
        raise PatternError(_in_go_words(error.args[0])) from None


def _in_go_words(text: str | bytes) -> str:
    said = text.decode(errors="replace") if isinstance(text, bytes) else text
    for ours, words in _GO_WORDS.items():
        if said.startswith(ours):
            return f"{words}`{said.removeprefix(ours)}`"
    what, colon, part = said.partition(": ")
    return f"{what}: `{part}`" if colon else what
