"""The parts of the end-to-end tests in kind that decide something without a cluster."""

import base64
import re
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.history import PodLives
from e2e.kind.access import with_files
from e2e.kind.audit import Grant, Request, forbidden, grants, requests, unused, writes
from e2e.kind.system import Overlay
from hack.codegen.files import ROOT

AT = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
ACCOUNT = "system:serviceaccount:grovekeeper-system:grovekeeper-scheduler"


def event(
    verb: str, resource: str, *, name: str = "", sub: str = "", group: str = "", code: int = 200, at: datetime = AT
) -> dict[str, Any]:
    """A line of an audit log."""
    target = {"resource": resource, "name": name, "subresource": sub, "apiGroup": group}
    return {
        "stage": "ResponseComplete",
        "verb": verb,
        "user": {"username": ACCOUNT},
        "objectRef": {key: value for key, value in target.items() if value},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": at.isoformat().replace("+00:00", "Z"),
        "requestURI": f"/{resource}",
    }


def done(*events: dict[str, Any]) -> list[Request]:
    return list(requests(events, AT))


def test_requests_since() -> None:
    before = event("get", "pods", at=AT - timedelta(microseconds=1))
    (found,) = done(before, event("create", "pods", sub="binding", name="a"), event("get", "pods") | {"stage": "Panic"})
    assert (found.verb, found.resource, found.name, found.code, found.at) == ("create", "pods/binding", "a", 200, AT)


def test_requests_for_paths_are_left_out() -> None:
    path = event("get", "pods")
    del path["objectRef"]
    assert done(path) == []


def test_writes_are_changes_of_anything_but_leases() -> None:
    seen = done(event("update", "leases"), event("patch", "pods", sub="status"), event("watch", "pods"), event("delete", "pods"))
    assert [(r.verb, r.resource) for r in writes(seen)] == [("patch", "pods/status"), ("delete", "pods")]


def test_forbidden() -> None:
    seen = done(event("list", "nodes", code=403), event("list", "pods"), event("create", "pods", code=409))
    assert [r.resource for r in forbidden(seen)] == ["nodes"]


RULES = [
    {"apiGroups": [""], "resources": ["pods", "pods/binding"], "verbs": ["get", "create"]},
    {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": ["ours"], "verbs": ["update"]},
    {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
]


def test_grants_one_by_one() -> None:
    assert {str(g).removeprefix(f"{ACCOUNT}: ") for g in grants(ACCOUNT, RULES)} == {
        "get pods",
        "create pods",
        "get pods/binding",
        "create pods/binding",
        "update leases.coordination.k8s.io ours",
    }


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        ((), {"get pods", "create pods/binding", "update leases"}),
        ((event("get", "pods", name="a"),), {"create pods/binding", "update leases"}),
        ((event("get", "pods", name="a", code=404),), {"get pods", "create pods/binding", "update leases"}),
        ((event("create", "pods", sub="binding", code=201),), {"get pods", "update leases"}),
        ((event("update", "leases", name="ours", group="coordination.k8s.io"),), {"get pods", "create pods/binding"}),
        ((event("update", "leases", name="other", group="coordination.k8s.io"),), {"get pods", "create pods/binding", "update leases"}),
    ],
    ids=["nothing", "used", "only refused", "subresource", "by name", "another name"],
)
def test_unused(seen: tuple[dict[str, Any], ...], left: set[str]) -> None:
    given = {
        Grant(ACCOUNT, "", "pods", "get"),
        Grant(ACCOUNT, "", "pods/binding", "create"),
        Grant(ACCOUNT, "coordination.k8s.io", "leases", "update", "ours"),
    }
    assert {f"{g.verb} {g.resource}" for g in unused(given, done(*seen))} == left


def test_a_wildcard_counts_as_unused() -> None:
    assert unused({Grant(ACCOUNT, "", "pods", "*")}, done(event("get", "pods"))) != []


def test_kubeconfig_names_files(tmp_path: Path) -> None:
    source = tmp_path / "source"
    data = {key: base64.b64encode(key.encode()).decode() for key in ("ca", "crt", "key")}
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "https://a", "certificate-authority-data": data["ca"]}}],
        "users": [{"name": "u", "user": {"client-certificate-data": data["crt"], "client-key-data": data["key"]}}],
    }
    source.write_text(yaml.safe_dump(config))
    folder = tmp_path / "files"
    folder.mkdir()
    made = with_files(source, folder)
    text = made.read_text()
    assert "-data" not in text
    user = yaml.safe_load(text)["users"][0]["user"]
    assert Path(user["client-key"]).read_text() == "key"
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_overlay(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    folder = Overlay("registry/own:2", "kind: X\n", {"A": "b"}, manifests).write(tmp_path / "overlay")
    made = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert made["resources"] == ["../manifests/base"]
    assert made["images"] == [{"name": "grovekeeper", "newName": "registry/own", "newTag": "2"}]
    assert made["configMapGenerator"][0]["behavior"] == "replace"
    assert (folder / "controllers.yaml").read_text() == "kind: X\n"
    assert [yaml.safe_load(p["patch"])["metadata"]["name"] for p in made["patches"]] == ["grovekeeper-controllers", "grovekeeper-scheduler"]
    plain = Overlay("own:1", manifests=manifests).write(tmp_path / "plain")
    assert yaml.safe_load((plain / "kustomization.yaml").read_text()).keys().isdisjoint({"patches", "configMapGenerator"})


def pod(uid: str, index: int, *, node: str = "", leaves: bool = False) -> dict[str, Any]:
    meta: dict[str, Any] = {"uid": uid, "labels": {"grove.io/podclique": "a", "grove.io/podclique-pod-index": str(index)}}
    return {"metadata": meta | ({"deletionTimestamp": "now"} if leaves else {}), "spec": {"nodeName": node}}


def test_pod_lives() -> None:
    lives = PodLives()
    lives.replace([pod("1", 0, node="n"), pod("2", 1)])
    lives.replace([pod("1", 0, node="n", leaves=True), pod("3", 0)])
    lives.assert_sound()
    lives.replace([pod("3", 0), pod("4", 0)])
    with pytest.raises(AssertionError):
        lives.assert_sound()


def test_a_pod_on_two_nodes() -> None:
    lives = PodLives()
    lives.replace([pod("1", 0, node="n")])
    lives.replace([pod("1", 0, node="m")])
    with pytest.raises(AssertionError):
        lives.assert_sound()


def test_kr8s_stays_a_dependency_of_tests() -> None:
    """ADR 0001."""
    runtime, dev = ((ROOT / "requirements" / f"{name}.lock").read_text() for name in ("runtime", "dev"))
    assert "\nkr8s==" in dev
    assert "kr8s" not in runtime
    product = [path for folder in ("api", "controllers", "scheduler", "sim", "cli", "hack") for path in (ROOT / folder).rglob("*.py")]
    assert [str(path) for path in product if re.search(r"^\s*(import|from) kr8s\b", path.read_text(), re.MULTILINE)] == []
