"""Inputs of scaling decisions in a few words: engines with a load, a model that takes a fixed time per token."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from controllers.planner.config.model import PlannerConfig
from controllers.planner.fpm import Fpm, FpmMap, Queued, Scheduled
from controllers.planner.perfmodel import ModelDiagnostics, ModelOptions, PerformanceModel
from controllers.planner.perfmodel.options import WorkerKind
from controllers.planner.perfmodel.regression import RankLoad
from controllers.planner.propose import Forecast, LoadInputs, Models, ThroughputInputs
from controllers.planner.types import Capabilities, FpmObservations, Mode, Role, RoleCapabilities, WorkerCounts

MS_PER_PROMPT_TOKEN = 0.1
MS_PER_KV_TOKEN = 0.001
FACTS = RoleCapabilities(
    max_num_batched_tokens=8192, max_num_seqs=256, context_length=10_000, max_kv_tokens=100_000, gpu_cost_per_replica=1
)


class LinearCore:
    """Milliseconds in proportion to tokens; unknown for mixed work if `knows_mixed` is false."""

    def __init__(self, readiness: str = "ready", *, knows_mixed: bool = True) -> None:
        self._readiness: Any = readiness
        self._knows_mixed = knows_mixed

    def tune(self, ranks: Sequence[RankLoad]) -> None:
        """Learns nothing."""

    def estimate_ms(self, ranks: Sequence[RankLoad]) -> float | None:
        if not self._knows_mixed and any(rank.prefill_tokens and rank.decode_kv_tokens for rank in ranks):
            return None
        return max(rank.prefill_tokens * MS_PER_PROMPT_TOKEN + rank.decode_kv_tokens * MS_PER_KV_TOKEN for rank in ranks)

    def diagnostics(self) -> ModelDiagnostics:
        return ModelDiagnostics(self._readiness)


def model(kind: WorkerKind, core: LinearCore | None = None) -> PerformanceModel:
    made = PerformanceModel(kind, ModelOptions(), make_core=lambda *_: LinearCore() if core is None else core)
    made.update_capabilities(FACTS)
    return made


def config(**fields: Any) -> PlannerConfig:
    """The behaviour of Planner 1.5.1 without GPU ceiling, unless said otherwise."""
    plain = {"max_throughput_scaling_replicas": None, "pending_aware_scale_down": False, "max_gpu_budget": -1}
    return PlannerConfig.model_validate({**plain, **fields})


def sla(**fields: Any) -> PlannerConfig:
    """Only load scaling towards 500 ms to the first token and 50 ms between tokens, unless said otherwise."""
    return config(**{"optimization_target": "sla", "enable_load_scaling": True, "enable_throughput_scaling": False, **fields})


def prompts(*tokens: float) -> FpmMap:
    """One worker each, with so many prompt tokens in its queue."""
    made = (Queued(num_prefill_requests=1, sum_prefill_tokens=each) for each in tokens)  # pyright: ignore[reportArgumentType] - bad ones too
    return {(f"p{i}", 0): Fpm(worker_id=f"p{i}", queued_requests=queued) for i, queued in enumerate(made)}


def steps(*tokens: float, waiting: float = 0, waiting_prompts: float = 0) -> FpmMap:
    """One worker each, decoding with so many KV tokens. waiting: tokens of preempted requests, waiting_prompts: of prompts."""
    queued = Queued(
        num_decode_requests=1 if waiting else 0,
        sum_decode_kv_tokens=waiting,  # pyright: ignore[reportArgumentType] - bad ones too
        num_prefill_requests=1 if waiting_prompts else 0,
        sum_prefill_tokens=waiting_prompts,  # pyright: ignore[reportArgumentType]
    )
    made = (Scheduled(num_decode_requests=1, sum_decode_kv_tokens=each) for each in tokens)  # pyright: ignore[reportArgumentType]
    return {(f"d{i}", 0): Fpm(worker_id=f"d{i}", scheduled_requests=scheduled, queued_requests=queued) for i, scheduled in enumerate(made)}


def counts(prefill: int | None = None, decode: int | None = None, **fields: Any) -> WorkerCounts:
    """Ready, and as many expected unless said otherwise."""
    known = WorkerCounts(ready_num_prefill=prefill, ready_num_decode=decode, expected_num_prefill=prefill, expected_num_decode=decode)
    return replace(known, **fields)


def models(settings: PlannerConfig, core: LinearCore | None = None) -> Models:
    if settings.is_easy:
        return Models()
    kind = "aggregated" if settings.mode is Mode.AGG else "decode"
    return Models(model("prefill", core), model(kind, core))


def load(
    settings: PlannerConfig, prefill: FpmMap | None = None, decode: FpmMap | None = None, seen: WorkerCounts | None = None, **fields: Any
) -> LoadInputs:
    """As many engines ready as report, unless `seen` says otherwise."""
    numbers: dict[Role, int] = {"prefill": len(prefill or ()), "decode": len(decode or ())}
    found = counts(**{role: numbers[role] for role in settings.roles}) if seen is None else seen
    plain = LoadInputs(settings, Capabilities(FACTS, FACTS), found, FpmObservations(prefill, decode), models(settings))
    return replace(plain, **fields)


def reporting(settings: PlannerConfig, fpms: FpmMap, **fields: Any) -> LoadInputs:
    """With metrics of the only role."""
    return load(settings, fpms, None, **fields) if settings.mode is Mode.PREFILL else load(settings, None, fpms, **fields)


def traffic(settings: PlannerConfig, forecast: Forecast, seen: WorkerCounts, **fields: Any) -> ThroughputInputs:
    """In a window of one minute."""
    return replace(ThroughputInputs(settings, Capabilities(FACTS, FACTS), seen, forecast, 60.0, models(settings)), **fields)
