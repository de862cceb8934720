"""The executor of plans: the only writer of the program.

Stages run in order, and a stage starts only when the one before had no error. Inside a stage operations run in growing batches
(1, 2, 4, …), so that a refusal that meets all of them costs few requests. The first error, in the order of the plan, decides the
outcome; nothing is retried here: the queue brings the key back and a new plan is made from what the caches show by then.
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Literal, Protocol

import anyio
import msgspec

from api.plan import (
    Apply,
    ApplyStatus,
    Bind,
    Clock,
    Create,
    Delete,
    Emit,
    Key,
    Manifest,
    Op,
    Outcome,
    PatchStatus,
    Plan,
    Ref,
    SetFinalizers,
    Ungate,
)
from controllers.runtime.errors import AlreadyExists, ApiError, Conflict, NotFound, NotLeader, TransportError, UnknownOutcome
from controllers.runtime.expectations import Expectations
from controllers.runtime.metrics import Metrics
from controllers.runtime.refusals import UNREACHABLE_S, outcome_of
from controllers.runtime.representation import accept_for
from controllers.runtime.requests import Request, is_leaving, is_ours, named, request_for, target_of

__all__ = ("FOREIGN_BIND", "Caller", "Executor", "Recorder")

FOREIGN_BIND = "foreign bind"
"""Start of `Outcome.error` when a pod turned out to be bound to another node than the plan's."""
WRITE_TIMEOUT_S, WRITE_TIMEOUT_LIMIT_S = 5.0, 30.0
"""How long a write may take: as long as the fence allows for. Doubled for a key with each write in a row whose outcome stayed unknown:
behind a slow admission webhook nothing would ever be written otherwise, and uids, resourceVersions and names that follow from the owner
make a late write of an earlier term harmless."""

_LOG = logging.getLogger(__name__)


class Caller(Protocol):
    """What is needed of a transport. Raises the exceptions of controllers.runtime.errors."""

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout_s: float = 30.0,
    ) -> bytes: ...


