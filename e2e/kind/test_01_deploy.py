"""Deploy: CRDs, then manifests; both Deployments available where only restricted pods are admitted, pods ready soon after their start."""

import json
from collections.abc import Callable

import pytest

from api.registry import MODELS, crd_name
from e2e.cluster import Pod
from e2e.kind.live import NAMESPACES
from e2e.kind.system import COMPONENTS, NAMESPACE, System, moment, restarts
from hack.codegen.files import ROOT

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(300)]

START_TO_READY_S = 5.0


def start_to_ready_s(pod: Pod) -> float:
    """From the start of its container to the condition Ready; the API's times are whole seconds."""
    started = pod.object["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    return (moment(pod.condition("Ready")["lastTransitionTime"]) - moment(started)).total_seconds()


async def test_deployments_become_available(system: System) -> None:
    await system.rolled_out()
    for component in COMPONENTS:
        status = (await system.deployment(component))["status"]
        assert (status["replicas"], status["availableReplicas"], status.get("unavailableReplicas", 0)) == (2, 2, 0)
    assert [restarts(pod) for pod in await system.every_pod()] == [0] * 4


async def test_copies_are_on_different_nodes(system: System) -> None:
    for component in COMPONENTS:
        assert len({pod.node for pod in await system.pods(component)}) == 2


async def test_pods_are_ready_soon_after_their_start(system: System, measured: Callable[[str], None]) -> None:
    taken = {pod.name: start_to_ready_s(pod) for pod in await system.every_pod()}
    measured(f"container start to ready: {', '.join(f'{s:.0f} s' for s in taken.values())} (at most {START_TO_READY_S:.0f} s)")
    assert {name: s for name, s in taken.items() if s > START_TO_READY_S} == {}


async def test_the_namespace_admits_restricted_pods_only(system: System) -> None:
    namespace = await system.live.object(NAMESPACES, NAMESPACE)
    assert namespace is not None
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    # As the manifests have it, a pod with one right more is refused: the label is not only written down.
    template = (await system.deployment("scheduler"))["spec"]["template"]
    template["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe", **template["metadata"]}, "spec": template["spec"]}
    code, said = await system.kubectl.outcome("create", "--dry-run=server", "-n", NAMESPACE, "-f", "-", stdin=json.dumps(pod))
    assert code != 0
    assert 'violates PodSecurity "restricted' in said


async def test_installing_again_changes_nothing(system: System) -> None:
    said = await system.install_crds()
    assert sorted(line.split()[0] for line in said.splitlines()) == sorted(map(crd_name, MODELS))
    assert [line for line in said.splitlines() if not line.endswith(" unchanged")] == []
    again = await system.apply(system.overlay)
    assert [line for line in again.splitlines() if not line.endswith(" unchanged")] == []


async def test_the_samples_are_accepted(system: System) -> None:
    await system.kubectl("create", "--dry-run=server", "--validate=strict", "-f", str(ROOT / "manifests/samples"))
