"""What a request and an answer are, independent of how they travel."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

__all__ = ("ADMIN", "MAX_BODY", "Answer", "Handle", "Request", "Stream", "User")

MAX_BODY = 3 * 1024 * 1024
"""Bytes of a body that are read."""


@dataclass(frozen=True, slots=True)
class User:
    """Who asks. Nothing is enforced; names appear in admission reviews and as defaults of field managers."""

    name: str
    groups: tuple[str, ...] = ("system:authenticated",)


ADMIN = User("admin", ("system:masters", "system:authenticated"))


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. `path` is decoded, without query; of repeated query parameters the first counts.

    `lean` leaves managedFields out of answers; only in-process clients, which drop them anyway, can ask for that.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    content_type: str = ""
    accept: str = ""
    user_agent: str = ""
    user: User = ADMIN
    lean: bool = False
    if_none_match: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Stream:
    """A watch that was accepted: one JSON line (with its newline) per event, ending when the server ends it."""

    lines: AsyncIterator[bytes]
    content_type: str = "application/json"


Handle = Callable[[Request], Awaitable[Answer | Stream]]
"""Answers a request. What it raises is a defect."""
