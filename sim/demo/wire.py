"""From a Transport straight to an embedded server in the same process, without sockets."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.lowlevel

from controllers.runtime.errors import StreamIdle, UnknownOutcome
from controllers.runtime.identity import Credentials, FileSource, Trust
from controllers.runtime.wire import Outgoing
from sim.apiserver.requests import Answer, Handle, Stream, User
from sim.wires import Reply, request_of

__all__ = ("DirectWire", "direct_credentials")


def direct_credentials() -> Credentials:
    """Credentials for a DirectWire, which looks at none."""
    return Credentials("http://embedded", FileSource(), Trust())


class DirectWire:
    """See controllers.runtime.wire.Wire. `name`: of the process, as user and user agent."""

    def __init__(self, handle: Handle, name: str) -> None:
        self._handle = handle
        self._name = name
        self._agent = f"grovekeeper-{name}"
        self._user = User(f"system:serviceaccount:grovekeeper:{name}", ("system:serviceaccounts", "system:authenticated"))

    def sibling(self) -> "DirectWire":
        return DirectWire(self._handle, self._name)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    async def send(self, request: Outgoing, timeout_s: float) -> tuple[int, bytes, str]:
        # The server answers without waiting for anything; others have to get their turn between calls.
        await anyio.lowlevel.checkpoint()
        try:
            with anyio.fail_after(timeout_s):
                answer = await self._handle(request_of(request, self._agent, self._user))
        except TimeoutError as error:
            raise UnknownOutcome(f"{request.method} {request.path}: no answer within {timeout_s:.0f} s") from error
        if isinstance(answer, Stream):
            raise TypeError(f"{request.method} {request.path} was answered by a stream")
        return answer.status, answer.body, answer.headers.get("Retry-After", "")

    async def open(self, request: Outgoing, inactivity_s: float) -> "DirectStream":
        await anyio.lowlevel.checkpoint()
        return DirectStream(await self._handle(request_of(request, self._agent, self._user)), request.path, inactivity_s)


class DirectStream(Reply):
    """See controllers.runtime.wire.WireStream."""

    def __init__(self, answer: Answer | Stream, path: str, inactivity_s: float) -> None:
        super().__init__(answer)
        self._path = path
        self._inactivity_s = inactivity_s
        self._is_closed = False

    async def chunks(self) -> AsyncGenerator[bytes]:
        if isinstance(self._reply, Answer):
            yield self._reply.body
            return
        async with aclosing(_generator(self._reply.lines)) as lines:
            while not self._is_closed:
                try:
                    with anyio.fail_after(self._inactivity_s):
                        line = await anext(lines)
                except StopAsyncIteration:
                    return
                except TimeoutError as error:
                    raise StreamIdle(f"GET {self._path}: no byte within the inactivity limit") from error
                yield line

    def close(self) -> None:
        self._is_closed = True


async def _generator(lines: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Closes what it reads from when it is closed."""
    try:
        async for line in lines:
            yield line
    finally:
        close: Any = getattr(lines, "aclose", None)
        if close is not None:
            await close()
