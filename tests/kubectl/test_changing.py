"""patch, replace, scale, label, annotate, set."""

from tests.kubectl.manifests import clique_set, config, pod
from tests.kubectl.program import Kubectl
from tests.kubectl.test_applying import DEPLOYMENT


def test_patches(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("a", x="1"))
    assert kubectl("patch", "pod", "a", "-p", '{"metadata":{"labels":{"y":"2"}}}') == "pod/a patched\n"
    kubectl("patch", "pod", "a", "--type=merge", "-p", '{"metadata":{"labels":{"x":null}}}')
    kubectl("patch", "pod", "a", "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/z","value":"3"}]')
    assert kubectl.get("pod", "a")["metadata"]["labels"] == {"y": "2", "z": "3"}
    assert kubectl("patch", "pod", "a", "-p", '{"metadata":{"labels":{"y":"2"}}}') == "pod/a patched (no change)\n"
    image = '{"spec":{"containers":[{"name":"main","image":"example.com/a:2"}]}}'
    kubectl("patch", "pod", "a", "-p", image)
    assert kubectl("get", "pod", "a", "-o", "jsonpath={.spec.containers[*].image}") == "example.com/a:2"


def test_status_subresource(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=clique_set("s"))
    both = '{"spec":{"replicas":7},"status":{"replicas":4}}'
    kubectl("patch", "pcs", "s", "--subresource=status", "--type=merge", "-p", both)
    obj = kubectl.get("pcs", "s")
    assert (obj["spec"]["replicas"], obj["status"]["replicas"]) == (1, 4)
    kubectl("patch", "pcs", "s", "--type=merge", "-p", both)
    obj = kubectl.get("pcs", "s")
    assert (obj["spec"]["replicas"], obj["status"]["replicas"]) == (7, 4)
    assert kubectl("get", "pcs", "s", "--subresource=status", "-o", "jsonpath={.status.replicas}") == "4"


def test_custom_resources_take_no_strategic_patches(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=clique_set("s"))
    error = kubectl.fails("patch", "pcs", "s", "--type=strategic", "-p", "{}")
    assert "application/strategic-merge-patch+json is not supported by grove.io/v1alpha1, Kind=PodCliqueSet" in error


def test_bad_patches(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=config("a", key="value"))
    error = kubectl.fails("patch", "cm", "a", "--type=json", "-p", '[{"op":"test","path":"/data/key","value":"x"}]')
    assert "the server rejected our request" in error
    error = kubectl.fails("patch", "cm", "a", "--type=json", "-p", '[{"op":"remove","path":"/data/nope"}]')
    assert "the server rejected our request" in error


def test_replace(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=config("a", one="1"))
    assert kubectl("replace", "-f", "-", stdin=config("a", two="2")) == "configmap/a replaced\n"
    obj = kubectl.get("cm", "a")
    assert obj["data"] == {"two": "2"}
    kubectl("replace", "--force", "-f", "-", stdin=config("a", three="3"))
    again = kubectl.get("cm", "a")
    assert again["metadata"]["uid"] != obj["metadata"]["uid"]
    obj["metadata"]["resourceVersion"] = "1"
    obj["metadata"]["uid"] = again["metadata"]["uid"]
    assert "the object has been modified" in kubectl.fails("replace", "-f", "-", stdin=obj)


def test_scale(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=clique_set("s", 1))
    assert kubectl("scale", "pcs", "s", "--replicas=4") == "podcliqueset.grove.io/s scaled\n"
    assert kubectl.get("pcs", "s")["spec"]["replicas"] == 4
    assert "Expected replicas to be 1, was 4" in kubectl.fails("scale", "pcs", "s", "--current-replicas=1", "--replicas=2")
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    kubectl("scale", "deployment/d", "--replicas=0")
    assert kubectl("get", "deployment", "d", "--subresource=scale", "-o", "jsonpath={.kind}") == "Scale"


def test_label_and_annotate(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=pod("a", x="1"))
    kubectl("create", "-f", "-", stdin=pod("b", x="1"))
    assert "pod/a labeled" in kubectl("label", "pod", "a", "tier=web")
    assert "already has a value (web), and --overwrite is false" in kubectl.fails("label", "pod", "a", "tier=db")
    kubectl("label", "pods", "-l", "x=1", "tier=db", "--overwrite")
    assert kubectl("get", "pods", "-l", "tier=db", "-o", "name").split() == ["pod/a", "pod/b"]
    assert "pod/a unlabeled" in kubectl("label", "pod", "a", "tier-")
    assert "pod/a annotated" in kubectl("annotate", "pod", "a", "note=hello")
    assert kubectl.get("pod", "a")["metadata"]["annotations"]["note"] == "hello"
    kubectl("annotate", "pods", "--all", "note-")
    kubectl("create", "-f", "-", stdin=clique_set("s"))
    kubectl("label", "pcs", "s", "a=b")
    assert kubectl.get("pcs", "s")["metadata"]["labels"] == {"a": "b"}


def test_set(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    kubectl("set", "image", "deployment/d", "a=example.com/a:9")
    kubectl("set", "env", "deployment/d", "-c", "b", "KEY=value")
    kubectl("set", "resources", "deployment/d", "-c", "b", "--limits=cpu=1")
    first, second = kubectl.get("deployment", "d")["spec"]["template"]["spec"]["containers"]
    assert first["image"] == "example.com/a:9"
    assert second["env"] == [{"name": "KEY", "value": "value"}]
    assert second["resources"] == {"limits": {"cpu": "1"}}
