"""Deliberately broken products are caught: each by the invariants that are about its mistake."""

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import msgspec
import pytest

from api.operatorconfig import OperatorConfiguration
from api.plan import Bind, Create, Delete, Key, Op, Outcome, Plan
from cli.programs import PROGRAMS
from controllers.podclique import plan as podclique_plan
from controllers.runtime import requests
from controllers.runtime.apply import Executor
from controllers.runtime.errors import ApiError
from controllers.runtime.fence import LeaseFence
from controllers.runtime.leader import LeaderElector
from sim.cluster.cluster import Setup
from sim.faults.plan import Fault, parse
from sim.sweeps.runner import Result, run_scenario

pytestmark = pytest.mark.timeout(60)

Patch = pytest.MonkeyPatch


@pytest.fixture
def violated(config: OperatorConfiguration) -> Callable[..., str]:
    """Runs a scenario; the name of the first violated invariant, "" without one."""

    def run(scenario: str, *faults: str, seed: int = 3, replicas: int = 1) -> str:
        plan: Sequence[Fault] = [parse(text) for text in faults]
        result: Result = run_scenario(Setup(PROGRAMS, config, replicas=replicas), scenario, seed, plan)
        return result.violation.invariant if result.violation is not None else ""

    return run


def test_the_real_program_is_not_caught(violated: Callable[..., str]) -> None:
    assert violated("scale-down") == ""


def test_deletes_without_uid(violated: Callable[..., str], monkeypatch: Patch) -> None:
    def options(op: Delete) -> dict[str, Any]:
        return {"kind": "DeleteOptions", "apiVersion": "v1"}

    monkeypatch.setattr(requests, "_delete_options", options)
    assert violated("scale-down") == "DeleteWithPrecondition"


def test_binds_without_uid(violated: Callable[..., str], monkeypatch: Patch) -> None:
    def binding(op: Bind) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": op.ref.name}, "target": {"kind": "Node", "name": op.node}}

    monkeypatch.setattr(requests, "_binding", binding)
    assert violated("create") == "NoDoubleBind"


def test_binds_twice_at_once(violated: Callable[..., str], monkeypatch: Patch) -> None:
    bind = Executor._bind

    async def twice(self: Executor, key: Key, uid: str, op: Bind) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bind, self, key, uid, op)
            with contextlib.suppress(ApiError):
                await self._send(key, uid, dataclasses.replace(op, node="agent-9" if op.node != "agent-9" else "agent-8"))

    monkeypatch.setattr(Executor, "_bind", twice)
    assert violated("create") == "NoDoubleBind"


def test_puts_all_pods_on_one_node(violated: Callable[..., str], monkeypatch: Patch) -> None:
    bind = Executor._bind

    async def crowded(self: Executor, key: Key, uid: str, op: Bind) -> None:
        await bind(self, key, uid, dataclasses.replace(op, node="agent-0"))

    monkeypatch.setattr(Executor, "_bind", crowded)
    assert violated("create") == "NoOvercommit"


def test_binds_only_half_of_a_gang(violated: Callable[..., str], monkeypatch: Patch) -> None:
    run = Executor.run

    begun: set[Key] = set()

    async def half(self: Executor, key: Key, plan: Plan, uid: str = "") -> Outcome:
        binds = [op for op in plan.ops if isinstance(op, Bind)]
        stages = (tuple(binds[: key not in begun]),)
        begun.update([key] if binds else [])
        return await run(self, key, Plan(stages) if binds else plan, uid)

    monkeypatch.setattr(Executor, "run", half)
    assert violated("create") == "GangAtomicity"


def test_skips_the_fence(violated: Callable[..., str], monkeypatch: Patch) -> None:
    monkeypatch.setattr(LeaseFence, "check", lambda self: None)
    monkeypatch.setattr(LeaderElector, "_left_s", lambda self: 1.0)
    pauses = ("pause process=controllers-0 at=1.5 seconds=40", "pause process=controllers-1 at=1.5 seconds=40")
    found = {violated("scale-up", pause, seed=seed, replicas=2) for seed in range(3) for pause in pauses}
    assert "FencedWrites" in found


def test_makes_a_pod_too_many(violated: Callable[..., str], monkeypatch: Patch) -> None:
    create_pods = podclique_plan.create_pods

    def more(o: Any, pcs: Any, indices: Any) -> list[Create]:
        wanted = list(indices)
        return create_pods(o, pcs, [*wanted, max(wanted) + 1] if wanted else [])

    monkeypatch.setattr(podclique_plan, "create_pods", more)
    assert violated("create") == "NoSurplusPod"


def test_restarts_pods_for_nothing(violated: Callable[..., str], monkeypatch: Patch) -> None:
    run = Executor.run
    done: set[str] = set()

    async def restless(self: Executor, key: Key, plan: Plan, uid: str = "") -> Outcome:
        created = [op for op in plan.ops if isinstance(op, Create) and op.kind.kind == "Pod"]
        outcome = await run(self, key, plan, uid)
        if created and not done:
            done.add(uid)
            name = created[0].manifest["metadata"]["name"]
            live = msgspec.json.decode(await self._transport.call("GET", created[0].kind.path(key.namespace, name)))
            ref = Delete(dataclasses.replace(_ref(created[0]), uid=live["metadata"]["uid"]))
            await run(self, key, Plan(((ref,),)), uid)
        return outcome

    monkeypatch.setattr(Executor, "run", restless)
    assert violated("create") == "NoSpuriousRestart"


def _ref(op: Create) -> Any:
    return requests.target_of(op)


def test_repeats_itself(violated: Callable[..., str], monkeypatch: Patch) -> None:
    send = Executor._send

    async def busy(self: Executor, key: Key, uid: str, op: Op) -> bytes:
        for _ in range(25 if op.__class__.__name__ == "ApplyStatus" else 0):
            await send(self, key, uid, op)
        return await send(self, key, uid, op)

    monkeypatch.setattr(Executor, "_send", busy)
    assert violated("create") == "BoundedWork"


def test_writes_at_rest(violated: Callable[..., str], monkeypatch: Patch) -> None:
    run = Executor.run

    async def fidgety(self: Executor, key: Key, plan: Plan, uid: str = "") -> Outcome:
        outcome = await run(self, key, plan, uid)
        return Outcome("after", 100.0) if outcome.result == "done" and self._field_manager.endswith("podgang") else outcome

    execute = Executor.tell

    async def again(self: Executor, key: Key, plan: Plan, uid: str = "") -> Outcome:
        if not plan.ops and self._field_manager.endswith("podgang"):
            path = f"/api/v1/namespaces/default/pods/none-{self._clock.now():%H%M%S}"
            with contextlib.suppress(ApiError):
                await self._transport.call("PATCH", path, body=b"{}", content_type="application/merge-patch+json")
        return await execute(self, key, plan, uid)

    monkeypatch.setattr(Executor, "run", fidgety)
    monkeypatch.setattr(Executor, "tell", again)
    assert violated("create") == "Liveness"
