"""What the simulated parts of a cluster need of the API server, and how they speak to it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import msgspec

from sim.apiserver.objects import Object
from sim.apiserver.requests import Answer, Request, Stream, User
from sim.apiserver.resources import Lookup, ObjectKey
from sim.apiserver.storage import Change

__all__ = ("MERGE", "STRATEGIC", "Caller", "Host", "pod_path")

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Host(Protocol):
    """The part of ApiServer that is used here."""

    @property
    def lookup(self) -> Lookup: ...

    def subscribe(self, callback: Callable[[Change], None]) -> Callable[[], None]: ...

    def handle(self, request: Request) -> Awaitable[Answer | Stream]: ...


class Caller:
    """Sends requests as one user of the cluster."""

    def __init__(self, host: Host, user: str, groups: tuple[str, ...], agent: str) -> None:
        self._host = host
        self._user = User(user, groups)
        self._agent = agent

    async def send(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """Status code and body of the answer."""
        data = msgspec.json.encode(body) if body is not None else b""
        answer = await self._host.handle(
            Request(method, path, query or {}, data, content_type, "application/json", self._agent, self._user)
        )
        if isinstance(answer, Stream):
            raise TypeError(f"{method} {path} was answered by a stream")
        return answer.status, answer.body


def pod_path(key: ObjectKey, subresource: str = "") -> str:
    """The path of a pod."""
    path = f"/api/v1/namespaces/{key.namespace}/pods/{key.name}"
    return f"{path}/{subresource}" if subresource else path
