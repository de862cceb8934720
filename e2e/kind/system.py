"""Grovekeeper as it is installed in the cluster: overlays of its manifests, its pods, leaders and logs."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from api.core import Lease
from api.core import Pod as PodModel
from e2e.cluster import Pod
from e2e.kind.live import DEPLOYMENT, Kubectl, Live, Manifest, run
from e2e.kind.waiting import until
from hack.codegen.files import ROOT
from hack.daemon import COMMAND
from hack.kind import KindCluster

__all__ = ("COMPONENTS", "LEASES", "NAMESPACE", "Overlay", "System", "usage")

NAMESPACE = "grovekeeper-system"
COMPONENTS = ("controllers", "scheduler")
LEASES = {"controllers": "grove-operator-leader-election", "scheduler": "grovekeeper-scheduler"}
REPLICAS = 2
INIT_IMAGE: Manifest = {
    "source": {
        "kind": "Deployment",
        "name": "grovekeeper-controllers",
        "fieldPath": "spec.template.spec.containers.[name=controllers].image",
    },
    "targets": [
        {
            "select": {"kind": "Deployment", "name": "grovekeeper-controllers"},
            "fieldPaths": ["spec.template.spec.containers.[name=controllers].env.[name=GROVE_INIT_CONTAINER_IMAGE].value"],
        }
    ],
}
"""As in the base: the startup waiter follows the image of an overlay."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """What differs from manifests/base: the image, the text of controllers.yaml, variables of both processes.

    `manifests`: those of another revision.
    """

    image: str
    configuration: str = ""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    manifests: Path = ROOT / "manifests"

    def write(self, folder: Path) -> Path:
        """The overlay as a folder for kubectl apply -k."""
        folder.mkdir(parents=True, exist_ok=True)
        name, _, tag = self.image.rpartition(":")
        kustomization: Manifest = {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "namespace": NAMESPACE,
            "resources": [os.path.relpath(self.manifests / "base", folder.resolve())],
            "images": [{"name": "grovekeeper", "newName": name, "newTag": tag}],
            "replacements": [INIT_IMAGE],
        }
        if self.configuration:
            (folder / "controllers.yaml").write_text(self.configuration)
            kustomization["configMapGenerator"] = [{"name": "grovekeeper-config", "behavior": "replace", "files": ["controllers.yaml"]}]
        if self.environment:
            kustomization["patches"] = [{"patch": json.dumps(self._variables(component))} for component in COMPONENTS]
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization, sort_keys=False))
        return folder

    def _variables(self, component: str) -> Manifest:
        container = {"name": component, "env": [{"name": k, "value": v} for k, v in self.environment.items()]}
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": f"grovekeeper-{component}"},
            "spec": {"template": {"spec": {"containers": [container]}}},
        }


@dataclass(slots=True)
class System:
    """The two Deployments and what belongs to them."""

    live: Live
    kubectl: Kubectl
    kind: KindCluster
    folder: Path
    overlay: Overlay
    """The one under test; tests that apply another one apply this one again."""
    n_overlays: int = 0

    async def install_crds(self) -> str:
        """`grovekeeper install --crds`; what it said."""
        code, said = await run(str(COMMAND), "install", "--crds", environment=self.kubectl.environment)
        assert code == 0, said
        return said

    async def apply(self, overlay: Overlay) -> str:
        """kubectl apply -k; does not wait."""
        self.n_overlays += 1
        return await self.kubectl("apply", "-k", str(overlay.write(self.folder / f"overlay-{self.n_overlays}")))

    async def roll_out(self, overlay: Overlay, timeout_s: int = 90) -> None:
        """Apply and wait until both Deployments consist of new, available pods only, and the old ones are gone."""
        await self.apply(overlay)
        await self.rolled_out(timeout_s)

    async def rolled_out(self, timeout_s: int = 90) -> None:
        """Wait until both Deployments are what they should be."""
        for component in COMPONENTS:
            await self.kubectl("rollout", "status", f"deployment/grovekeeper-{component}", "-n", NAMESPACE, f"--timeout={timeout_s}s")

        async def settled() -> dict[str, list[tuple[str, bool]]]:
            return {c: [(p.name, p.ready and p.live) for p in await self.pods(c)] for c in COMPONENTS}

        def whole(seen: Mapping[str, Sequence[tuple[str, bool]]]) -> bool:
            return all(len(pods) == REPLICAS and all(ready for _, ready in pods) for pods in seen.values())

        await until(settled, whole, f"{REPLICAS} ready pods of each component and no others", timeout_s)

    async def pods(self, component: str) -> list[Pod]:
        """Pods of a component by name, those that are being deleted too."""
        selector = f"app.kubernetes.io/name=grovekeeper,app.kubernetes.io/component={component}"
        found = await self.live.objects(PodModel.KIND, NAMESPACE, selector)
        return sorted(map(Pod, found), key=lambda pod: pod.name)

    async def every_pod(self) -> list[Pod]:
        return [pod for component in COMPONENTS for pod in await self.pods(component)]

    async def deployment(self, component: str) -> Manifest:
        found = await self.live.object(DEPLOYMENT, f"grovekeeper-{component}", NAMESPACE)
        assert found is not None, f"deployment grovekeeper-{component} is missing"
        return found

    async def holder(self, component: str) -> str:
        """Identity in the lease, "" while nobody leads."""
        lease = await self.live.object(Lease.KIND, LEASES[component], NAMESPACE)
        return (lease or {}).get("spec", {}).get("holderIdentity") or ""

    async def leader(self, component: str) -> Pod:
        """The pod that holds the lease; waits for one."""

        async def look() -> Pod | None:
            # host_pid_random, and the host name of a pod is its name.
            name = (await self.holder(component)).rsplit("_", 2)[0]
            return next((pod for pod in await self.pods(component) if pod.name == name and pod.live), None)

        found = await until(look, bool, f"a leader of {component}", 40.0)
        assert found is not None
        return found

    async def lives(self) -> dict[str, tuple[str, int]]:
        """uid and number of restarts of every pod, by name."""
        return {pod.name: (pod.uid, restarts(pod)) for pod in await self.every_pod()}

    async def records(self, pod: Pod, *, previous: bool = False) -> list[dict[str, Any]]:
        """Lines of a pod's log; what is no JSON comes as {"text": line}."""
        return [_record(line) for line in (await self.live.logs(pod.object, previous=previous)).splitlines()]

    async def delete_pod(self, pod: Pod) -> None:
        """kubectl delete without waiting."""
        await self.kubectl("delete", "pod", pod.name, "-n", NAMESPACE, "--wait=false")

    async def kill(self, pod: Pod) -> None:
        """KILL its process from its node, as a crash would."""
        pid = await self.pid(pod)
        await self.on_node(pod.node, "kill", "-9", str(pid))

    async def pid(self, pod: Pod) -> int:
        """Pid of its process on its node."""
        identity = pod.object["status"]["containerStatuses"][0]["containerID"].partition("://")[2]
        said = await self.on_node(pod.node, "crictl", "inspect", "--output", "go-template", "--template", "{{.info.pid}}", identity)
        return int(said)

    async def on_node(self, node: str, *argv: str) -> str:
        """Output of a program on a node."""
        return await asyncio.to_thread(self.kind.exec, node, *argv)


