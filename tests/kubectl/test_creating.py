"""create with its generators, run, expose, autoscale."""

from tests.kubectl.manifests import clique_set, config, pod
from tests.kubectl.program import Kubectl
from tests.kubectl.test_applying import DEPLOYMENT


def test_create_from_files(kubectl: Kubectl) -> None:
    assert kubectl("create", "-f", "-", stdin=pod("a")) == "pod/a created\n"
    assert 'pods "a" already exists' in kubectl.fails("create", "-f", "-", stdin=pod("a"))
    two = {"apiVersion": "v1", "kind": "List", "items": [config("x"), clique_set("set")]}
    assert kubectl("create", "-f", "-", stdin=two).splitlines() == ["configmap/x created", "podcliqueset.grove.io/set created"]
    generated = config("")
    generated["metadata"] = {"generateName": "gen-"}
    name = kubectl("create", "-f", "-", "-o", "name", stdin=generated).strip()
    assert name.startswith("configmap/gen-")
    assert len(name) == len("configmap/gen-") + 5


def test_generators(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "cm", "--from-literal=a=b")
    kubectl("create", "secret", "generic", "s", "--from-literal=a=b")
    kubectl("create", "serviceaccount", "robot")
    kubectl("create", "deployment", "web", "--image=example.com/web", "--replicas=0")
    kubectl("create", "service", "nodeport", "np", "--tcp=80")
    kubectl("create", "role", "r", "--verb=get", "--resource=pods")
    kubectl("create", "rolebinding", "rb", "--role=r", f"--serviceaccount={kubectl.namespace}:robot")
    kubectl("create", "job", "j", "--image=example.com/j")
    kubectl("create", "pdb", "p", "--selector=app=web", "--min-available=1")
    kubectl("create", "quota", "q", "--hard=pods=1000")
    assert kubectl("get", "cm", "cm", "-o", "jsonpath={.data.a}") == "b"
    assert kubectl("get", "secret", "s", "-o", "jsonpath={.data.a}") == "Yg=="
    assert kubectl.rows("deployments")[1][:3] == ["web", "0/0", "0"]
    assert kubectl.rows("pdb")[1][:3] == ["p", "1", "N/A"]
    assert kubectl.rows("rolebindings")[1][:2] == ["rb", "Role/r"]
    assert kubectl("get", "service", "np", "-o", "jsonpath={.spec.ports[0].nodePort}").startswith("3")


def test_dry_run_makes_manifests(kubectl: Kubectl) -> None:
    assert "kind: Deployment" in kubectl("create", "deployment", "web", "--image=a", "--dry-run=client", "-o", "yaml")
    assert "uid:" in kubectl("create", "deployment", "web", "--image=a", "--dry-run=server", "-o", "yaml")


def test_run_and_expose(kubectl: Kubectl) -> None:
    assert kubectl("run", "web", "--image=example.com/web", "--port=80") == "pod/web created\n"
    assert kubectl("expose", "pod", "web", "--name=front") == "service/front exposed\n"
    assert kubectl("get", "service", "front", "-o", "jsonpath={.spec.selector.run}") == "web"
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    assert kubectl("expose", "deployment", "d", "--port=80") == "service/d exposed\n"


def test_autoscale(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=DEPLOYMENT)
    assert "autoscaled" in kubectl("autoscale", "deployment", "d", "--min=1", "--max=5", "--cpu-percent=80")
    assert kubectl.rows("hpa")[1][:2] == ["d", "Deployment/d"]
    kubectl("create", "-f", "-", stdin=clique_set("s"))
    kubectl("autoscale", "pcs", "s", "--max=5", "--cpu-percent=80")
    assert kubectl.get("horizontalpodautoscalers.v1.autoscaling", "s")["spec"]["targetCPUUtilizationPercentage"] == 80
    assert kubectl.get("hpa", "s")["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}


def test_tokens(kubectl: Kubectl) -> None:
    kubectl("create", "serviceaccount", "robot")
    assert kubectl("create", "token", "robot").strip()
    assert "not found" in kubectl.fails("create", "token", "nobody")
