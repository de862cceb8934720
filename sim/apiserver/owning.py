"""In whose name a write is noted in managedFields, and which fields it cannot own."""

from typing import Final

from sim.apiserver.fields.fieldset import EMPTY, MEMBER, FieldSet
from sim.apiserver.options import WriteOptions
from sim.apiserver.requests import Request
from sim.apiserver.resources import Resource, Version

__all__ = ("manager_of", "reset_of")

MAX_MANAGER: Final = 128
STATUS: Final[FieldSet] = {"f:status": MEMBER}
SPEC: Final[FieldSet] = {"f:spec": MEMBER}
ALL_BUT_STATUS: Final[FieldSet] = {"f:metadata": MEMBER, "f:spec": MEMBER}


def manager_of(options: WriteOptions, request: Request) -> str:
    """The field manager, by default the program's name in the user agent, as far as it is printable and not too long."""
    if options.manager:
        return options.manager
    agent = request.user_agent.partition("/")[0]
    if not agent.isascii() or not agent.isprintable():
        agent = "".join(c for c in agent if c.isprintable())
    return agent.encode()[:MAX_MANAGER].decode(errors="ignore") or "unknown"


def reset_of(resource: Resource, version: Version, subresource: str) -> FieldSet:
    """Fields that a write to this endpoint leaves as they are, whatever it says of them."""
    if not version.has_status:
        return EMPTY
    if subresource == "status":
        return ALL_BUT_STATUS if resource.is_custom else SPEC
    return STATUS
