"""get, describe, wait and events."""

import re
import threading

from tests.kubectl.manifests import clique_set, config, node, pod
from tests.kubectl.program import Kubectl


def test_tables(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("a", app="x"))
    assert kubectl.rows("pods")[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    row = kubectl.rows("pods")[1]
    assert row[:4] == ["a", "0/1", "Pending", "0"]
    assert row[4].endswith("s")
    assert kubectl.rows("pods", "-o", "wide")[0][5:] == ["IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert kubectl.rows("pods", "--show-labels")[1][-1] == "app=x"
    assert kubectl.rows("pods", "-L", "app")[1][-1] == "x"
    assert kubectl("get", "pods", "--no-headers").split()[0] == "a"


def test_tables_of_custom_resources(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=clique_set("a", 3))
    headings, row = kubectl.rows("pcs")
    assert headings[0] == "NAME"
    assert headings[-1] == "AGE"
    assert row[0] == "a"
    assert "3" in row


def test_output_forms(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=config("a", key="value"))
    assert kubectl("get", "cm", "a", "-o", "name") == "configmap/a\n"
    assert kubectl("get", "cm", "a", "-o", "jsonpath={.data.key}") == "value"
    assert kubectl("get", "cm", "a", "-o", "go-template={{.data.key}}") == "value"
    assert kubectl("get", "cm/a", "-o", "custom-columns=N:.metadata.name,K:.data.key").split() == ["N", "K", "a", "value"]
    assert "  key: value\n" in kubectl("get", "cm", "a", "-o", "yaml")
    obj = kubectl.get("cm", "a")
    assert (obj["apiVersion"], obj["kind"], obj["data"]) == ("v1", "ConfigMap", {"key": "value"})
    assert "managedFields" in kubectl("get", "cm", "a", "-o", "yaml", "--show-managed-fields")


def test_selectors_and_order(kubectl: Kubectl) -> None:
    for name, tier in (("c", "1"), ("a", "2"), ("b", "1")):
        kubectl("create", "-f", "-", stdin=pod(name, tier=tier))
    assert kubectl("get", "pods", "-l", "tier=1", "-o", "name").split() == ["pod/b", "pod/c"]
    assert kubectl("get", "pods", "-l", "tier in (1,2),tier!=1", "-o", "name").split() == ["pod/a"]
    assert kubectl("get", "pods", "--field-selector", "metadata.name!=a", "-o", "name").split() == ["pod/b", "pod/c"]
    assert kubectl("get", "pods", "--field-selector", "status.phase=Running", "-o", "name") == ""
    assert kubectl("get", "pods", "--sort-by", ".metadata.labels.tier", "-o", "name").split()[-1] == "pod/a"
    assert kubectl("get", "pods", "--chunk-size=1", "-o", "name").split() == ["pod/a", "pod/b", "pod/c"]
    assert [row[0] for row in kubectl.rows("pods", "--chunk-size=2")] == ["NAME", "a", "b", "c"]
    everywhere = kubectl.rows("pods", "-A")
    assert everywhere[0][:2] == ["NAMESPACE", "NAME"]
    assert [row[1] for row in everywhere if row[0] == kubectl.namespace] == ["a", "b", "c"]
    assert "unable to parse requirement" in kubectl.fails("get", "pods", "-l", "a in (")
    assert "field label not supported: spec.nope" in kubectl.fails("get", "pods", "--field-selector", "spec.nope=1")


def test_several_kinds_and_categories(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("a"))
    kubectl("create", "service", "clusterip", "s", "--tcp=80")
    assert set(kubectl("get", "pods,services", "-o", "name").split()) == {"pod/a", "service/s"}
    assert {"pod/a", "service/s"} <= set(kubectl("get", "all", "-o", "name").split())
    assert kubectl("get", "cm,pcs", "-l", "none=1") == ""


def test_nothing_and_missing(kubectl: Kubectl) -> None:
    assert kubectl("get", "pods") == ""
    assert 'Error from server (NotFound): pods "nope" not found' in kubectl.fails("get", "pod", "nope")
    assert kubectl("get", "pod", "nope", "--ignore-not-found") == ""


def test_watch_prints_changes_until_the_object_is_gone(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("a"))
    watch = kubectl.start("get", "pods", "-w", "--output-watch-events")
    assert watch.stdout is not None
    assert watch.stdout.readline().split()[:2] == ["EVENT", "NAME"]
    assert watch.stdout.readline().split()[:4] == ["ADDED", "a", "0/1", "Pending"]
    kubectl("patch", "pod", "a", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":"Running"}}')
    assert watch.stdout.readline().split()[:4] == ["MODIFIED", "a", "0/1", "Running"]
    kubectl("delete", "pod", "a")
    # A deletionTimestamp may be seen before.
    words = watch.stdout.readline().split()
    while words[0] == "MODIFIED":
        words = watch.stdout.readline().split()
    assert words[:2] == ["DELETED", "a"]


def test_watch_of_custom_resources_as_json(kubectl: Kubectl) -> None:
    watch = kubectl.start("get", "pcs", "--watch-only", "-o", "jsonpath={.metadata.name}={.spec.replicas}{'\\n'}")
    assert watch.stdout is not None
    # Watches begin at no known moment, so objects are made until one is seen.
    stop = threading.Event()

    def make() -> None:
        at = 0
        while not stop.wait(0.2):
            kubectl("create", "-f", "-", stdin=clique_set(f"s{at}", 2))
            at += 1

    maker = threading.Thread(target=make)
    maker.start()
    try:
        assert watch.stdout.readline().strip().endswith("=2")
    finally:
        stop.set()
        maker.join()


def test_wait(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("a"))
    assert "timed out waiting" in kubectl.fails("wait", "pod/a", "--for=condition=Ready", "--timeout=100ms")
    waiting = kubectl.start("wait", "pod/a", "--for=condition=Ready", "--timeout=10s")
    status = '{"status":{"conditions":[{"type":"Ready","status":"True"}],"phase":"Running"}}'
    kubectl("patch", "pod", "a", "--subresource=status", "-p", status)
    assert waiting.communicate(timeout=10)[0] == "pod/a condition met\n"
    assert kubectl("wait", "pod/a", "--for=jsonpath={.status.phase}=Running") == "pod/a condition met\n"
    gone = kubectl.start("wait", "pod/a", "--for=delete", "--timeout=10s")
    kubectl("delete", "pod", "a")
    assert gone.wait(10) == 0
    created = kubectl.start("wait", "cm/later", "--for=create", "--timeout=10s")
    kubectl("create", "-f", "-", stdin=config("later"))
    assert created.wait(10) == 0


def test_describe_pod_and_custom_resource(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("a", app="x"))
    out = kubectl("describe", "pod", "a")
    assert re.search(rf"^Namespace: +{kubectl.namespace}$", out, re.M)
    assert "example.com/a:1" in out
    kubectl("create", "-f", "-", stdin=clique_set("s"))
    out = kubectl("describe", "pcs", "s")
    assert "Kind:         PodCliqueSet" in out
    assert "Role Name:  worker" in out
    assert re.search(r"^Events: +<none>$", out, re.M)


def test_describe_node_namespace_and_service(kubectl: Kubectl) -> None:
    name = f"node-{kubectl.namespace}"
    kubectl("create", "-f", "-", stdin=node(name))
    kubectl("create", "-f", "-", stdin=pod("a", node=name))
    out = kubectl("describe", "node", name)
    assert "Non-terminated Pods:" in out
    assert kubectl.namespace in out
    kubectl("delete", "node", name)
    assert "Status:       Active" in kubectl("describe", "namespace", kubectl.namespace)
    kubectl("create", "service", "clusterip", "s", "--tcp=80:8080")
    assert "8080/TCP" in kubectl("describe", "service", "s")


EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "e"},
    "reason": "Placed",
    "message": "all pods have a node",
    "type": "Normal",
    "source": {"component": "tests"},
    "firstTimestamp": "2026-01-02T03:04:05Z",
    "lastTimestamp": "2026-01-02T03:04:05Z",
    "count": 1,
}


def test_events(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=config("a"))
    uid = kubectl("get", "cm", "a", "-o", "jsonpath={.metadata.uid}")
    about = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": kubectl.namespace, "uid": uid}
    kubectl("create", "-f", "-", stdin={**EVENT, "involvedObject": about})
    assert "Placed" in kubectl("events")
    assert "Placed" in kubectl("events", "--for", "configmap/a")
    assert "configmap/a" in kubectl("get", "events")
    assert kubectl("get", "events", "--field-selector", "involvedObject.name=a,reason=Placed", "-o", "name") == "event/e\n"
    assert "Placed" in kubectl("describe", "cm", "a")