class Recorder(Protocol):
    """Takes Kubernetes events; never waits, never fails."""

    def emit(self, ref: Ref, reason: str, message: str, type: Literal["Normal", "Warning"] = "Normal") -> None: ...


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _Answer(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_ANSWER = msgspec.json.Decoder(_Answer)


class _StopPlanError(Exception):
    """An operation ended in a way that is no API error but ends the plan."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.error)
        self.outcome = outcome


_Failure = ApiError | TransportError | NotLeader | _StopPlanError


class Executor:
    """Runs plans for one controller. `field_manager` names that controller as the owner of what it writes.

    `concurrency` bounds the requests in flight of one plan.
    """

    def __init__(
        self,
        transport: Caller,
        field_manager: str,
        expectations: Expectations,
        recorder: Recorder,
        clock: Clock,
        metrics: Metrics | None = None,
        *,
        concurrency: int = 32,
    ) -> None:
        self._transport = transport
        self._field_manager = field_manager
        self._expectations = expectations
        self._recorder = recorder
        self._clock = clock
        self._metrics = metrics
        self._concurrency = concurrency
        self._refusals: dict[Key, int] = {}
        self._unknown: dict[Key, int] = {}
        self._idle: dict[Key, dict[Ref, tuple[Manifest, str]]] = {}
        """Applies that changed nothing, with the resourceVersion for which that is known."""

    async def run(self, key: Key, plan: Plan, uid: str = "") -> Outcome:
        """Executes the plan made for `key` (whose object has `uid`) and reports every success to the expectations.

        done: everything was executed. conflict: stale cache, look again soon. after: the server asked to wait or was not reached.
        backoff: retry, also when the outcome is unknown. blocked: refused; `error` starts with the Reason.
        Raises NotLeader when the fence is closed.
        """
        outcome = await self.tell(key, plan, uid)
        if outcome.result == "blocked":
            self._refusals[key] = self._refusals.get(key, 0) + 1
        else:
            self._refusals.pop(key, None)
        return outcome

    async def tell(self, key: Key, plan: Plan, uid: str = "") -> Outcome:
        """The same for a plan that only reports (status, events): it does not count for or against the key's refusals."""
        started, done = self._clock.monotonic(), Counter[str]()
        outcome, failure = Outcome(), None
        for stage in plan.stages:
            failure = await self._stage(key, uid, stage, done)
            if failure is not None:
                outcome = self._outcome(key, *failure)
                break
        if failure is not None and isinstance(failure[1], UnknownOutcome):
            self._unknown[key] = self._unknown.get(key, 0) + 1
        elif done:
            self._unknown.pop(key, None)
        self._report(key, plan, outcome, done, self._clock.monotonic() - started)
        return outcome

    def forget(self, key: Key) -> None:
        """Drops what is remembered about refusals and slow writes of the key."""
        self._refusals.pop(key, None)
        self._unknown.pop(key, None)
        self._idle.pop(key, None)

    async def _stage(self, key: Key, uid: str, stage: Sequence[Op], done: Counter[str]) -> tuple[Op, _Failure] | None:
        position, size = 0, 1
        while position < len(stage):
            batch = stage[position : position + size]
            failures: dict[int, _Failure] = {}
            async with anyio.create_task_group() as tasks:
                for index, op in enumerate(batch):
                    tasks.start_soon(self._attempt, key, uid, index, op, failures, done)
            if failures:
                # A closed fence ends the plan whatever else went wrong.
                first = min(failures, key=lambda index: (not isinstance(failures[index], NotLeader), index))
                return batch[first], failures[first]
            position, size = position + len(batch), min(size * 2, self._concurrency)
        return None

    async def _attempt(self, key: Key, uid: str, index: int, op: Op, failures: dict[int, _Failure], done: Counter[str]) -> None:
        result = "done"
        try:
            await self._execute(key, uid, op)
            done[type(op).__name__] += 1
        except (ApiError, TransportError, NotLeader, _StopPlanError) as failure:
            failures[index] = failure
            result = _result_label(failure)
        if self._metrics is not None:
            self._metrics.operations.labels(type(op).__name__, result).inc()

    async def _execute(self, key: Key, uid: str, op: Op) -> None:
        match op:
            case Emit():
                self._recorder.emit(op.ref, op.reason, op.message, op.type)
            case Create():
                await self._create(key, uid, op)
            case Apply():
                await self._apply(key, uid, op)
            case Bind():
                await self._bind(key, uid, op)
            case Delete():
                with suppress(NotFound):
                    await self._send(key, uid, op)
                self._expectations.deleted(key, op.ref, uid)
            case ApplyStatus() | PatchStatus() | SetFinalizers() | Ungate():
                try:
                    await self._write(key, uid, op)
                except NotFound:
                    self._expectations.deleted(key, op.ref, uid)

    async def _write(self, key: Key, uid: str, op: Op) -> None:
        answer = await self._send(key, uid, op)
        self._expectations.wrote(key, target_of(op), _version(answer), uid)

    async def _apply(self, key: Key, uid: str, op: Apply) -> None:
        """What changed nothing before, because the difference belongs to somebody else, is not sent again for the same object."""
        ref, idle = target_of(op), self._idle.setdefault(key, {})
        seen = self._expectations.cached_version(ref)
        if seen and idle.get(ref) == (op.manifest, seen):
            return
        answer = await self._send(key, uid, op)
        version = _version(answer)
        self._expectations.wrote(key, ref, version, uid)
        if version == seen:
            idle[ref] = (op.manifest, version)
        else:
            idle.pop(ref, None)

    async def _create(self, key: Key, uid: str, op: Create) -> None:
        """A taken name is our own earlier create, or the next name is tried."""
        names = (op.manifest["metadata"]["name"], *op.fallback_names)
        live: Manifest = {}
        for name in names:
            attempt = named(op, name)
            try:
                await self._write(key, uid, attempt)
            except AlreadyExists:
                live = await self._read(target_of(attempt))
            else:
                return
            if is_ours(op, live):
                self._expectations.wrote(key, target_of(attempt), live["metadata"].get("resourceVersion", ""), uid)
                return
        if is_leaving(op, live):
            raise _StopPlanError(Outcome("backoff", error=f"{op.kind} {names[-1]} is still being deleted", failed_op=op))
        raise _StopPlanError(Outcome("blocked", 60.0, f"Conflict: {op.kind} {names[-1]} exists and belongs to somebody else", op))

    async def _bind(self, key: Key, uid: str, op: Bind) -> None:
        """A conflict is settled by what the pod says: on the planned node the bind is done, whoever did it."""
        try:
            await self._send(key, uid, op)
        except NotFound as error:
            raise _StopPlanError(Outcome("conflict", error=str(error), failed_op=op)) from error
        except Conflict as error:
            live = await self._read(op.ref)
            node = live.get("spec", {}).get("nodeName", "")
            same_life = live["metadata"].get("uid") == op.ref.uid
            if same_life and node and node != op.node:
                text = f"{FOREIGN_BIND}: {op.ref} is on node {node}, not on {op.node}"
                raise _StopPlanError(Outcome("backoff", error=text, failed_op=op)) from error
            if not (same_life and node == op.node):
                raise
        self._expectations.bound(key, op.ref, uid)

    async def _send(self, key: Key, uid: str, op: Op) -> bytes:
        request: Request = request_for(op, self._field_manager)
        timeout_s = min(WRITE_TIMEOUT_LIMIT_S, WRITE_TIMEOUT_S * 2.0 ** min(self._unknown.get(key, 0), 8))
        try:
            return await self._transport.call(
                request.method,
                request.path,
                query=request.query,
                body=request.body,
                content_type=request.content_type,
                timeout_s=timeout_s,
            )
        except UnknownOutcome:
            self._expectations.unknown(key, target_of(op), uid)
            raise
        except ApiError as error:
            if error.may_have_run:
                self._expectations.unknown(key, target_of(op), uid)
            raise

    async def _read(self, ref: Ref) -> Manifest:
        path = ref.kind.path(ref.namespace, ref.name)
        return msgspec.json.decode(await self._transport.call("GET", path, accept=accept_for(ref.kind.resource)), type=Manifest)

    def _outcome(self, key: Key, op: Op, failure: _Failure) -> Outcome:
        match failure:
            case NotLeader():
                if self._metrics is not None:
                    self._metrics.fence_rejections.inc()
                raise failure
            case _StopPlanError():
                return failure.outcome
            case ApiError():
                return outcome_of(failure, op, self._refusals.get(key, 0))
            case UnknownOutcome():
                return Outcome("backoff", error=str(failure), failed_op=op)
            case TransportError():
                return Outcome("after", UNREACHABLE_S, str(failure), op)

    def _report(self, key: Key, plan: Plan, outcome: Outcome, done: Counter[str], seconds: float) -> None:
        """One line per plan that wrote or was refused; quiet about conflicts, throttling and outages, which meet every key."""
        if not plan.stages:
            return
        quiet = outcome.result in ("conflict", "after") and not done
        fields = {
            "key": str(key),
            "outcome": outcome.result,
            "ms": round(seconds * 1000, 1),
            "operations": dict(done),
            "why": [why.reason for why in plan.why],
            "error": outcome.error,
            "failed": f"{type(outcome.failed_op).__name__} {target_of(outcome.failed_op)}" if outcome.failed_op is not None else "",
        }
        _LOG.log(logging.DEBUG if quiet else logging.INFO, "plan executed", extra={k: v for k, v in fields.items() if v})


def _version(answer: bytes) -> str:
    return _ANSWER.decode(answer).metadata.resource_version


def _result_label(failure: _Failure) -> str:
    match failure:
        case ApiError():
            return failure.reason or str(failure.status)
        case _StopPlanError():
            return failure.outcome.result
        case _:
            return type(failure).__name__
