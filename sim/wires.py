"""What all wires to an embedded API server share."""

from urllib.parse import unquote

from controllers.runtime.wire import Outgoing
from sim.apiserver.requests import ADMIN, Answer, Request, Stream, User

__all__ = ("Reply", "request_of")


def request_of(outgoing: Outgoing, user_agent: str, user: User = ADMIN) -> Request:
    """A request of ours as the server takes it."""
    content_type, accept = outgoing.headers.get("Content-Type", ""), outgoing.headers.get("Accept", "")
    path, query, body = unquote(outgoing.path), outgoing.query or {}, outgoing.body or b""
    return Request(outgoing.method, path, query, body, content_type, accept, user_agent, user, lean=True)


class Reply:
    """The part of a WireStream that needs no time: what is known as soon as the server has answered."""

    def __init__(self, reply: Answer | Stream) -> None:
        self._reply = reply

    @property
    def status(self) -> int:
        return self._reply.status if isinstance(self._reply, Answer) else 200

    @property
    def retry_after(self) -> str:
        return self._reply.headers.get("Retry-After", "") if isinstance(self._reply, Answer) else ""

    async def read(self) -> bytes:
        return self._reply.body if isinstance(self._reply, Answer) else b""
