"""Rights, by the audit log of the whole session: nothing was refused, and nothing is granted that was never used."""

import json
from collections.abc import Callable

import pytest

from api.core import Event, HorizontalPodAutoscaler, ResourceClaim, Role, RoleBinding, Service
from api.grove import PodClique, PodCliqueSet
from api.kinds import Kind
from api.labels import MANAGED_SELECTOR
from api.names import pod_name
from api.podgang import PodGang
from e2e.cluster import Pod
from e2e.faultproxy import DropResponse
from e2e.kind import audit
from e2e.kind.between import between, variables
from e2e.kind.conftest import CHAT_PODS, Beginning, Deliberate
from e2e.kind.rare import claiming, faults, foreign, scaled_by_metrics, single
from e2e.kind.scene import Scene
from e2e.kind.system import COMPONENTS, NAMESPACE, Overlay, System
from e2e.kind.waiting import until
from hack.kind.settings import WORKERS

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(400)]

ACCOUNTS = {f"system:serviceaccount:{NAMESPACE}:grovekeeper-{component}" for component in COMPONENTS}
CLUSTER_ROLES = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS = Kind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)


async def test_what_happens_seldom(scene: Scene, system: System, image: str) -> None:
    """Streams of first objects refused and answers lost: the processes list, look for what they may have written, and finish the work."""
    await scene.remove("chat")
    await scene.gone()
    async with between(system) as proxy:
        proxy.rules += faults()
        await system.roll_out(Overlay(image, environment=variables(proxy)), 150)
        async with scene.watched():
            await scene.apply(scaled_by_metrics(image, "chat", 4, publish=True), claiming(image, "claiming", 2))

            async def counts() -> dict[str, int]:
                kinds = (Service, HorizontalPodAutoscaler, ResourceClaim)
                return {kind.KIND.kind: len(await scene.objects(kind.KIND)) for kind in kinds}

            await until(counts, lambda n: tuple(n.values()) == (3, 2, 2), "services, autoscalers and claims are there", 60.0)

            async def ready() -> int:
                return len(await scene.pods(lambda pod: pod.ready and pod.clique.startswith("chat-")))

            await until(ready, lambda n: n == CHAT_PODS, "chat runs", 90.0)
        left = [rule for rule in proxy.rules if isinstance(rule.fault, DropResponse) and rule.times]
        assert left == [], "not every answer was lost"
        await scene.apply(scaled_by_metrics(image, "chat", 5, publish=False))

        async def changed() -> tuple[set[int], set[bool]]:
            autoscalers, services = await scene.objects(HorizontalPodAutoscaler.KIND), await scene.objects(Service.KIND)
            published = {s["spec"].get("publishNotReadyAddresses", False) for s in services if s["metadata"]["name"] == "chat-0"}
            return {a["spec"]["maxReplicas"] for a in autoscalers}, published

        await until(changed, lambda seen: seen == ({5}, {False}), "autoscalers and service follow the template", 30.0)
        await scene.scale("pcs/claiming", 1)
        await until(counts, lambda n: tuple(n.values()) == (2, 2, 1), "claims and services of the replica scaled in are gone", 60.0)
        await scene.scale("pcs/chat", 2)
        await until(counts, lambda n: n["HorizontalPodAutoscaler"] == 4, "autoscalers of a second replica", 60.0)
        await scene.scale("pcs/chat", 1)
        await until(counts, lambda n: n["HorizontalPodAutoscaler"] == 2, "autoscalers of one replica", 60.0)
        await scene.remove("claiming")
        await scene.ready(CHAT_PODS, "only chat", 90.0)
        await system.roll_out(system.overlay, 120)


