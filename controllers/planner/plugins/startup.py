"""Brings up the plugins that the configuration names, in the order of planner.md §8.4, and takes them down.

Built-in plugins are registered before, by whoever makes the engine.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from controllers.planner.config.model import PlannerConfig
from controllers.planner.plugins.configured import register_external, register_in_process, warm
from controllers.planner.plugins.gateway import Gateway
from controllers.planner.plugins.records import FailureKind
from controllers.planner.plugins.registry import Registry
from controllers.planner.plugins.runner import Caller
from controllers.planner.plugins.transport import GrpcTransport
from controllers.planner.types import TrafficObservation

__all__ = ("Plugins", "start")

LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Plugins:
    """What runs. address: where plugins may register; None: nowhere."""

    registry: Registry
    caller: Caller
    gateway: Gateway | None = None
    address: str | None = None

    async def stop(self) -> None:
        """No more registrations, then no more plugins."""
        if self.gateway is not None:
            await self.gateway.stop()
        for plugin in self.registry.plugins:
            self.registry.remove(plugin.plugin_id)
        await self.caller.aclose()


async def start(registry: Registry, config: PlannerConfig, history: Sequence[TrafficObservation], clock: Callable[[], float]) -> Plugins:
    """Errors of plugins of this process (`configured.register_in_process`) and GatewayError end start-up, all others are logged."""
    settings = registry.settings.transport
    caller = Caller(settings.request_timeout_seconds, clock, GrpcTransport(settings))
    plugins = Plugins(registry, caller)
    register_in_process(registry, config.plugin_registration.in_process_plugins, clock())
    warnings = [*registry.warnings, *register_external(registry, config.scheduling.external_plugins, clock()), *warm(registry, history)]
    warnings.extend(await _bootstrap(plugins))
    for warning in warnings:
        LOG.warning("%s", warning)
    if config.scheduling.gateway.enabled:
        plugins.gateway = Gateway(registry, config.scheduling.gateway, clock, caller.close)
        try:
            plugins.address = await plugins.gateway.start()
        except BaseException:
            await plugins.stop()
            raise
    return plugins


async def _bootstrap(plugins: Plugins) -> list[str]:
    """Together, so that one that does not answer holds up nobody for longer than a call may take."""
    asked = plugins.registry.plugins
    answers = await asyncio.gather(*(plugins.caller.bootstrap(plugin) for plugin in asked))
    return [
        f"plugin {plugin.plugin_id!r} failed to bootstrap: {failure.kind.value}: {failure.message}"
        for plugin, failure in zip(asked, answers, strict=True)
        if failure is not None and failure.kind is not FailureKind.UNKNOWN_METHOD
    ]
