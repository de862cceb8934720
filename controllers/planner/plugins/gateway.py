"""Where plugins register themselves over gRPC. Source: planner.md §8.1, §8.3.

Tokens are neither logged nor sent back.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn, TypeAlias

import grpc
import grpc.aio

from controllers.planner.config.parts import Gateway as GatewaySettings
from controllers.planner.config.strict import listen_problem
from controllers.planner.plugins.records import Plugin
from controllers.planner.plugins.registry import Denial, Registry
from controllers.planner.plugins.wire import plugin_pb2 as pb
from controllers.planner.plugins.wire.convert import PACKAGE, WireError, parse, registration

__all__ = ("Gateway", "GatewayError")

LOG = logging.getLogger(__name__)
STOP_GRACE_S = 0.5
Context: TypeAlias = grpc.aio.ServicerContext[bytes, bytes]
_CODES = {Denial.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED, Denial.FORBIDDEN: grpc.StatusCode.PERMISSION_DENIED}
_TEXTS = {Denial.UNAUTHENTICATED: "the token is not known", Denial.FORBIDDEN: "no such plugin, or not yours"}


class GatewayError(RuntimeError):
    """It cannot listen. Start-up ends."""


class Gateway:
    """The service PluginRegistry. clock: seconds of the monotonic clock. on_removed: told of plugins that unregistered."""

    def __init__(
        self,
        registry: Registry,
        settings: GatewaySettings,
        clock: Callable[[], float],
        on_removed: Callable[[Plugin], Awaitable[None]],
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._clock = clock
        self._on_removed = on_removed
        self._server: grpc.aio.Server | None = None

    async def start(self) -> str:
        """Where it listens, with the port that was chosen for port 0. GatewayError."""
        listen = self._settings.listen
        if (problem := listen_problem(self._settings)) is not None:
            raise GatewayError(f"scheduling.gateway: cannot listen: {listen!r:.200} {problem}")
        socket = listen.removeprefix("unix:").removeprefix("//") if listen.startswith("unix:") else None
        # gRPC would take the name away from whoever listens there.
        if socket is not None and await _is_answered(socket):
            raise GatewayError(f"scheduling.gateway: cannot listen on {listen}: another process does")
        size = self._registry.settings.transport.max_message_size_bytes
        # Without so_reuseport a second server on the same port fails instead of taking half of the calls.
        options = (("grpc.so_reuseport", 0), ("grpc.max_receive_message_length", size), ("grpc.max_send_message_length", size))
        server = grpc.aio.server(options=options)
        methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "Register": grpc.unary_unary_rpc_method_handler(self._register),
            "Heartbeat": grpc.unary_unary_rpc_method_handler(self._heartbeat),
            "Unregister": grpc.unary_unary_rpc_method_handler(self._unregister),
            "ListPlugins": grpc.unary_unary_rpc_method_handler(self._list),
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(f"{PACKAGE}.PluginRegistry", methods),))
        try:
            port = server.add_insecure_port(listen)
        except RuntimeError as error:
            why = None if socket is None else _why_not(socket)
            raise GatewayError(f"scheduling.gateway: cannot listen on {listen}: {why or error}") from error
        if port == 0:
            raise GatewayError(f"scheduling.gateway: cannot listen on {listen}")
        if socket is not None:
            _keep_others_out(socket)
        await server.start()
        self._server = server
        address = listen if listen.startswith("unix:") else f"{listen.rpartition(':')[0]}:{port}"
        LOG.info("plugins may register at %s", address)
        return address

    async def stop(self) -> None:
        """Calls under way have half a second to end."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(STOP_GRACE_S)

    async def _register(self, data: bytes, context: Context) -> bytes:
        try:
            asked = registration(parse(pb.RegisterRequest, data))
        except WireError as error:
            await _malformed(context, error)
        answer = self._registry.register(asked, self._clock())
        if answer.accepted:
            LOG.info("plugin %.64r registered for %s, priority %d", asked.plugin_id, asked.plugin_type, asked.priority)
        else:
            LOG.warning("plugin %.64r was refused: %s %s", asked.plugin_id, answer.reject_reason, answer.detail)
        reply = pb.RegisterResponse(
            accepted=answer.accepted,
            reject_reason=answer.reject_reason,
            negotiated_protocol_version=answer.negotiated_protocol_version,
        )
        return reply.SerializeToString()

    async def _heartbeat(self, data: bytes, context: Context) -> bytes:
        try:
            message = parse(pb.HeartbeatRequest, data)
        except WireError as error:
            await _malformed(context, error)
        denial = self._registry.heartbeat(message.plugin_id, message.auth_token, self._clock())
        if denial is not None:
            await _denied(context, denial)
        return pb.HeartbeatResponse(ok=True).SerializeToString()

    async def _unregister(self, data: bytes, context: Context) -> bytes:
        try:
            message = parse(pb.UnregisterRequest, data)
        except WireError as error:
            await _malformed(context, error)
        removed = self._registry.unregister(message.plugin_id, message.auth_token)
        if isinstance(removed, Denial):
            await _denied(context, removed)
        LOG.info("plugin %.64r unregistered: %.200r", removed.plugin_id, message.reason)
        await self._on_removed(removed)
        return pb.UnregisterResponse(ok=True).SerializeToString()

    async def _list(self, _data: bytes, context: Context) -> bytes:
        await context.abort(grpc.StatusCode.PERMISSION_DENIED, "plugins are not listed over the network")


async def _is_answered(socket: str) -> bool:
    try:
        _, writer = await asyncio.open_unix_connection(socket)
    except OSError:
        return False
    writer.close()
    return True


def _why_not(socket: str) -> str | None:
    """What stands in the way of a socket; None: nothing that can be seen."""
    path = Path(socket)
    if not path.parent.is_dir():
        return f"there is no folder {path.parent}: create it, or mount a volume there"
    if path.exists() and not path.is_socket():
        return "something that is no socket has that name"
    return None if os.access(path.parent, os.W_OK) else f"the folder {path.parent} is not writable"


def _keep_others_out(socket: str) -> None:
    """Owner and, as far as the umask lets it, group may connect."""
    path = Path(socket)
    path.chmod(path.stat().st_mode & 0o770)


async def _malformed(context: Context, error: WireError) -> NoReturn:
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))


async def _denied(context: Context, denial: Denial) -> NoReturn:
    await context.abort(_CODES[denial], _TEXTS[denial])
