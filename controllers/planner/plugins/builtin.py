"""The plugins of Planner itself: forecast, throughput and load scaling. Source: planner.md §10.

There is none for RECONCILE and CONSTRAIN: floors and budgets are enforced after the pipeline.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from controllers.planner.config.model import PlannerConfig
from controllers.planner.merge import Kind, Target
from controllers.planner.plugins.records import ACCEPT, Prediction, PredictResponse, StageRequest, StageResponse
from controllers.planner.plugins.registry import Registry
from controllers.planner.predict.traffic import TrafficFit, TrafficFitted, TrafficState
from controllers.planner.propose import DecisionReason
from controllers.planner.scaling import Scaling
from controllers.planner.ticks import LOAD_PROPOSE
from controllers.planner.types import ScalingDecision, TrafficObservation

__all__ = ("LOAD_PREDICT", "PREDICT_PENDING", "THROUGHPUT_PROPOSE", "FitElsewhere", "LoadPredict", "register_builtins")

LOAD_PREDICT = "builtin_load_predict"
THROUGHPUT_PROPOSE = "builtin_throughput_propose"
PREDICT_PENDING = "predict_pending"
"""Not in Planner 1.5.1: a fit takes longer than a tick may wait; the plugin is asked again on the next tick."""

FitElsewhere: TypeAlias = Callable[[TrafficFit], Awaitable[TrafficFitted | None]]
"""Does fits off the event loop. None: not finished yet; asked again with the same fit, it goes on waiting for that one."""


class LoadPredict:
    """Predicts the traffic of the next window from that of the windows so far."""

    def __init__(self, traffic: TrafficState, fit_elsewhere: FitElsewhere | None = None) -> None:
        self._traffic = traffic
        self._elsewhere = fit_elsewhere
        self._waiting: TrafficFit | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a window has been observed but its forecast is not there yet."""
        return self._waiting is not None

    def predict(self, request: StageRequest) -> PredictResponse | Awaitable[PredictResponse]:
        """A failure to predict is an answer too: the traffic has been taken in, so that asking again would count it twice."""
        observed = request.context.observations
        traffic = None if observed is None else observed.traffic
        if self._elsewhere is not None and (self._waiting is not None or traffic is not None):
            return self._predict_later(self._elsewhere, traffic)
        if traffic is None:
            return PredictResponse(reason=DecisionReason.NO_TRAFFIC_DATA)
        self._traffic.observe(traffic)
        return self._answer()

    async def _predict_later(self, elsewhere: FitElsewhere, traffic: TrafficObservation | None) -> PredictResponse:
        """The same, with the slow part awaited. The window of a forecast that is still awaited is not observed twice."""
        if self._waiting is None and traffic is not None:
            self._traffic.observe(traffic)
            self._waiting = self._traffic.fit_job()
        if self._waiting is not None:
            fitted = await elsewhere(self._waiting)
            if fitted is None:
                return PredictResponse(reason=PREDICT_PENDING)
            self._waiting = None
            self._traffic.take(fitted)
            if fitted.error is not None:
                return PredictResponse(reason=DecisionReason.PREDICT_FAILED)
        return self._answer()

    def _answer(self) -> PredictResponse:
        found = self._traffic.predict()
        if found is None:
            return PredictResponse(reason=DecisionReason.PREDICT_FAILED)
        return PredictResponse(
            Prediction(found.num_req, found.isl, found.osl, LOAD_PREDICT, found.kv_hit_rate, found.accept_length), "predicted"
        )

    def warm_from_observations(self, history: Sequence[TrafficObservation]) -> None:
        """Windows of the past, before the first tick."""
        self._traffic.warm(history)


class ThroughputPropose:
    """As many replicas as the forecast needs; with load scaling only its lower bounds."""

    def __init__(self, scaling: Scaling) -> None:
        self._scaling = scaling

    def propose(self, request: StageRequest) -> StageResponse:
        return _response(self._scaling.throughput(request.context), "throughput_scale")


class LoadPropose:
    """Replicas for the load of this moment."""

    def __init__(self, scaling: Scaling) -> None:
        self._scaling = scaling

    def propose(self, request: StageRequest) -> StageResponse:
        return _response(self._scaling.load(request.context), "load_scale")


def register_builtins(registry: Registry, scaling: Scaling, now_s: float, fit_elsewhere: FitElsewhere | None = None) -> LoadPredict:
    """Those that the configuration switches on, in the order in which Planner has them."""
    config = scaling.config
    predict = LoadPredict(scaling.traffic, fit_elsewhere)
    if config.enable_throughput_scaling:
        every_s = float(config.throughput_adjustment_interval_seconds)
        traffic = ("observations.traffic",)
        registry.register_internal(LOAD_PREDICT, "predict", 0, predict, now_s, interval_s=every_s, needs=traffic, window_s=every_s)
        registry.register_internal(
            THROUGHPUT_PROPOSE,
            "propose",
            20,
            ThroughputPropose(scaling),
            now_s,
            interval_s=every_s,
            needs=(*traffic, "predictions"),
            requires=("predictions",),
            window_s=every_s,
        )
    if config.enable_load_scaling:
        _register_load(registry, config, LoadPropose(scaling), now_s)
    return predict


def _register_load(registry: Registry, config: PlannerConfig, instance: LoadPropose, now_s: float) -> None:
    """Without forecasts it reads the cache hit rate and the accept length of its own interval."""
    every_s = float(config.load_adjustment_interval_seconds)
    reads_traffic = not config.is_easy and not config.enable_throughput_scaling
    registry.register_internal(
        LOAD_PROPOSE,
        "propose",
        10,
        instance,
        now_s,
        interval_s=every_s,
        needs=("observations.fpm", "observations.workers", *(("observations.traffic",) if reads_traffic else ())),
        window_s=every_s if reads_traffic else 0.0,
    )


def _response(decision: ScalingDecision | None, reason: str) -> StageResponse:
    if decision is None:
        return ACCEPT
    counts = (("prefill", decision.num_prefill), ("decode", decision.num_decode))
    return StageResponse(Kind.OVERRIDE, tuple(Target(role, number) for role, number in counts if number is not None), reason)
