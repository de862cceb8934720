"""Which plugins there are, and who may add, keep alive and remove them. Source: planner.md §8.1."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from controllers.planner.config.parts import HoldPolicy, PluginRegistration, PluginStage
from controllers.planner.plugins.auth import Authenticator, authenticator
from controllers.planner.plugins.breaker import CircuitState
from controllers.planner.plugins.records import Plugin

__all__ = ("Denial", "PluginInfo", "Registered", "Registration", "Registry", "parse_version", "target_of")

INPROC = "inproc://"
GRPC = "grpc://"
MOST_PLUGINS = 1000
"""Of other processes. Each takes memory and a place in every tick."""
_WINDOW_TOLERANCE = 1e-6
_VERSION = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){0,3}", re.ASCII)
_TARGET = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^\s:/@\[\]]+):([0-9]{1,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Registration:
    """What a plugin says of itself. Seconds; interval 0: on every tick. The token is not shown."""

    plugin_id: str
    plugin_type: PluginStage
    priority: int
    endpoint: str
    version: str = "v1"
    interval_s: float = 0.0
    hold_policy: HoldPolicy = HoldPolicy.HOLD_LAST
    needs: Sequence[str] = ()
    protocol_version: str = "1.0"
    auth_token: str = field(default="", repr=False)
    requires: Sequence[str] = ()
    window_s: float = 0.0


class Registered(NamedTuple):
    """Answer to a registration. `detail` is for logs only and holds no token."""

    accepted: bool
    reject_reason: str = ""
    negotiated_protocol_version: str = ""
    detail: str = ""


class Denial(Enum):
    """Why a heartbeat or a removal is refused. FORBIDDEN does not tell whether the plugin exists."""

    UNAUTHENTICATED = "UNAUTHENTICATED"
    FORBIDDEN = "PERMISSION_DENIED"


class PluginInfo(NamedTuple):
    """A plugin as listed. Times: seconds ago; None: never called, nothing held."""

    plugin_id: str
    plugin_type: PluginStage
    priority: int
    version: str
    protocol_version: str
    enabled: bool
    is_builtin: bool
    transport: str
    circuit_state: CircuitState
    evaluations_total: int
    last_call_at_seconds_ago: float | None
    cache_age_seconds: float | None


class Registry:
    """Plugins in order of registration. Times are seconds of the monotonic clock, passed in."""

    def __init__(self, base_s: float, settings: PluginRegistration, known: Authenticator | None = None) -> None:
        """base_s: the interval of ticks. known: else as `settings.auth` says; ValueError as `auth.authenticator`."""
        self.base_s = base_s
        self.settings = settings
        auth, self.warnings = (known, ()) if known is not None else authenticator(settings.auth)
        self._auth = auth
        self._plugins: dict[str, Plugin] = {}
        oldest, newest = parse_version(settings.protocol_version_min), parse_version(settings.protocol_version_max)
        if oldest is None or newest is None:
            raise ValueError("plugin_registration: protocol_version_min and protocol_version_max must be versions like 1.0")
        self._oldest, self._newest = oldest, newest

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        return tuple(self._plugins.values())

    def get(self, plugin_id: str) -> Plugin | None:
        return self._plugins.get(plugin_id)

    def register(self, asked: Registration, now_s: float) -> Registered:
        """Of a plugin that is called over the network. Its endpoint is not contacted."""
        subject = self._auth.subject(asked.auth_token)
        if subject is None:
            return Registered(False, "auth_failed", detail="no trusted source knows the token")
        reason = self._refused(asked)
        if reason is not None:
            return Registered(False, reason)
        self._plugins[asked.plugin_id] = Plugin(
            plugin_id=asked.plugin_id,
            stage=asked.plugin_type,
            priority=asked.priority,
            endpoint=asked.endpoint,
            registered_at=self._anchor(now_s),
            interval_s=asked.interval_s,
            hold_policy=asked.hold_policy,
            needs=tuple(asked.needs),
            requires=tuple(asked.requires),
            window_s=asked.window_s,
            version=asked.version,
            protocol_version=asked.protocol_version,
            subject=subject,
        )
        return Registered(True, negotiated_protocol_version=asked.protocol_version)

    def register_internal(
        self,
        plugin_id: str,
        stage: PluginStage,
        priority: int,
        instance: object,
        now_s: float,
        *,
        interval_s: float = 0.0,
        hold_policy: HoldPolicy = HoldPolicy.ACCEPT_WHEN_IDLE,
        needs: Sequence[str] = (),
        requires: Sequence[str] = (),
        window_s: float = 0.0,
        version: str = "builtin",
    ) -> Plugin:
        """Of an object in this process; "builtin" is the version of our own. ValueError: a known id, a misaligned window."""
        if plugin_id in self._plugins:
            raise ValueError(f"plugin {plugin_id!r} is registered already")
        if (problem := self._misaligned(window_s)) is not None:
            raise ValueError(f"plugin {plugin_id!r}: {problem}")
        plugin = Plugin(
            plugin_id=plugin_id,
            stage=stage,
            priority=priority,
            endpoint=f"{INPROC}{plugin_id}",
            registered_at=self._anchor(now_s),
            interval_s=interval_s,
            hold_policy=hold_policy,
            needs=tuple(needs),
            requires=tuple(requires),
            window_s=window_s,
            version=version,
            protocol_version=self.settings.protocol_version_max,
            is_builtin=version == "builtin",
            instance=instance,
        )
        self._plugins[plugin_id] = plugin
        return plugin

    def start_builtins(self, now_s: float) -> None:
        """Built-in plugins that were never called count their intervals from now."""
        for plugin in self._plugins.values():
            if plugin.is_builtin and plugin.last_call_at is None:
                plugin.registered_at = now_s

    def heartbeat(self, plugin_id: str, token: str, now_s: float) -> Denial | None:
        """Nothing is done to plugins that send none."""
        plugin = self._owned(plugin_id, token)
        if isinstance(plugin, Denial):
            return plugin
        plugin.last_heartbeat_at = now_s
        return None

    def unregister(self, plugin_id: str, token: str) -> Plugin | Denial:
        """The plugin that was removed; its connection is for the caller to close."""
        plugin = self._owned(plugin_id, token)
        if isinstance(plugin, Plugin):
            self.remove(plugin_id)
        return plugin

    def remove(self, plugin_id: str) -> Plugin | None:
        """Whoever owns it. None: there was none."""
        return self._plugins.pop(plugin_id, None)

    def invalidate_held(self) -> None:
        """No plugin's last override stands in any longer."""
        for plugin in self._plugins.values():
            plugin.held = None

    def list_plugins(self, now_s: float, stage: PluginStage | None = None, *, include_disabled: bool = False) -> list[PluginInfo]:
        """For this process only: over the network nobody may list."""
        return [
            _info(plugin, now_s)
            for plugin in self._plugins.values()
            if (stage is None or plugin.stage == stage) and (plugin.enabled or include_disabled)
        ]

    def _refused(self, asked: Registration) -> str | None:
        """The checks of planner.md §8.1 after that of the token, in order."""
        version = parse_version(asked.protocol_version)
        if version is None:
            return f"protocol_version_malformed: {asked.protocol_version[:64]!r} is no version"
        if not self._oldest <= version <= self._newest:
            supported = f"[{self.settings.protocol_version_min},{self.settings.protocol_version_max}]"
            return f"protocol_version_unsupported: requested={asked.protocol_version}, supported={supported}"
        if (problem := self._misaligned(asked.window_s)) is not None:
            return problem
        if asked.plugin_id in self._plugins:
            return "duplicate_plugin_id: must Unregister before re-Register"
        if asked.endpoint.startswith(INPROC):
            return "endpoint_rejected: only Planner itself may register plugins of its own process"
        if target_of(asked.endpoint) is None:
            return "transport_build_failed: the endpoint must be grpc://HOST:PORT"
        if not self.settings.transport.allow_insecure_grpc:
            return "transport_build_failed: plaintext gRPC needs plugin_registration.transport.allow_insecure_grpc"
        if sum(not plugin.in_process for plugin in self._plugins.values()) >= MOST_PLUGINS:
            return f"registry_full: there are {MOST_PLUGINS} plugins already"
        return None

    def _misaligned(self, window_s: float) -> str | None:
        if window_s == 0:
            return None
        ratio = window_s / self.base_s
        if math.isfinite(ratio) and ratio > 0 and round(ratio) >= 1 and abs(ratio - round(ratio)) <= _WINDOW_TOLERANCE:
            return None
        return f"observation_window_misaligned: {window_s:g} s must be 0 or a multiple of {self.base_s:g} s"

    def _anchor(self, now_s: float) -> float:
        return math.floor(now_s / self.base_s) * self.base_s

    def _owned(self, plugin_id: str, token: str) -> Plugin | Denial:
        subject = self._auth.subject(token)
        if subject is None:
            return Denial.UNAUTHENTICATED
        plugin = self._plugins.get(plugin_id)
        if plugin is None or plugin.in_process or plugin.subject != subject:
            return Denial.FORBIDDEN
        return plugin


