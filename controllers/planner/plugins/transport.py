"""Calls plugins over gRPC. Source: planner.md §9.

Imported only where a plugin is called over the network or may register: grpc costs memory.
"""

from typing import TypeAlias

import grpc
import grpc.aio

from controllers.planner.config.parts import PluginTransport
from controllers.planner.plugins.records import Call, Failure, FailureKind, Plugin, PredictResponse, StageResponse
from controllers.planner.plugins.registry import target_of
from controllers.planner.plugins.wire import plugin_pb2 as pb
from controllers.planner.plugins.wire.convert import PACKAGE, WireError, decode_response, encode_request, method_name, parse

__all__ = ("GrpcTransport", "channel_options")

Result: TypeAlias = PredictResponse | StageResponse | Failure
Options: TypeAlias = tuple[tuple[str, int], ...]
_KEEPALIVE_TIMEOUT_MS = 10_000
# A plugin that came back is found within a few ticks, not only after the two minutes that gRPC may wait.
_MAX_RECONNECT_MS = 5_000
_BOOTSTRAP = f"/{PACKAGE}.PluginLifecycle/Bootstrap"
_KINDS = {
    grpc.StatusCode.DEADLINE_EXCEEDED: FailureKind.TIMEOUT,
    grpc.StatusCode.UNAVAILABLE: FailureKind.CONNECTION,
    grpc.StatusCode.UNIMPLEMENTED: FailureKind.UNKNOWN_METHOD,
    grpc.StatusCode.INTERNAL: FailureKind.SERIALIZATION,
    grpc.StatusCode.DATA_LOSS: FailureKind.SERIALIZATION,
}


def channel_options(settings: PluginTransport) -> Options:
    """Of every channel to a plugin."""
    return (
        ("grpc.keepalive_time_ms", settings.keepalive_time_ms),
        ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_send_message_length", settings.max_message_size_bytes),
        ("grpc.max_receive_message_length", settings.max_message_size_bytes),
        ("grpc.max_reconnect_backoff_ms", _MAX_RECONNECT_MS),
    )


class GrpcTransport:
    """One channel per plugin, connected when it is first called."""

    def __init__(self, settings: PluginTransport) -> None:
        self._settings = settings
        self._channels: dict[str, tuple[Plugin, grpc.aio.Channel]] = {}

    async def call(self, call: Call) -> Result:
        """Never raises for what a plugin or the network does."""
        stage = call.plugin.stage
        try:
            data = encode_request(stage, call.request)
        except (ValueError, TypeError) as error:
            return Failure(FailureKind.SERIALIZATION, f"cannot encode the request: {error!s:.200}")
        answer = await self._exchange(call.plugin, method_name(stage), data)
        if isinstance(answer, Failure):
            return answer
        try:
            return decode_response(stage, answer)
        except WireError as error:
            return Failure(FailureKind.SERIALIZATION, f"{error!s:.200}")

    async def bootstrap(self, plugin: Plugin) -> Failure | None:
        """Tells a plugin that it is about to be called."""
        answer = await self._exchange(plugin, _BOOTSTRAP, pb.BootstrapRequest().SerializeToString())
        if isinstance(answer, Failure):
            return answer
        try:
            reply = parse(pb.BootstrapResponse, answer)
        except WireError as error:
            return Failure(FailureKind.SERIALIZATION, str(error))
        return None if reply.ok else Failure(FailureKind.CALL, f"not ok: {reply.message:.200}")

    async def close(self, plugin: Plugin) -> None:
        """Ends what is open to a plugin. A later registration of the same id has a channel of its own."""
        held = self._channels.get(plugin.plugin_id)
        if held is not None and held[0] is plugin:
            del self._channels[plugin.plugin_id]
            await held[1].close()

    async def aclose(self) -> None:
        """Ends all."""
        channels, self._channels = self._channels, {}
        for _, channel in channels.values():
            await channel.close()

    async def _exchange(self, plugin: Plugin, method: str, data: bytes) -> bytes | Failure:
        channel = await self._channel(plugin)
        if isinstance(channel, Failure):
            return channel
        try:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
            return await call(data, timeout=self._settings.request_timeout_seconds)
        except grpc.aio.AioRpcError as error:
            code = error.code()
            return Failure(_KINDS.get(code, FailureKind.CALL), f"{code.name}: {error.details() or '':.200}")
        except grpc.aio.UsageError as error:
            return Failure(FailureKind.CONNECTION, f"the channel is closed: {error!s:.200}")

    async def _channel(self, plugin: Plugin) -> grpc.aio.Channel | Failure:
        held = self._channels.get(plugin.plugin_id)
        if held is not None and held[0] is plugin:
            return held[1]
        target = target_of(plugin.endpoint)
        if target is None:
            return Failure(FailureKind.CONNECTION, f"{plugin.endpoint} is no address of gRPC")
        channel = grpc.aio.insecure_channel(target, options=channel_options(self._settings))
        self._channels[plugin.plugin_id] = (plugin, channel)
        if held is not None:
            await held[1].close()
        return channel
