"""apply of both kinds, diff, edit."""

import json

from tests.kubectl.manifests import clique_set, config
from tests.kubectl.program import Kubectl

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "d"}},
        "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [{"name": "a", "image": "example.com/a:1"}, {"name": "b", "image": "example.com/b:1"}]},
        },
    },
}


def test_client_side_apply_creates_changes_and_prunes_fields(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=config("a", one="1", two="2")) == "configmap/a created\n"
    applied = json.loads(kubectl.get("cm", "a")["metadata"]["annotations"][LAST_APPLIED])
    assert applied["data"] == {"one": "1", "two": "2"}
    kubectl("patch", "cm", "a", "-p", '{"data":{"other":"x"}}')
    assert kubectl("apply", "-f", "-", stdin=config("a", one="1", two="2")) == "configmap/a unchanged\n"
    assert kubectl("apply", "-f", "-", stdin=config("a", one="9")) == "configmap/a configured\n"
    assert kubectl.get("cm", "a")["data"] == {"one": "9", "other": "x"}


def test_client_side_apply_of_custom_resources(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=clique_set("s", 1)) == "podcliqueset.grove.io/s created\n"
    assert kubectl("apply", "-f", "-", stdin=clique_set("s", 1)) == "podcliqueset.grove.io/s unchanged\n"
    assert kubectl("apply", "-f", "-", stdin=clique_set("s", 2)) == "podcliqueset.grove.io/s configured\n"
    obj = kubectl.get("pcs", "s")
    assert (obj["spec"]["replicas"], obj["metadata"]["generation"]) == (2, 2)


def test_client_side_apply_merges_lists_by_key(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl("set", "image", "deployment/d", "b=example.com/b:2")
    changed = json.loads(json.dumps(DEPLOYMENT))
    containers = changed["spec"]["template"]["spec"]["containers"]
    containers[0]["image"] = "example.com/a:3"
    del containers[1]
    kubectl("apply", "-f", "-", stdin=changed)
    live = kubectl.get("deployment", "d")["spec"]["template"]["spec"]["containers"]
    assert [(c["name"], c["image"]) for c in live] == [("a", "example.com/a:3")]


def test_edit_last_applied_and_set(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=config("a", one="1"))
    kubectl("apply", "set-last-applied", "--create-annotation", "-f", "-", stdin=config("a", one="1"))
    assert 'one: "1"' in kubectl("apply", "view-last-applied", "cm", "a")


def test_server_side_apply_conflicts(kubectl: Kubectl) -> None:
    def apply(manager: str, *more: str) -> tuple[str, ...]:
        return ("apply", "--server-side", f"--field-manager={manager}", *more, "-f", "-")

    assert kubectl(*apply("first"), stdin=config("a", one="1")) == "configmap/a serverside-applied\n"
    error = kubectl.fails(*apply("second"), stdin=config("a", one="2"))
    assert 'Apply failed with 1 conflict: conflict with "first": .data.one' in error
    kubectl(*apply("second", "--force-conflicts"), stdin=config("a", one="2"))
    obj = json.loads(kubectl("get", "cm", "a", "-o", "json", "--show-managed-fields"))
    assert obj["data"] == {"one": "2"}
    owners = {entry["manager"]: entry["operation"] for entry in obj["metadata"]["managedFields"]}
    assert owners["second"] == "Apply"
    assert LAST_APPLIED not in obj["metadata"].get("annotations", {})


def test_server_side_apply_of_custom_resources_removes_fields(kubectl: Kubectl) -> None:
    labelled = clique_set("s")
    labelled["metadata"]["labels"] = {"a": "1", "b": "2"}
    kubectl("apply", "--server-side", "-f", "-", stdin=labelled)
    del labelled["metadata"]["labels"]["a"]
    kubectl("apply", "--server-side", "-f", "-", stdin=labelled)
    assert kubectl.get("pcs", "s")["metadata"]["labels"] == {"b": "2"}


def test_from_client_side_to_server_side(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=config("a", one="1", two="2"))
    kubectl("apply", "--server-side", "-f", "-", stdin=config("a", one="1"))
    assert kubectl.get("cm", "a")["data"] == {"one": "1"}


def test_dry_runs_change_nothing(kubectl: Kubectl) -> None:
    assert "(server dry run)" in kubectl("apply", "--dry-run=server", "-f", "-", stdin=config("a"))
    assert "(dry run)" in kubectl("apply", "--dry-run=client", "-f", "-", stdin=config("a"))
    assert kubectl("get", "cm", "a", "--ignore-not-found") == ""


def test_diff(kubectl: Kubectl) -> None:
    code, out = kubectl.code("diff", "-f", "-", stdin=clique_set("s", 3))
    assert code == 1
    assert "+  replicas: 3" in out
    kubectl("apply", "-f", "-", stdin=clique_set("s", 3))
    assert kubectl.code("diff", "-f", "-", stdin=clique_set("s", 3)) == (0, "")
    code, out = kubectl.code("diff", "--server-side", "--force-conflicts", "-f", "-", stdin=clique_set("s", 4))
    assert code == 1
    assert "-  replicas: 3" in out
    assert "+  replicas: 4" in out


def test_edit(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=config("a", key="old"))
    assert kubectl("edit", "cm", "a", EDITOR="sed -i s/old/new/") == "configmap/a edited\n"
    assert kubectl.get("cm", "a")["data"] == {"key": "new"}
    kubectl("create", "-f", "-", stdin=clique_set("s", 1))
    kubectl("edit", "pcs", "s", EDITOR="sed -i 's/^  replicas: 1/  replicas: 5/'")
    assert kubectl.get("pcs", "s")["spec"]["replicas"] == 5
    before = kubectl.get("cm", "a")
    kubectl("edit", "cm", "a", EDITOR="true")
    assert kubectl.get("cm", "a") == before


def test_invalid_objects_are_refused_in_words(kubectl: Kubectl) -> None:
    error = kubectl.fails("apply", "-f", "-", stdin=config("Bad_Name"))
    assert 'ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name"' in error
    wrong = clique_set("s")
    wrong["spec"]["replicas"] = "many"
    error = kubectl.fails("apply", "-f", "-", stdin=wrong)
    assert 'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"' in error
