"""Load scaling by fixed thresholds: targets throughput, latency and load. Source: planner.md §12.2."""

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from controllers.planner.config.model import PlannerConfig
from controllers.planner.fpm import Fpm
from controllers.planner.propose.reasons import DecisionReason
from controllers.planner.propose.records import LoadInputs, Opinion
from controllers.planner.types import Mode, Role

__all__ = ("Band", "EasyReading", "Pressure", "easy_opinion", "easy_pressure", "easy_reading")

# More tokens than any engine holds; beyond it a count is an error, and might not even fit a float.
MOST_TOKENS = 2**62


class Pressure(Enum):
    """How the load stands to the thresholds."""

    ABOVE = "above"
    BETWEEN = "between"
    BELOW = "below"


class Band(NamedTuple):
    """Thresholds of one engine's load: up if any reaches `up`, down if all are below `down`. Inclusive: the threshold itself counts."""

    up: float
    down: float
    up_inclusive: bool
    down_inclusive: bool

    def pressure(self, loads: Sequence[float]) -> Pressure:
        highest = max(loads)
        if highest > self.up or (self.up_inclusive and highest == self.up):
            return Pressure.ABOVE
        if highest < self.down or (self.down_inclusive and highest == self.down):
            return Pressure.BELOW
        return Pressure.BETWEEN


class EasyReading(NamedTuple):
    """Thresholds, the load of each engine, and how many tokens are a load of one."""

    band: Band
    loads: Sequence[float]
    whole: int


PREFILL_BANDS = {
    "throughput": Band(1.0, 0.1, up_inclusive=True, down_inclusive=False),
    "latency": Band(0.1, 0.0, up_inclusive=True, down_inclusive=True),
}
DECODE_BANDS = {
    "throughput": Band(1.0, 0.6, up_inclusive=False, down_inclusive=False),
    "latency": Band(0.4, 0.1, up_inclusive=False, down_inclusive=False),
}


def easy_opinion(inputs: LoadInputs, role: Role, ready: int) -> Opinion:
    """One replica more or less, or none. With more than one ready but fewer than the minimum, "less" is the minimum, thus more."""
    pressure = easy_pressure(inputs, role) if ready > 0 else DecisionReason.INSUFFICIENT_DATA
    if isinstance(pressure, DecisionReason):
        return Opinion(None, pressure)
    if pressure is Pressure.ABOVE:
        return Opinion(ready + 1)
    if pressure is Pressure.BELOW and ready > 1:
        return Opinion(max(ready - 1, inputs.config.effective_min(role)))
    return Opinion(None, DecisionReason.NO_CHANGE)


def easy_pressure(inputs: LoadInputs, role: Role) -> Pressure | DecisionReason:
    """How high the load of a role that reports is, or why it cannot be told."""
    reading = easy_reading(inputs, role)
    return reading if isinstance(reading, DecisionReason) else reading.band.pressure(reading.loads)


def easy_reading(inputs: LoadInputs, role: Role) -> EasyReading | DecisionReason:
    """What thresholds are held against, or why there is nothing to hold."""
    band = _band(inputs.config, role)
    whole = _whole(inputs, role)
    if band is None or whole is None:
        return DecisionReason.INSUFFICIENT_DATA
    loads: list[float] = []
    for fpm in inputs.fpm_of(role).values():
        tokens = _tokens(fpm, inputs.config.mode, role)
        if tokens is None:
            return DecisionReason.FPM_INVALID
        loads.append(tokens / whole)
    return EasyReading(band, loads, whole) if loads else DecisionReason.INSUFFICIENT_DATA


def _band(config: PlannerConfig, role: Role) -> Band | None:
    """None: thresholds are missing."""
    target = config.optimization_target
    if target != "load":
        return (PREFILL_BANDS if role == "prefill" else DECODE_BANDS)[target]
    if role == "prefill":
        up, down, unit = config.prefill_scale_up_queue_tokens, config.prefill_scale_down_queue_tokens, 1
    else:
        up, down, unit = config.decode_scale_up_kv_rate, config.decode_scale_down_kv_rate, 100
    return None if up is None or down is None else Band(up / unit, down / unit, up_inclusive=True, down_inclusive=True)


def _whole(inputs: LoadInputs, role: Role) -> int | None:
    """Tokens that count as a load of one. None: not known, or none at all."""
    if role == "prefill" and inputs.config.optimization_target == "load":
        return 1
    facts = inputs.capabilities.of(role)
    if facts is None:
        return None
    whole = facts.context_length if role == "prefill" else facts.max_kv_tokens
    return whole if whole is not None and whole > 0 else None


def _tokens(fpm: Fpm, mode: Mode, role: Role) -> int | None:
    """What the engine has to do: prompts that wait, or KV cache in use and asked for. None: numbers that cannot be."""
    queued = fpm.queued_requests
    if role == "prefill":
        parts = (queued.sum_prefill_tokens,)
    else:
        parts = (
            fpm.scheduled_requests.sum_decode_kv_tokens,
            queued.sum_decode_kv_tokens,
            queued.sum_prefill_tokens if mode is Mode.AGG else 0,
        )
    return sum(parts) if all(0 <= part <= MOST_TOKENS for part in parts) else None
