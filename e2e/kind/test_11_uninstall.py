"""Uninstalled as docs/uninstall.md has it, nothing is left: no objects, definitions, roles, leases, webhooks or labels of nodes."""

import pytest

from api.core import Lease, Node
from api.kinds import Kind
from api.registry import MODELS
from e2e.kind.conftest import NAMESPACE as WORKLOADS
from e2e.kind.conftest import Beginning
from e2e.kind.live import CRD, NAMESPACES
from e2e.kind.scene import Scene
from e2e.kind.system import System
from e2e.kind.test_10_rights import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from hack.codegen.files import ROOT
from hack.kind.settings import NODES

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(240)]

ADMISSION = "admissionregistration.k8s.io"
EVERYWHERE = (
    CRD,
    NAMESPACES,
    CLUSTER_ROLES,
    CLUSTER_ROLE_BINDINGS,
    Lease.KIND,
    Kind(ADMISSION, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", namespaced=False),
    Kind(ADMISSION, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", namespaced=False),
    Kind("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False),
    Kind("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False),
)
IN_NAMESPACE = (
    "pods,services,serviceaccounts,roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io,secrets,configmaps,"
    "horizontalpodautoscalers.autoscaling,resourceclaims.resource.k8s.io,leases.coordination.k8s.io"
)
OWN = {"configmap/kube-root-ca.crt", "serviceaccount/default"}
"""What every namespace has."""


async def test_nothing_is_left(running: Scene, system: System, beginning: Beginning) -> None:
    kubectl = system.kubectl
    await kubectl("delete", "pcs", "--all", "-A", "--cascade=foreground", "--timeout=60s")
    listed = await kubectl("get", "pcs,pcsg,pclq,pg,gpl", "-A", "--ignore-not-found")
    assert listed.strip() == ""
    left = (await kubectl("get", IN_NAMESPACE, "-n", WORKLOADS, "-o", "name")).split()
    assert set(left) - OWN == set()

    await kubectl("delete", "-k", str(system.overlay.write(system.folder / "uninstall")), "--timeout=90s")
    await kubectl("delete", "-f", str(ROOT / "manifests" / "crds"), "--timeout=60s")

    names = [f"{kind}/{found['metadata']['name']}" for kind in EVERYWHERE for found in await system.live.objects(kind)]
    # The cluster itself has our name, and with it its nodes and their leases.
    assert [name for name in names if "grove" in name.lower() and not name.endswith(NODES)] == []
    for model in MODELS:
        assert await system.live.objects(model.KIND) == []
    after = {node["metadata"]["name"]: node["metadata"]["labels"] for node in await system.live.objects(Node.KIND)}
    assert after == beginning.labels
