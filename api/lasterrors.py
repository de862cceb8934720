"""status.lastErrors of Grove's kinds: one entry, whose time stays that of the first occurrence, so a repeated failure rewrites nothing."""

from collections.abc import Iterable
from datetime import datetime

from api.grove import LastError
from api.plan import Manifest
from api.timestamps import rfc3339

__all__ = ("MAX_DESCRIPTION", "is_news", "last_errors")

MAX_DESCRIPTION = 1024


def last_errors(live: Iterable[LastError] | None, code: str, description: str, now: datetime) -> list[Manifest]:
    """The list with this error. `live`: what the object's status has now."""
    text = description[:MAX_DESCRIPTION]
    for error in live or ():
        if (error.code, error.description) == (code, text):
            return [error.to_manifest()]
    return [{"code": code, "description": text, "observedAt": rfc3339(now)}]


def is_news(live: Iterable[LastError] | None, errors: list[Manifest]) -> bool:
    """True when `errors` are not what the object's status says already, so that an event is due."""
    return [e.to_manifest() for e in live or ()] != errors
