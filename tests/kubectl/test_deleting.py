"""delete in all its forms, and what nodes need: cordon, taint, drain."""

import time

import pytest

from tests.kubectl.manifests import clique_set, config, node, pod
from tests.kubectl.program import Kubectl, KubectlFailed


def test_delete_waits_until_objects_are_gone(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("a"))
    assert 'pod "a" deleted' in kubectl("delete", "pod", "a")
    assert 'pods "a" not found' in kubectl.fails("delete", "pod", "a")
    assert kubectl("delete", "pod", "a", "--ignore-not-found") == ""
    kubectl("create", "-f", "-", stdin=clique_set("s"))
    assert 'podcliqueset.grove.io "s" deleted' in kubectl("delete", "-f", "-", stdin=clique_set("s"))


def test_delete_by_label_and_all(kubectl: Kubectl) -> None:
    for name, tier in (("a", "1"), ("b", "1"), ("c", "2")):
        kubectl("create", "-f", "-", stdin=pod(name, tier=tier))
    kubectl("delete", "pods", "-l", "tier=1")
    assert kubectl("get", "pods", "-o", "name").split() == ["pod/c"]
    kubectl("delete", "pods", "--all")
    assert kubectl("get", "pods", "-o", "name") == ""


def test_finalizers_hold_objects(kubectl: Kubectl) -> None:
    held = config("a")
    held["metadata"]["finalizers"] = ["example.com/held"]
    kubectl("create", "-f", "-", stdin=held)
    assert "timed out waiting" in kubectl.fails("delete", "cm", "a", "--timeout=300ms")
    kubectl("delete", "cm", "a", "--wait=false")
    assert kubectl.get("cm", "a")["metadata"]["deletionTimestamp"]
    kubectl("patch", "cm", "a", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert kubectl("get", "cm", "a", "--ignore-not-found") == ""


def test_graceful_deletion(kubectl: Kubectl) -> None:
    name = f"node-{kubectl.namespace}"
    kubectl("create", "-f", "-", stdin=node(name))
    slow = pod("slow", node=name)
    slow["spec"]["terminationGracePeriodSeconds"] = 100
    kubectl("create", "-f", "-", stdin=slow)
    kubectl("delete", "pod", "slow", "--wait=false")
    assert kubectl.rows("pods")[1][2] == "Terminating"
    kubectl("delete", "pod", "slow", "--now", "--wait=false")
    assert kubectl.get("pod", "slow")["metadata"]["deletionGracePeriodSeconds"] == 1
    kubectl("delete", "pod", "slow", "--force")
    assert kubectl("get", "pods", "-o", "name") == ""
    kubectl("delete", "node", name)


def owned(kubectl: Kubectl, name: str, owner: str) -> None:
    uid = kubectl("get", "cm", owner, "-o", "jsonpath={.metadata.uid}")
    child = config(name)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "controller": True, "blockOwnerDeletion": True}
    child["metadata"]["ownerReferences"] = [reference]
    kubectl("create", "-f", "-", stdin=child)


def names(kubectl: Kubectl) -> set[str]:
    return set(kubectl("get", "cm", "-o", "name").split()) - {"configmap/kube-root-ca.crt"}


def wait_for_names(kubectl: Kubectl, wanted: set[str]) -> None:
    deadline = time.monotonic() + 10
    while (found := names(kubectl)) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def test_cascades(kubectl: Kubectl) -> None:
    for mode in ("background", "foreground", "orphan"):
        kubectl("create", "-f", "-", stdin=config(f"{mode}-owner"))
        owned(kubectl, f"{mode}-child", f"{mode}-owner")
    kubectl("delete", "cm", "background-owner")
    kubectl("delete", "cm", "foreground-owner", "--cascade=foreground")
    assert "configmap/foreground-child" not in names(kubectl)
    kubectl("delete", "cm", "orphan-owner", "--cascade=orphan")
    wait_for_names(kubectl, {"configmap/orphan-child"})
    assert "ownerReferences" not in kubectl.get("cm", "orphan-child")["metadata"]


def test_namespaces_take_their_objects_with_them(kubectl: Kubectl) -> None:
    name = f"{kubectl.namespace}-more"
    kubectl("create", "namespace", name)
    kubectl("create", "-n", name, "-f", "-", stdin=config("a"))
    assert f'namespace "{name}" deleted' in kubectl("delete", "namespace", name)
    assert "not found" in kubectl.fails("get", "cm", "a", "-n", name)
    assert "not found" in kubectl.fails("create", "-n", name, "-f", "-", stdin=config("a"))


def test_cordon_and_taint(kubectl: Kubectl) -> None:
    name = f"node-{kubectl.namespace}"
    kubectl("create", "-f", "-", stdin=node(name))
    assert "cordoned" in kubectl("cordon", name)
    assert "SchedulingDisabled" in kubectl.rows("node", name)[1][1]
    assert "uncordoned" in kubectl("uncordon", name)
    assert "tainted" in kubectl("taint", "node", name, "a=b:NoSchedule")
    taints = kubectl.get("node", name)["spec"]["taints"]
    assert {"key": "a", "value": "b", "effect": "NoSchedule"} in taints
    assert "untainted" in kubectl("taint", "node", name, "a-")
    kubectl("delete", "node", name)


def drain(kubectl: Kubectl, name: str) -> str:
    return kubectl("drain", name, "--force", "--timeout=5s", "--grace-period=0")


def test_drain_evicts_as_budgets_allow(kubectl: Kubectl) -> None:
    name = f"node-{kubectl.namespace}"
    kubectl("create", "-f", "-", stdin=node(name))
    kubectl("create", "-f", "-", stdin=pod("a", node=name, app="x"))
    kubectl("create", "-f", "-", stdin=pod("free", node=name))
    kubectl("create", "pdb", "p", "--selector=app=x", "--min-available=1")
    running = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
    kubectl("patch", "pod", "a", "--subresource=status", "-p", running)
    # What the disruption controller writes, where there is one.
    allowed = '{"status":{"observedGeneration":1,"disruptionsAllowed":0,"currentHealthy":1,"desiredHealthy":1,"expectedPods":1}}'
    kubectl("patch", "pdb", "p", "--subresource=status", "--type=merge", "-p", allowed)
    with pytest.raises(KubectlFailed, match="Cannot evict pod as it would violate the pod's disruption budget"):
        drain(kubectl, name)
    assert kubectl("get", "pods", "-o", "name").split() == ["pod/a"]
    kubectl("delete", "pdb", "p")
    assert "evicted" in drain(kubectl, name)
    assert kubectl("get", "pods", "-o", "name") == ""
    kubectl("delete", "node", name)
