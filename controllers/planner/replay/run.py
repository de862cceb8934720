"""Plays a trace: a tick per line, each when Planner asks for it, and one line of output per tick."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

import msgspec

from controllers.planner.config.change import LEAST, Refusal, change_min_endpoints
from controllers.planner.config.load import ConfigError
from controllers.planner.config.model import PlannerConfig
from controllers.planner.engine import PlannerEngine, TickResult
from controllers.planner.plugins.configured import register_in_process
from controllers.planner.plugins.records import Answer, Call
from controllers.planner.replay.case import Case, Line, parse_line
from controllers.planner.replay.decode import CaseError
from controllers.planner.replay.script import register_scripted
from controllers.planner.types import ScalingDecision, ScheduledTick, TickInput

__all__ = ("Played", "Replay", "TraceError", "play", "play_on", "record_of", "to_json")


class TraceError(CaseError):
    """A line of a trace that cannot be used; `number` counts from 1."""

    def __init__(self, number: int, problem: object) -> None:
        super().__init__(str(problem))
        self.number = number


@dataclass(frozen=True, slots=True)
class Played:
    """A tick: its number from 0, what was read, what plugins were asked and answered, and what came of it."""

    index: int
    tick: ScheduledTick
    given: TickInput
    result: TickResult
    notes: tuple[str, ...] = ()
    heard: tuple[tuple[Call, Answer], ...] = ()


class Replay:
    """An engine with a virtual clock."""

    def __init__(self, case: Case) -> None:
        """CaseError for a case that no engine can be made of."""
        self._clock_s = case.start_s
        try:
            self.engine = PlannerEngine(case.config, case.capabilities, case.start_s)
            self._register(case)
        except (ValueError, ImportError, AttributeError, RuntimeError) as error:
            raise CaseError(str(error)) from error
        for role, fpms in case.bootstrap.items():
            self.engine.bootstrap(role, fpms)
        self.engine.warm(case.history)
        self._tick = self.engine.initial_tick(case.start_s, case.start_s)
        self._index = 0

    def play(self, line: Line) -> Played:
        """One tick. CaseError for a change of configuration that there cannot be."""
        engine, tick = self.engine, self._tick
        notes, self._notes = self._notes, []
        if line.capabilities is not None:
            engine.update_capabilities(line.capabilities)
        if line.set_config:
            engine.change_config(self._changed(line.set_config, notes))
        self._clock_s = max(self._clock_s, tick.at_s)
        given = line.given(tick, tick.at_s, engine.config)
        heard: list[tuple[Call, Answer]] = []
        result = engine.tick(tick, given, self._clock_s, heard)
        played = Played(self._index, tick, given, result, (*notes, *result.notes), tuple(heard))
        self._tick = result.effects.next_tick
        self._index += 1
        return played

    def _register(self, case: Case) -> None:
        registry = self.engine.registry
        self._notes = [
            f"plugin {plugin.plugin_id!r} is left out: a replay reaches no other process"
            for plugin in case.config.scheduling.external_plugins
        ]
        register_in_process(registry, case.config.plugin_registration.in_process_plugins, case.start_s)
        for plugin in case.plugins:
            register_scripted(registry, plugin, case.start_s)

    def _changed(self, changes: Mapping[str, Any], notes: list[str]) -> PlannerConfig:
        """Minimums by the rules of the control API, which refuses some and goes on; other fields by those of the configuration."""
        config = self.engine.config
        if changes.keys() <= LEAST.keys():
            changed = change_min_endpoints(config, json.dumps(changes), self.engine.capabilities)
            if isinstance(changed, Refusal):
                notes.append(f"set_config is refused ({changed.status}): {changed.text}")
                return config
            return changed
        try:
            return config.with_changes(**changes)
        except ConfigError as error:
            raise CaseError(f"set_config: {error}") from None


def play(case: Case, lines: Iterable[str | bytes]) -> Iterator[Played]:
    """Ticks of a trace, one by one; empty lines are none. CaseError, TraceError."""
    return play_on(Replay(case), lines)


def play_on(replay: Replay, lines: Iterable[str | bytes]) -> Iterator[Played]:
    """The same, on an engine that the caller keeps. TraceError."""
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            yield replay.play(parse_line(text))
        except CaseError as error:
            raise TraceError(number, error) from None


def record_of(played: Played) -> dict[str, Any]:
    """A line of output."""
    tick, effects = played.tick, played.result.effects
    counts = played.given.worker_counts
    ready = {"prefill": None if counts is None else counts.ready_num_prefill, "decode": None if counts is None else counts.ready_num_decode}
    scale_to = _counts(effects.scale_to)
    return {
        "i": played.index,
        "at_s": tick.at_s,
        "tick": {
            "run_load_scaling": tick.run_load_scaling,
            "run_throughput_scaling": tick.run_throughput_scaling,
            "need_traffic_metrics": tick.need_traffic_metrics,
            "use_full_traffic_metrics": tick.use_full_traffic_metrics,
            "traffic_metrics_duration_s": tick.traffic_metrics_duration_s,
            "need_worker_fpm": tick.need_worker_fpm,
        },
        "ready": ready,
        "scale_to": scale_to,
        "desired": ready if scale_to is None else {role: ready[role] if number is None else number for role, number in scale_to.items()},
        "diagnostics": msgspec.to_builtins(effects.diagnostics),
        "next_at_s": effects.next_tick.at_s,
    }


def to_json(record: Mapping[str, Any]) -> str:
    """One line with sorted keys. Numbers that JSON has not are text."""
    try:
        return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_named(record), sort_keys=True, separators=(",", ":"))


def _counts(decision: ScalingDecision | None) -> dict[str, int | None] | None:
    return None if decision is None else {"prefill": decision.num_prefill, "decode": decision.num_decode}


def _named(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _named(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list | tuple):
        return [_named(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return str(value) if isinstance(value, float) and not isfinite(value) else value