def restarts(pod: Pod) -> int:
    """Restarts of all its containers."""
    return sum(s["restartCount"] for s in pod.object.get("status", {}).get("containerStatuses", ()))


def moment(text: str) -> datetime:
    """A time of the API."""
    return datetime.fromisoformat(text)


@dataclass(frozen=True, slots=True)
class Usage:
    """What the processes of one container hold and have used: resident memory in MiB, CPU time in seconds."""

    resident_mib: float
    cpu_s: float


USAGE = """
want=$(readlink /proc/$1/ns/pid)
for p in /proc/[0-9]*; do
  [ "$(readlink $p/ns/pid 2>/dev/null)" = "$want" ] || continue
  grep VmRSS $p/status | awk '{print "rss", $2}'
  awk '{print "ticks", $14 + $15}' $p/stat
done
echo hz $(getconf CLK_TCK)
"""


async def usage(system: System, pod: Pod) -> Usage:
    """Summed over all processes in the pod's container, read on its node."""
    said = await system.on_node(pod.node, "sh", "-c", USAGE, "usage", str(await system.pid(pod)))
    rows = [line.split() for line in said.splitlines()]
    total = {key: sum(float(row[1]) for row in rows if row[0] == key) for key in ("rss", "ticks", "hz")}
    return Usage(total["rss"] / 1024, total["ticks"] / total["hz"])


def _record(line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except json.JSONDecodeError:
        found = None
    return found if isinstance(found, dict) else {"text": line}
