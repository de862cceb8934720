"""The API server goes away and comes back: nobody is replaced, everybody is ready again, work goes on."""

import asyncio
import time
from collections.abc import Callable

import pytest

from e2e.kind.conftest import CHAT_PODS
from e2e.kind.scene import Scene
from e2e.kind.system import System
from e2e.kind.waiting import until

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]


async def test_restart(running: Scene, system: System, measured: Callable[[str], None]) -> None:
    before, engines = await system.lives(), await running.uids()
    began = time.monotonic()
    await asyncio.to_thread(system.kind.restart_api_server)
    away_s = time.monotonic() - began

    async def ready() -> dict[str, bool]:
        return {pod.name: pod.ready for pod in await system.every_pod()}

    await until(ready, lambda seen: all(seen.values()), "all pods are ready again", 60.0)
    await running.scale("pcsg/chat-0-prefill", 3)
    await running.ready(CHAT_PODS + 2, "three prefill engines", 90.0)
    measured(f"API server restarted in {away_s:.1f} s; {time.monotonic() - began:.1f} s until a scale-up was ready")
    assert await system.lives() == before, "a leader that could not renew its lease in time competes again in the same container"
    await running.scale("pcsg/chat-0-prefill", 2)
    await running.ready(CHAT_PODS, "as before")
    assert await running.uids() == engines