def parse_version(text: str) -> tuple[int, ...] | None:
    """Numbers of MAJOR.MINOR and the like, comparable, without trailing zeros; None if it is none."""
    if _VERSION.fullmatch(text) is None:
        return None
    numbers = [int(part) for part in text.split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def target_of(endpoint: str) -> str | None:
    """host:port of a grpc:// endpoint; None if it is none."""
    target = endpoint.removeprefix(GRPC)
    match = _TARGET.fullmatch(target)
    if target == endpoint or not target.isprintable() or match is None or not 0 < int(match[2]) <= 65535:
        return None
    return target


def _info(plugin: Plugin, now_s: float) -> PluginInfo:
    return PluginInfo(
        plugin_id=plugin.plugin_id,
        plugin_type=plugin.stage,
        priority=plugin.priority,
        version=plugin.version,
        protocol_version=plugin.protocol_version,
        enabled=plugin.enabled,
        is_builtin=plugin.is_builtin,
        transport=plugin.endpoint.partition(":")[0],
        circuit_state=plugin.breaker.state(now_s),
        evaluations_total=plugin.evaluations_total,
        last_call_at_seconds_ago=None if plugin.last_call_at is None else now_s - plugin.last_call_at,
        cache_age_seconds=None if plugin.held is None else now_s - plugin.held_at,
    )
