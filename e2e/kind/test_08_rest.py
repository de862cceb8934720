"""At rest: memory, CPU time and writes of each process."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from e2e.kind import audit
from e2e.kind.scene import Scene
from e2e.kind.system import COMPONENTS, System, usage
from e2e.kind.waiting import stays

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]

REST_S = 65.0
SETTLE_S = 5.0
MEMORY_MIB = {"controllers": 150, "scheduler": 250}
CORE_PERCENT = 2.0


async def test_at_rest(running: Scene, system: System, measured: Callable[[str], None]) -> None:
    pods = {component: await system.pods(component) for component in COMPONENTS}
    everyone = [(component, pod) for component in COMPONENTS for pod in pods[component]]

    # What pods becoming ready sets off takes a moment to be told.
    async def uids() -> set[str]:
        return await running.uids()

    still = await uids()
    await stays(uids, lambda seen: seen == still, "the pods", SETTLE_S)
    began, at = time.monotonic(), datetime.now(UTC)
    before = [await usage(system, pod) for _, pod in everyone]
    await asyncio.sleep(REST_S)  # the time over which is measured
    after = [await usage(system, pod) for _, pod in everyone]
    passed = time.monotonic() - began
    memory = {pod.name: used.resident_mib for (_, pod), used in zip(everyone, after, strict=True)}
    core = {pod.name: 100 * (b.cpu_s - a.cpu_s) / passed for (_, pod), a, b in zip(everyone, before, after, strict=True)}
    for component, pod in everyone:
        measured(f"{pod.name}: {memory[pod.name]:.0f} MiB (at most {MEMORY_MIB[component]}), {core[pod.name]:.1f} % of a core at rest")
    done = [r for r in audit.requests(system.kind.audit(), at) if r.account.startswith("system:serviceaccount:grovekeeper-system:")]
    assert len(done) > REST_S / 3, "the audit log does not show the renewals of leases"
    assert [str(r) for r in audit.writes(done)] == []
    assert {pod.name: memory[pod.name] for component, pod in everyone if memory[pod.name] > MEMORY_MIB[component]} == {}
    assert {name: percent for name, percent in core.items() if percent > CORE_PERCENT} == {}