async def test_names_that_somebody_else_has(running: Scene, image: str) -> None:
    """The set says whose turn it is; what has the name is left alone. A pod takes its next name."""
    cases = foreign(image)
    await running.apply(*(theirs for theirs, _ in cases.values()))
    await running.apply(*(ours for _, ours in cases.values()))

    async def told() -> dict[str, str]:
        sets = {o["metadata"]["name"]: o.get("status", {}).get("lastErrors", ()) for o in await running.objects(PodCliqueSet.KIND)}
        return {kind: " ".join(e["description"] for e in sets.get(ours["metadata"]["name"], ())) for kind, (_, ours) in cases.items()}

    def right(seen: dict[str, str]) -> bool:
        return all(f"{kind} " in text and "exists and belongs to somebody else" in text for kind, text in seen.items())

    await until(told, right, "every set says which name is taken", 30.0)
    for _, ours in cases.values():
        await running.remove(ours["metadata"]["name"], wait=False)
    for theirs, _ in cases.values():
        await running.kubectl("delete", "-n", running.namespace, "--wait=false", "-f", "-", stdin=json.dumps(theirs))

    (decode,) = (c for c in await running.objects(PodClique.KIND) if c["metadata"]["name"] == "chat-0-decode")
    stranger = pod_name("chat-0-decode", decode["metadata"]["uid"], 2, 0)
    gate = {"schedulingGates": [{"name": "example.com/never"}], "containers": [{"name": "none", "image": image}]}
    await running.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": stranger}, "spec": gate})
    await running.scale("pclq/chat-0-decode", 3)

    async def third() -> list[str]:
        return [pod.name for pod in await running.pods(lambda pod: pod.clique == "chat-0-decode" and pod.index == 2 and pod.ready)]

    assert await until(third, bool, "the third decode engine runs", 30.0) == [pod_name("chat-0-decode", decode["metadata"]["uid"], 2, 1)]
    await running.kubectl("delete", "pod", stranger, "-n", running.namespace)
    await running.scale("pclq/chat-0-decode", 2)
    await running.ready(CHAT_PODS, "as before")


async def test_a_gang_that_is_placed_again_counts_its_event(running: Scene, image: str) -> None:
    await running.apply(single(image, "again", WORKERS[0]))

    async def ready() -> list[Pod]:
        return await running.pods(lambda pod: pod.clique == "again-0-engine" and pod.ready)

    (first,) = await until(ready, bool, "the pod runs", 30.0)
    await running.kubectl("cordon", WORKERS[0])
    try:
        await running.kubectl("delete", "pod", first.name, "-n", running.namespace)

        async def scheduled() -> str:
            (gang,) = (g for g in await running.objects(PodGang.KIND) if g["metadata"]["name"] == "again-0")
            return next(c["status"] for c in gang["status"]["conditions"] if c["type"] == "Scheduled")

        await until(scheduled, lambda status: status == "False", "the gang has no node", 30.0)
    finally:
        await running.kubectl("uncordon", WORKERS[0])
    await until(ready, lambda pods: [p for p in pods if p.uid != first.uid], "its successor runs", 30.0)

    async def bound() -> list[int]:
        events = await running.objects(Event.KIND)
        return [e["count"] for e in events if (e["involvedObject"]["name"], e["reason"]) == ("again-0", "GangBound")]

    await until(bound, lambda counts: counts == [2], "one event that counts two", 20.0)
    await running.remove("again")


async def given(system: System) -> set[audit.Grant]:
    """Every verb that the live roles give our accounts, in the cluster or in our namespace."""
    out: set[audit.Grant] = set()
    for bindings, kind in ((CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES), (RoleBinding.KIND, Role.KIND)):
        roles = {r["metadata"]["name"]: r["rules"] for r in await system.live.objects(kind, NAMESPACE if kind.namespaced else "")}
        for binding in await system.live.objects(bindings, NAMESPACE if bindings.namespaced else ""):
            for subject in binding.get("subjects") or ():
                account = f"system:serviceaccount:{subject.get('namespace', '')}:{subject['name']}"
                if account in ACCOUNTS:
                    out |= audit.grants(account, roles[binding["roleRef"]["name"]])
    return out


async def passed_on(system: System) -> set[audit.Grant]:
    """What the controllers may only to be allowed to give it to startup waiters: RBAC asks for that when they create a Role."""
    roles = await system.live.objects(Role.KIND, selector=MANAGED_SELECTOR)
    account = f"system:serviceaccount:{NAMESPACE}:grovekeeper-controllers"
    return {grant for role in roles for grant in audit.grants(account, role["rules"])}


async def test_nothing_was_refused(system: System, beginning: Beginning, deliberate: Deliberate, measured: Callable[[str], None]) -> None:
    done = list(audit.requests(system.kind.audit(), beginning.at))
    assert {request.account for request in done} >= ACCOUNTS, "the audit log does not show our service accounts"
    refused = audit.forbidden(done)
    wanted = [r for r in refused if deliberate.covers(r.at)]
    measured(f"{len(done)} requests of service accounts, {len(refused) - len(wanted)} refused, {len(wanted)} more on purpose")
    assert [str(r) for r in refused if not deliberate.covers(r.at)] == []
    assert wanted, "the right that was taken away was never missed"


async def test_nothing_is_granted_that_was_never_used(running: Scene, system: System, beginning: Beginning) -> None:
    done = list(audit.requests(system.kind.audit(), beginning.at))
    grants = await given(system)
    assert len(grants) > 50
    unused = [grant for grant in audit.unused(grants, done) if grant not in await passed_on(system)]
    assert unused == [], "never used:\n" + "\n".join(map(str, unused))
