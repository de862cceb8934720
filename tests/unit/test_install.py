"""`grovekeeper install --crds` against the embedded API server: what it writes, what it leaves alone, and what it says."""

import copy
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from api.registry import MODELS, crd_name
from cli.install import CRDS, INSTALLED_BY, PATH, Installation, install, load_crds
from cli.main import main
from controllers.runtime.clock import SystemClock
from controllers.runtime.transport import Transport
from sim.apiserver.bootstrap import bootstrap
from sim.apiserver.server import ApiServer
from sim.demo.wire import DirectWire, direct_credentials

NAMES = sorted(crd_name(model) for model in MODELS)
OURS: dict[str, Any] = {"version": "0.1.0", "timeout_s": 5.0}
ALL = load_crds(CRDS)
GANGS = "podgangs.scheduler.grove.io"


@dataclass
class Cluster:
    """An API server, and what was printed and written."""

    server: ApiServer
    transport: Transport
    lines: list[str] = field(default_factory=list[str])
    changes: list[str] = field(default_factory=list[str])

    async def install(self, *names: str, **how: Any) -> list[str]:
        """Installs all definitions, or those of these names; returns problems. `lines` and `changes` are those of this run."""
        self.lines.clear()
        self.changes.clear()
        return await install(self.transport, [shipped(n) for n in names] if names else ALL, Installation(**OURS | how), self.lines.append)

    async def read(self, name: str) -> dict[str, Any]:
        return msgspec.json.decode(await self.transport.call("GET", f"{PATH}/{name}"))

    async def apply(self, manifest: dict[str, Any], manager: str) -> None:
        query = {"fieldManager": manager}
        body = msgspec.json.encode(manifest)
        path = f"{PATH}/{manifest['metadata']['name']}"
        await self.transport.call("PATCH", path, query=query, body=body, content_type="application/apply-patch+yaml")


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    server = ApiServer(SystemClock(), random.Random(1))  # noqa: S311 - names, not secrets
    await bootstrap(server)
    async with Transport(direct_credentials(), wire=DirectWire(server.handle, "install")) as transport:
        made = Cluster(server, transport)
        server.subscribe(lambda change: made.changes.append(change.key.name))
        yield made


def shipped(name: str) -> dict[str, Any]:
    return copy.deepcopy(next(crd for crd in ALL if crd["metadata"]["name"] == name))


async def test_everything_is_created_and_served(cluster: Cluster) -> None:
    assert await cluster.install() == []
    assert sorted(cluster.lines) == [f"{name} created" for name in NAMES]
    for name in NAMES:
        conditions = {c["type"]: c["status"] for c in (await cluster.read(name))["status"]["conditions"]}
        assert conditions["Established"] == "True"
    await cluster.transport.call("GET", "/apis/grove.io/v1alpha1/podcliquesets")


async def test_a_second_run_writes_nothing(cluster: Cluster) -> None:
    await cluster.install()
    assert await cluster.install() == []
    assert sorted(cluster.lines) == [f"{name} unchanged" for name in NAMES]
    assert cluster.changes == []


async def test_a_dry_run_stores_nothing(cluster: Cluster) -> None:
    assert await cluster.install(mode="dry-run") == []
    assert sorted(cluster.lines) == [f"{name} created (dry run)" for name in NAMES]
    assert cluster.changes == []


async def test_what_differs_is_configured(cluster: Cluster) -> None:
    await cluster.install()
    changed = shipped(GANGS)
    changed["metadata"]["annotations"] = {INSTALLED_BY: "0.1.0"}
    changed["spec"]["versions"][0]["additionalPrinterColumns"] = []
    await cluster.apply(changed, "grovekeeper-install")
    assert await cluster.install() == []
    assert f"{GANGS} configured" in cluster.lines
    assert set(cluster.changes) == {GANGS}
    assert (await cluster.read(GANGS))["spec"]["versions"][0]["additionalPrinterColumns"]


async def test_the_next_version_replaces_and_the_one_before_leaves_alone(cluster: Cluster) -> None:
    await cluster.install(GANGS, version="0.2.0")
    assert await cluster.install(GANGS, version="0.1.9") == []
    assert cluster.changes == []
    assert f"{GANGS} left: version 0.2.0 installed it, and this is 0.1.9; --force goes back" in cluster.lines
    assert await cluster.install(GANGS, version="0.10.0") == []
    assert (await cluster.read(GANGS))["metadata"]["annotations"][INSTALLED_BY] == "0.10.0"
    assert await cluster.install(GANGS, version="0.1.9", conflicts="take over") == []
    assert (await cluster.read(GANGS))["metadata"]["annotations"][INSTALLED_BY] == "0.1.9"


async def test_definitions_of_somebody_else_are_named_and_nothing_is_installed(cluster: Cluster) -> None:
    foreign = shipped(GANGS)
    foreign["spec"]["names"]["shortNames"] = ["gang"]
    await cluster.apply(foreign, "helm")
    (problem, end) = await cluster.install()
    assert problem.startswith(f"{GANGS} was installed by helm, which owns .spec.names.shortNames")
    assert "--force" in problem
    assert end == "nothing was installed"
    assert cluster.changes == []
    assert cluster.lines == []
    assert await cluster.install(conflicts="take over") == []
    assert f"{GANGS} configured" in cluster.lines
    assert (await cluster.read(GANGS))["spec"]["names"]["shortNames"] == ["pg"]


async def test_names_that_another_definition_uses_are_told(cluster: Cluster) -> None:
    foreign = shipped(GANGS)
    foreign["metadata"]["name"] = "groups.scheduler.grove.io"
    foreign["spec"]["names"] = {"plural": "groups", "singular": "podgang", "kind": "Group", "listKind": "GroupList"}
    await cluster.apply(foreign, "somebody")
    (problem,) = await cluster.install()
    assert problem.startswith(f"{GANGS}: its names are not accepted: ")
    assert "podgang" in problem
    assert "delete that one" in problem


async def test_a_definition_that_is_being_deleted_is_waited_for_by_the_user(cluster: Cluster) -> None:
    leaving = shipped(GANGS)
    leaving["metadata"]["finalizers"] = ["example.com/stay"]
    await cluster.apply(leaving, "somebody")
    await cluster.transport.call("DELETE", f"{PATH}/{GANGS}")
    problem, _ = await cluster.install()
    assert problem.startswith(f"{GANGS} is being deleted")


def test_the_command_without_a_server(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        '{"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}], "contexts": '
        '[{"name": "c", "context": {"cluster": "c"}}], "current-context": "c"}'
    )
    assert main(["install", "--crds", "--kubeconfig", str(kubeconfig)]) == 5
    assert "127.0.0.1:9" in capsys.readouterr().err


def test_the_command_without_definitions(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cli.install.CRDS", tmp_path)
    assert main(["install", "--crds"]) == 4
    assert f"{tmp_path} holds no custom resource definitions" in capsys.readouterr().err


def test_something_to_install_has_to_be_named() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["install"])
