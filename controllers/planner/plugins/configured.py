"""Plugins that the configuration names, and history for those that learn from it. Source: planner.md §8.4."""

from collections.abc import Sequence

from controllers.planner.config.parts import ExternalPlugin, HoldPolicy, InProcessPlugin
from controllers.planner.plugins.inprocess import ENDINGS, construct
from controllers.planner.plugins.registry import Registration, Registry
from controllers.planner.types import TrafficObservation

__all__ = ("register_external", "register_in_process", "warm")


def register_in_process(registry: Registry, entries: Sequence[InProcessPlugin], now_s: float) -> None:
    """All or an error: ImportError, AttributeError, RuntimeError of `inprocess.construct`, ValueError of the registry or a hold policy."""
    for entry in entries:
        registry.register_internal(
            entry.plugin_id,
            entry.plugin_type,
            entry.priority,
            construct(entry),
            now_s,
            interval_s=entry.execution_interval_seconds,
            hold_policy=_hold_policy(entry),
            needs=entry.needs,
            requires=entry.requires_produced_fields,
            window_s=entry.observation_window_seconds,
            version="user-in-process",
        )


def register_external(registry: Registry, entries: Sequence[ExternalPlugin], now_s: float) -> list[str]:
    """What is wrong with entries that were left out."""
    warnings: list[str] = []
    for entry in entries:
        answer = registry.register(_registration(entry), now_s)
        if not answer.accepted:
            warnings.append(f"scheduling.external_plugins: {entry.plugin_id!r} is left out: {answer.reject_reason}")
    return warnings


def warm(registry: Registry, history: Sequence[TrafficObservation]) -> list[str]:
    """Gives history to plugins of this process that have a method `warm_from_observations`, and tells which of them failed."""
    warnings: list[str] = []
    for plugin in registry.plugins if history else ():
        try:
            method = getattr(plugin.instance, "warm_from_observations", None)
            if callable(method):
                method(history)
        except (Exception, *ENDINGS) as error:  # A plugin's error is its own.
            warnings.append(f"plugin {plugin.plugin_id!r} could not be warmed up: {type(error).__name__}: {error!s:.200}")
    return warnings


def _hold_policy(entry: InProcessPlugin) -> HoldPolicy:
    try:
        return HoldPolicy.parse(entry.hold_policy)
    except ValueError as error:
        raise ValueError(f"plugin {entry.plugin_id!r}: hold_policy: {error}, is {entry.hold_policy!r:.40}") from None


def _registration(entry: ExternalPlugin) -> Registration:
    return Registration(
        plugin_id=entry.plugin_id,
        plugin_type=entry.plugin_type,
        priority=entry.priority,
        endpoint=entry.endpoint,
        version=entry.version,
        interval_s=entry.execution_interval_seconds,
        hold_policy=entry.hold_policy,
        needs=entry.needs,
        protocol_version=entry.protocol_version,
        auth_token=entry.auth_token,
        requires=entry.requires_produced_fields,
        window_s=entry.observation_window_seconds,
    )
