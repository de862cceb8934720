"""Mistakes that people make: each process says what is wrong and what mends it, the old pods go on, and all is well when it is mended."""

import json
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio

from e2e.cluster import Pod
from e2e.kind.conftest import CHAT_PODS, Deliberate
from e2e.kind.scene import Scene
from e2e.kind.system import COMPONENTS, NAMESPACE, Overlay, System
from e2e.kind.waiting import until
from hack.codegen.files import ROOT
from hack.daemon import CONTROLLERS_CONFIG

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

CRDS = ROOT / "manifests" / "crds"
SAID_S = 40.0


async def holders(system: System) -> dict[str, str]:
    return {component: await system.holder(component) for component in COMPONENTS}


async def new_pods(system: System, known: set[str]) -> list[Pod]:
    return [pod for pod in await system.every_pod() if pod.uid not in known]


async def wait_said(system: System, pod: Pod, words: tuple[str, ...]) -> None:
    """Wait for a line of the pod's log with all the words."""

    async def look() -> list[str]:
        lines = (await system.live.logs(pod.object)).splitlines()
        return [line for line in lines if all(word in line for word in words)] or lines[-5:]

    await until(look, lambda lines: lines and all(w in lines[0] for w in words), f"{pod.name} says {words}", SAID_S)


@pytest_asyncio.fixture(loop_scope="session")
async def restored(running: Scene, system: System) -> AsyncGenerator[Scene]:
    """Afterwards the installation is the one under test again, whatever a test did to it."""
    yield running
    await system.install_crds()
    await system.roll_out(system.overlay, 120)


async def test_wrong_image(restored: Scene, system: System) -> None:
    """The rollout says so and does not end; the old pods stay and go on working."""
    before, leading = await system.lives(), await holders(system)
    known = {uid for uid, _ in before.values()}
    await system.apply(Overlay("grovekeeper:does-not-exist"))
    code, said = await system.kubectl.outcome("rollout", "status", "deployment/grovekeeper-controllers", "-n", NAMESPACE, "--timeout=5s")
    assert code != 0
    assert "timed out waiting for the condition" in said or "1 out of 2" in said

    async def reasons() -> list[str]:
        pods = await new_pods(system, known)
        states = [s["state"].get("waiting", {}) for pod in pods for s in pod.object["status"].get("containerStatuses", ())]
        return [s.get("reason", "") for s in states]

    await until(reasons, lambda seen: len(seen) == 2 and set(seen) <= {"ErrImagePull", "ImagePullBackOff"}, "no image, no pod", 60.0)
    after = await system.lives()
    assert {name: after.get(name) for name in before} == before
    assert await holders(system) == leading
    await restored.scale("pclq/chat-0-decode", 3)
    await restored.ready(CHAT_PODS + 1, "the old pods go on working")
    await restored.scale("pclq/chat-0-decode", 2)
    await system.roll_out(system.overlay, 120)
    assert await system.lives() == before


async def test_malformed_configuration(restored: Scene, system: System) -> None:
    """New pods end and name the key; the old ones keep leading."""
    before, leading = await system.lives(), await holders(system)
    known = {uid for uid, _ in before.values()}
    text = CONTROLLERS_CONFIG.read_text().replace("leaderElection:", "leaderElektion:")
    await system.apply(Overlay(system.overlay.image, text))

    async def endings() -> list[tuple[int, str]]:
        pods = await new_pods(system, known)
        statuses = [s for pod in pods for s in pod.object["status"].get("containerStatuses", ())]
        ends = [s["lastState"].get("terminated") or s["state"].get("terminated") for s in statuses]
        return [(end["exitCode"], end.get("message", "")) for end in ends if end]

    seen = await until(endings, lambda ends: len(ends) == 2, "both new pods end", 60.0)
    assert [code for code, _ in seen] == [4, 4]
    assert [message for _, message in seen if "leaderElektion" not in message or "controllers.yaml" not in message] == []
    after = await system.lives()
    assert {name: after.get(name) for name in before} == before
    assert await holders(system) == leading
    await system.roll_out(system.overlay, 120)
    assert await system.lives() == before


