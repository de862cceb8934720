"""Plugins that answer from a script."""

from math import inf

import msgspec

from controllers.planner.config.parts import HoldPolicy, PluginStage
from controllers.planner.merge import Kind, Target, TargetType
from controllers.planner.plugins.records import Prediction, PredictResponse, StageRequest, StageResponse
from controllers.planner.plugins.registry import Registry

__all__ = ("KINDS", "Scripted", "ScriptedInstance", "ScriptedPlugin", "ScriptedTarget", "register_scripted")


KINDS = ("accept", "reject", "override", "empty", "raise", "predict")


class ScriptedTarget(msgspec.Struct, frozen=True):
    """Replicas of a component; null is no opinion."""

    component: str
    replicas: int | None = None
    type: TargetType = TargetType.SET


class Scripted(msgspec.Struct, frozen=True):
    """One answer. The numbers are those of a prediction. kind: one of KINDS; of PREDICT anything but predict and raise predicts nothing."""

    kind: str = "accept"
    reason: str = ""
    final: bool = False
    targets: tuple[ScriptedTarget, ...] = ()
    num_req: float | None = None
    isl: float | None = None
    osl: float | None = None
    kv_hit_rate: float | None = None
    accept_length: float | None = None


class ScriptedPlugin(msgspec.Struct, frozen=True):
    """Answers in turn, one per call; the last one repeats. Without any it accepts."""

    plugin_id: str
    plugin_type: PluginStage
    priority: int
    execution_interval_seconds: float = 0.0
    hold_policy: str | int = "ACCEPT_WHEN_IDLE"
    needs: tuple[str, ...] = ()
    requires_produced_fields: tuple[str, ...] = ()
    observation_window_seconds: float = 0.0
    script: tuple[Scripted, ...] = ()

    @property
    def holds(self) -> HoldPolicy:
        """ValueError."""
        return HoldPolicy.parse(self.hold_policy)

    def problem(self) -> str | None:
        """What is wrong, with the field it is wrong in."""
        try:
            _ = self.holds
        except ValueError as error:
            return f"hold_policy: {error}"
        if not 0 <= self.execution_interval_seconds < inf:
            return f"execution_interval_seconds: must be a finite number of 0 or more, is {self.execution_interval_seconds}"
        if not self.plugin_id:
            return "plugin_id: must not be empty"
        for number, answer in enumerate(self.script):
            if self.plugin_type != "predict" and answer.kind not in KINDS:
                return f"script[{number}].kind: must be one of {', '.join(KINDS)}, is {answer.kind!r:.40}"
        return None


class ScriptedInstance:
    """The object that is called."""

    def __init__(self, plugin: ScriptedPlugin) -> None:
        self._plugin = plugin
        self._calls = 0

    def predict(self, request: StageRequest) -> PredictResponse:
        answer = self._next()
        if answer.kind != "predict":
            return PredictResponse() if answer.kind == "empty" else PredictResponse(None, answer.reason, answer.final)
        source = self._plugin.plugin_id
        prediction = Prediction(answer.num_req, answer.isl, answer.osl, source, answer.kv_hit_rate, answer.accept_length)
        return PredictResponse(prediction, answer.reason, answer.final)

    def propose(self, request: StageRequest) -> StageResponse:
        answer = self._next()
        if answer.kind in ("empty", "predict"):
            return StageResponse(None)
        targets = tuple(Target(target.component, target.replicas, target.type) for target in answer.targets)
        return StageResponse(Kind(answer.kind), targets if answer.kind == "override" else (), answer.reason, answer.final)

    reconcile = propose
    constrain = propose

    def _next(self) -> Scripted:
        script = self._plugin.script
        answer = script[min(self._calls, len(script) - 1)] if script else Scripted()
        self._calls += 1
        if answer.kind == "raise":
            raise RuntimeError(answer.reason or "scripted failure")
        return answer


def register_scripted(registry: Registry, plugin: ScriptedPlugin, now_s: float) -> None:
    """ValueError: a known id, a misaligned window, an unknown policy."""
    registry.register_internal(
        plugin.plugin_id,
        plugin.plugin_type,
        plugin.priority,
        ScriptedInstance(plugin),
        now_s,
        interval_s=plugin.execution_interval_seconds,
        hold_policy=plugin.holds,
        needs=plugin.needs,
        requires=plugin.requires_produced_fields,
        window_s=plugin.observation_window_seconds,
        version="user-in-process",
    )
