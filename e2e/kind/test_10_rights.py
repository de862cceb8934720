"""Rights, by the audit log of the whole session: nothing was refused, and nothing is granted that was never used."""

from collections.abc import Callable

import pytest

from api.core import HorizontalPodAutoscaler, ResourceClaim, Role, RoleBinding, Service
from api.kinds import Kind
from api.labels import MANAGED_SELECTOR
from e2e.faultproxy import DropResponse
from e2e.kind import audit
from e2e.kind.between import between, variables
from e2e.kind.conftest import CHAT_PODS, Beginning, Deliberate
from e2e.kind.rare import claiming, faults, scaled_by_metrics
from e2e.kind.scene import Scene
from e2e.kind.system import COMPONENTS, NAMESPACE, Overlay, System
from e2e.kind.waiting import until

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
    assert [str(grant) for grant in unused] == []