async def test_missing_crds(restored: Scene, system: System) -> None:
    """Running and starting processes say what is missing and which command installs it, and go on without a restart."""
    await restored.remove("chat")
    await restored.gone()
    before = await system.lives()
    await system.kubectl("delete", "-f", str(CRDS), "--ignore-not-found")
    words = ("Custom resource definitions are missing", "podgangs.scheduler.grove.io", "grovekeeper install --crds")
    started: list[Pod] = []
    for component in COMPONENTS:
        old = (await system.pods(component))[0]
        await system.delete_pod(old)

        async def fresh(component: str = component) -> Pod | None:
            found = [pod for pod in await system.pods(component) if pod.name not in before]
            return found[0] if found and found[0].object["status"].get("phase") == "Running" else None

        new = await until(fresh, bool, f"another pod of {component}", 40.0)
        assert new is not None
        started.append(new)
        for pod in (new, next(p for p in await system.pods(component) if p.name in before and p.live)):
            await wait_said(system, pod, words)
    ready = {pod.name: pod.ready for pod in await system.every_pod()}
    assert not any(ready[pod.name] for pod in started), "without its caches a new process is not ready"
    lives = {name: life for name, life in (await system.lives()).items() if name in {p.name for p in started} or name in before}
    await system.install_crds()
    await system.rolled_out(120)
    after = await system.lives()
    assert {name: n for name, (_, n) in after.items() if n != lives[name][1]} == {}, "nobody had to be restarted"


async def test_missing_right(restored: Scene, system: System, deliberate: Deliberate) -> None:
    """The log names the account, the verb, the resource and the remedy; afterwards the work is done."""
    role = json.loads(await system.kubectl("get", "clusterrole", "grovekeeper-controllers", "-o", "json"))
    rule = next(i for i, r in enumerate(role["rules"]) if r["apiGroups"] == [""] and r["resources"] == ["pods"])
    verb = role["rules"][rule]["verbs"].index("create")
    leader, before = await system.leader("controllers"), await system.lives()
    patch = json.dumps([{"op": "remove", "path": f"/rules/{rule}/verbs/{verb}"}])
    with deliberate.window():
        await system.kubectl("patch", "clusterrole", "grovekeeper-controllers", "--type=json", "-p", patch)
        await restored.scale("pclq/chat-0-decode", 3)
        words = (f"ServiceAccount {NAMESPACE}/grovekeeper-controllers may not create pods", "kubectl apply -k manifests/base")
        await wait_said(system, leader, words)
        assert len(await restored.pods()) == CHAT_PODS
        await system.apply(system.overlay)
        # Refusals are tried again after a minute; a change of the object is looked at at once.
        await restored.scale("pclq/chat-0-decode", 4)
        await restored.ready(CHAT_PODS + 2, "what was refused is done", 100.0)
    assert await system.lives() == before
    await restored.scale("pclq/chat-0-decode", 2)
    await restored.ready(CHAT_PODS, "as before")


@pytest.mark.parametrize("component", COMPONENTS)
async def test_unreachable_api_server(restored: Scene, system: System, component: str) -> None:
    """The leader's packets are lost: it says so and gives up the lease, the other one leads; when they arrive again, it follows."""
    leader, before = await system.leader(component), await system.lives()
    address = leader.object["status"]["podIP"]
    # Behind the service's address: what leaves the pod for the API server has its real port by then.
    rule = ("FORWARD", "-s", address, "-p", "tcp", "--dport", "6443", "-j", "DROP")
    await system.on_node(leader.node, "iptables", "-I", *rule)
    try:

        async def other() -> bool:
            holder = await system.holder(component)
            return bool(holder) and not holder.startswith(f"{leader.name}_")

        await until(other, bool, f"another leader than {leader.name}", 40.0)
        await restored.scale("pclq/chat-0-decode", 3)
        await restored.ready(CHAT_PODS + 1, "the other one works", 60.0)
        await wait_said(system, leader, ("API server https://", "cannot be reached"))
    finally:
        await system.on_node(leader.node, "iptables", "-D", *rule)

    async def ready() -> dict[str, bool]:
        return {pod.name: pod.ready for pod in await system.every_pod()}

    await until(ready, lambda seen: len(seen) == 4 and all(seen.values()), "everybody is ready again", 60.0)
    assert await system.lives() == before, "who lost the lease competes again in the same container"
    await restored.scale("pclq/chat-0-decode", 2)
    await restored.ready(CHAT_PODS, "as before")
