"""From the previous version to this one with a gang at work: no engine notices."""

import asyncio
from collections.abc import Callable

import pytest
import yaml

from e2e.cluster import Pod
from e2e.kind import images
from e2e.kind.conftest import CHAT_PODS
from e2e.kind.live import Manifest
from e2e.kind.scene import Scene
from e2e.kind.system import NAMESPACE, Overlay, System, restarts
from e2e.kind.workload import chat
from hack.daemon import CONTROLLERS_CONFIG

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(400)]

PREVIOUS = "grovekeeper:previous"


def configuration(image: str) -> str:
    """The shipped one with the image of the startup waiter spelled out: not every version asks the environment."""
    shipped = yaml.safe_load(CONTROLLERS_CONFIG.read_text())
    shipped["grovekeeper"]["initContainerImage"] = image
    return yaml.safe_dump(shipped)


def right_to_secrets() -> list[Manifest]:
    """Before there were manifests the controllers watched Secrets."""
    name, group = "previous-version", "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]}]
    account = {"kind": "ServiceAccount", "name": "grovekeeper-controllers", "namespace": NAMESPACE}
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
    reference = {"apiGroup": group, "kind": "ClusterRole", "name": name}
    binding = {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": reference}
    return [role, {**binding, "subjects": [account]}]


async def engines(scene: Scene) -> dict[str, tuple[str, int, str]]:
    """uid, restarts and node of every engine."""

    def life(pod: Pod) -> tuple[str, int, str]:
        return pod.uid, restarts(pod), pod.node

    return {pod.name: life(pod) for pod in await scene.pods()}


async def test_upgrade(scene: Scene, system: System, image: str, measured: Callable[[str], None]) -> None:
    revision = images.previous_revision()
    measured(f"upgraded from {revision or 'THE SAME SOURCES UNDER ANOTHER NAME, because this copy has no history'}")
    await asyncio.to_thread(images.build, PREVIOUS, revision)
    await asyncio.to_thread(system.kind.load, PREVIOUS)
    manifests = images.manifests_of(revision, system.folder / "previous")
    is_older = manifests == system.overlay.manifests and bool(revision)
    await scene.remove("chat")
    await scene.gone()
    if is_older:
        await system.kubectl.apply(*right_to_secrets())
    try:
        await system.roll_out(Overlay(PREVIOUS, configuration(PREVIOUS), manifests=manifests), 120)
        await scene.apply(chat(image))
        await scene.ready(CHAT_PODS, "chat, made by the previous version", 90.0)
        before = await engines(scene)

        async with scene.watched() as seen:
            await system.install_crds()
            await system.roll_out(system.overlay, 120)
            await scene.ready(CHAT_PODS, "chat, after the upgrade")
        assert await engines(scene) == before
        assert seen.lives.nodes.keys() == {uid for uid, _, _ in before.values()}
    finally:
        await system.kubectl("delete", "clusterroles,clusterrolebindings", "previous-version", "--ignore-not-found")
    for component, pods in {c: await system.pods(c) for c in ("controllers", "scheduler")}.items():
        assert {pod.object["spec"]["containers"][0]["image"] for pod in pods} == {image}, component
        assert [restarts(pod) for pod in pods] == [0, 0], component

    await scene.scale("pcsg/chat-0-prefill", 3)
    await scene.ready(CHAT_PODS + 2, "this version goes on with what it found", 90.0)
    await scene.scale("pcsg/chat-0-prefill", 2)
    await scene.ready(CHAT_PODS, "as before")
    assert await engines(scene) == before
