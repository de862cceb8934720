"""Which node image is taken, and what the built one is made of."""

from pathlib import Path

import pytest

from hack.kind import imagebuild, nodeimage
from hack.kind.failures import KindFailed, MachineUnfit
from hack.kind.imagebuild import image_sources, sandbox_image
from hack.kind.nodeimage import BUILT, Choice, Present, choose, decide, newest_official
from hack.kube.programs import parse_version

RECIPES = {"built": "now", "old": "before"}


@pytest.mark.parametrize(
    ("present", "choice"),
    [
        pytest.param(Present(), Choice.PULL, id="nothing is there"),
        pytest.param(Present("mine", "used", "official", "built"), Choice.GIVEN, id="a name goes before all"),
        pytest.param(Present(None, "used", "official", "built"), Choice.IN_USE, id="a cluster keeps its image"),
        pytest.param(Present(None, "built", "official", "built"), Choice.IN_USE, id="also one that was built here"),
        pytest.param(Present(None, "old", None, "old"), Choice.PULL, id="unless the recipe has changed"),
        pytest.param(Present(None, None, "official", "built"), Choice.OFFICIAL, id="the official one goes before ours"),
        pytest.param(Present(None, None, None, "built"), Choice.BUILT, id="ours is kept"),
        pytest.param(Present(None, None, None, "old"), Choice.PULL, id="ours is out of date"),
        pytest.param(Present(None, None, None, "foreign"), Choice.PULL, id="something of our name that was not built here"),
    ],
)
def test_which_image(present: Present, choice: Choice) -> None:
    assert decide(present, RECIPES, "now") is choice


@pytest.mark.parametrize(
    ("images", "newest"),
    [
        ([], None),
        (["kindest/node:v1.36.2", "kindest/node:v1.36.10", "kindest/node:v1.36.9"], "kindest/node:v1.36.10"),
        (["kindest/node:v1.35.4", "kindest/node:v1.37.0", "kindest/node:local", "kindest/node:v1.36.1-rc.0"], None),
    ],
)
def test_official_images_of_our_minor_version(images: list[str], newest: str | None) -> None:
    assert newest_official(images) == newest


def test_none_is_built_of_packages_that_cannot_be_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[str] = []
    monkeypatch.delenv("GROVEKEEPER_NODE_IMAGE", raising=False)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(nodeimage, "KEYRING", tmp_path / "keys.gpg")
    monkeypatch.setattr(nodeimage, "inspect", lambda kind, name: {"Id": "1", "Config": {}} if name in built else None)
    monkeypatch.setattr(nodeimage, "docker", lambda *argv: "")
    monkeypatch.setattr(nodeimage, "_pull_official", lambda report: None)
    monkeypatch.setattr(imagebuild, "build", lambda tag, report: built.append(tag) or tag)
    with pytest.raises(MachineUnfit, match="apt-get install debian-archive-keyring"):
        choose(None, lambda line: None)
    assert built == []
    (tmp_path / "keys.gpg").touch()
    assert choose(None, lambda line: None).name == BUILT
    assert built == [BUILT]


def test_every_image_that_kubeadm_wants_has_a_source() -> None:
    wanted = [
        "registry.k8s.io/kube-apiserver:v1.36.3",
        "registry.k8s.io/kube-proxy:v1.36.3",
        "registry.k8s.io/coredns/coredns:v1.14.2",
        "registry.k8s.io/pause:3.10.2",
        "registry.k8s.io/etcd:3.6.8-0",
    ]
    assert list(image_sources(wanted).values()) == [
        "grovekeeper-node-base",
        "grovekeeper-node-base",
        "grovekeeper-coredns",
        "grovekeeper-pause",
        "grovekeeper-etcd",
    ]


def test_an_unknown_image_is_named() -> None:
    with pytest.raises(KindFailed, match=r"registry\.k8s\.io/novelty:v1"):
        image_sources(["registry.k8s.io/novelty:v1"])


@pytest.mark.parametrize("line", ['  sandbox_image = "registry.k8s.io/pause:3.10"', '  sandbox = "registry.k8s.io/pause:3.10"'])
def test_the_sandbox_image_of_either_version_of_the_configuration(line: str) -> None:
    assert sandbox_image(f"version = 2\n# sandbox\n{line}\n") == "registry.k8s.io/pause:3.10"


def test_a_configuration_without_sandbox_image_is_refused() -> None:
    with pytest.raises(KindFailed, match="sandbox"):
        sandbox_image("version = 2\n")


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("kind v0.33.0 go1.26.8 linux/amd64", (0, 33, 0)),
        ('version.BuildInfo{Version:"v3.14.2", GitCommit:"c309", GoVersion:"go1.21.7"}', (3, 14, 2)),
        ("kind version unknown", None),
    ],
)
def test_versions_of_programs_on_path(said: str, version: tuple[int, ...] | None) -> None:
    assert parse_version(said) == version
