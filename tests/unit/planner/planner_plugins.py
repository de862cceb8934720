"""Plugins, registries and contexts for tests, and a plugin that answers what a test tells it."""

from collections.abc import Callable, Sequence
from typing import Any

from controllers.planner.config.parts import PluginAuth, PluginRegistration, PluginTransport
from controllers.planner.merge import Kind, Target
from controllers.planner.plugins.records import Context, Observations, Prediction, PredictResponse, StageRequest, StageResponse
from controllers.planner.plugins.registry import Registration, Registry
from controllers.planner.types import TrafficObservation, WorkerCounts

SECRETS = {"s3cret-one": "team-a", "s3cret-two": "team-b"}
WORKERS = WorkerCounts(ready_num_prefill=2, ready_num_decode=3)


class Scripted:
    """Answers one after another, the last for ever; exceptions are raised. `requests`: what it was asked."""

    def __init__(self, *script: object) -> None:
        self.script: list[Any] = list(script)
        self.requests: list[StageRequest] = []

    def answer(self, request: StageRequest) -> Any:
        self.requests.append(request)
        now = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(now, BaseException):
            raise now
        return now

    predict = propose = reconcile = constrain = answer


class Waiting:
    """A plugin of coroutines."""

    def __init__(self, wait: Callable[[], Any], answer: object) -> None:
        self.wait = wait
        self.then = answer

    async def answer(self, _request: StageRequest) -> object:
        await self.wait()
        return self.then

    predict = propose = reconcile = constrain = answer


def registry(base_s: float = 5.0, *, secrets: dict[str, str] | None = None, insecure: bool = True, **transport: Any) -> Registry:
    auth = PluginAuth() if secrets is None else PluginAuth(trusted_sources=["static_secret"], static_secrets=secrets)
    return Registry(base_s, PluginRegistration(auth=auth, transport=PluginTransport(allow_insecure_grpc=insecure, **transport)))


def registration(**changes: Any) -> Registration:
    known: dict[str, Any] = {"plugin_id": "p", "plugin_type": "propose", "priority": 5, "endpoint": "grpc://127.0.0.1:9000"}
    return Registration(**(known | changes))


def context(workers: WorkerCounts | None = WORKERS, traffic: TrafficObservation | None = None) -> Context:
    return Context("tick-5.0", "d-5.0", Observations(traffic=traffic, workers=workers))


def override(*targets: tuple[Any, ...], reason: str = "", final: bool = False) -> StageResponse:
    return StageResponse(Kind.OVERRIDE, tuple(Target(*target) for target in targets), reason, final)


def predicted(*numbers: float | None, source: str = "", reason: str = "", final: bool = False) -> PredictResponse:
    """Requests, isl, osl, hit rate, accept length."""
    values: Sequence[float | None] = (*numbers, *[None] * (5 - len(numbers)))
    return PredictResponse(Prediction(values[0], values[1], values[2], source, values[3], values[4]), reason, final)


REJECT = StageResponse(Kind.REJECT, reason="no")
EMPTY = StageResponse(None)
