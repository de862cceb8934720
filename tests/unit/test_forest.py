"""What `grovekeeper get` prints, from objects, and what it says when there is nothing to print."""

from typing import Any

import msgspec
import pytest

from api import labels
from api.core import Node, Pod
from api.grove import ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.podgang import PodGang
from cli import get
from cli.forest import Forest, lines
from cli.main import main
from cli.world import World
from controllers.runtime import errors
from tests.unit.worlds import change, clique, converge, deleting, named, podcliqueset, running, settled

GROUP: dict[str, Any] = {"name": "g", "cliqueNames": ["w"], "replicas": 2, "minAvailable": 1}


def node(name: str, **found: str) -> Node:
    return msgspec.convert({"metadata": {"name": name, "labels": found}}, Node)


def forest(world: World, *nodes: Node) -> list[str]:
    """The lines, with pods under names that depend on no uid."""
    found = {m: list(world.list(m)) for m in (PodCliqueSet, PodCliqueScalingGroup, PodClique, PodGang, Pod, ClusterTopologyBinding)}
    whole = Forest(
        sets=found[PodCliqueSet],
        groups=found[PodCliqueScalingGroup],
        cliques=found[PodClique],
        gangs=found[PodGang],
        pods=found[Pod],
        nodes={n.metadata.name: n for n in nodes},
        topologies={t.metadata.name: t for t in found[ClusterTopologyBinding]},
    )
    out = list(lines(whole))
    for name, alias in world.pod_names().items():
        out = [line.replace(name, alias) for line in out]
    return out


def both() -> World:
    return running(podcliqueset(clique("router"), clique("w", 2), podCliqueScalingGroups=[GROUP]))


def test_a_running_set_from_top_to_bottom() -> None:
    assert forest(both(), node("n", **{"kubernetes.io/rack": "r1"})) == [
        "PodCliqueSet serving/chat  1/1 available",
        "└─ replica 0  gang chat-0: Running",
        "   ├─ PodClique chat-0-router  1/1 ready",
        "   │  └─ chat-0-router-#0  Ready  n  r1",
        "   └─ PodCliqueScalingGroup chat-0-g  2/2 available",
        "      ├─ PodClique chat-0-g-0-w  2/2 ready",
        "      │  ├─ chat-0-g-0-w-#0  Ready  n  r1",
        "      │  └─ chat-0-g-0-w-#1  Ready  n  r1",
        "      └─ PodClique chat-0-g-1-w  2/2 ready  gang chat-0-g-0: Running",
        "         ├─ chat-0-g-1-w-#0  Ready  n  r1",
        "         └─ chat-0-g-1-w-#1  Ready  n  r1",
    ]


def test_a_set_that_nobody_has_looked_at() -> None:
    world = settled(podcliqueset(clique("w"), replicas=2))
    for model in (PodClique, PodGang, Pod):
        for key in list(world._typed[model]):
            world.remove(model, key)
    assert forest(world) == [
        "PodCliqueSet serving/chat  0/2 available",
        "├─ replica 0  gang chat-0: missing",
        "└─ replica 1  gang chat-1: missing",
    ]


def test_sets_are_sorted_and_keep_to_their_own_children() -> None:
    world = running(podcliqueset(clique("w")), podcliqueset(clique("w"), name="batch"))
    texts = [line.strip(" └─│├") for line in forest(world, node("n"))]
    assert [t for t in texts if t.startswith("PodClique")] == [
        "PodCliqueSet serving/batch  1/1 available",
        "PodClique batch-0-w  1/1 ready",
        "PodCliqueSet serving/chat  1/1 available",
        "PodClique chat-0-w  1/1 ready",
    ]


def line_of(world: World, what: str, *nodes: Node) -> str:
    """The one line about something, without what is drawn before it."""
    (found,) = [line.strip(" └─│├") for line in forest(world, *nodes) if f"{what} " in line or line.endswith(what)]
    return found


def edited(world: World, **parts: Any) -> World:
    """A world in which the router's pod was changed."""
    name = next(n for n, alias in world.pod_names().items() if alias == "chat-0-router-#0")
    change(world, Pod, name, **parts)
    return world


UNSCHEDULED: dict[str, Any] = {
    "spec": {"nodeName": ""},
    "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "needs 8 GPUs"}]},
}
GATED: dict[str, Any] = {"spec": {"schedulingGates": [{"name": labels.GATE}]}}
STATES: list[tuple[str, dict[str, Any], str]] = [
    ("not ready", {"status": {"conditions": []}}, "chat-0-router-#0  Running  n"),
    ("terminating", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "chat-0-router-#0  Terminating  n"),
    ("gated", GATED, "chat-0-router-#0  gated"),
    ("waiting, with a reason", UNSCHEDULED, "chat-0-router-#0  Pending  needs 8 GPUs"),
    ("waiting, nobody said why", {"spec": {"nodeName": ""}, "status": {"conditions": []}}, "chat-0-router-#0  Running  not scheduled yet"),
    ("on a node that is gone", {"spec": {"nodeName": "lost"}}, "chat-0-router-#0  Ready  lost  node is gone"),
]


@pytest.mark.parametrize(("parts", "expected"), [s[1:] for s in STATES], ids=[s[0] for s in STATES])
def test_what_is_said_about_a_pod(parts: dict[str, Any], expected: str) -> None:
    assert line_of(edited(both(), **parts), "chat-0-router-#0", node("n")) == expected


BINDING = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "ClusterTopologyBinding",
    "metadata": {"name": "dc"},
    "spec": {"levels": [{"domain": "rack", "key": "example.com/rack"}]},
}


@pytest.mark.parametrize(
    ("found", "rack"),
    [
        ({"example.com/rack": "r7", "kubernetes.io/rack": "other"}, "r7"),
        ({"kubernetes.io/rack": "r1", "topology.kubernetes.io/rack": "other"}, "r1"),
        ({"topology.kubernetes.io/rack": "r2"}, "r2"),
        ({}, ""),
    ],
    ids=["by the topology", "usual label", "other usual label", "none"],
)
def test_the_rack_of_a_node(found: dict[str, str], rack: str) -> None:
    world = settled(BINDING, podcliqueset(clique("router"), clique("w"), podCliqueScalingGroups=[GROUP]))
    live = named(world, PodCliqueSet, "chat")["spec"]["template"]
    change(world, PodCliqueSet, "chat", spec={"template": {**live, "topologyConstraint": {"topologyName": "dc"}}})
    edited(world, spec={"nodeName": "n", "schedulingGates": []}, status={"phase": "Running"})
    assert line_of(world, "chat-0-router-#0", node("n", **found)) == f"chat-0-router-#0  Running  n  {rack}".rstrip()


def test_a_blocked_gang_says_why() -> None:
    world = converge(settled(podcliqueset(clique("w"))))
    change(world, PodGang, "chat-0", status={"blocked": "InsufficientGPUs"})
    assert line_of(world, "gang chat-0:") == "replica 0  gang chat-0: Pending (InsufficientGPUs)"


def test_an_invalid_set_says_so_first() -> None:
    world = World(settled().config)
    world.put(podcliqueset(clique("w", 2, minAvailable=5)))
    condition = {"type": "InvalidSpec", "status": "True", "reason": "InvalidSpec", "message": "minAvailable is too large"}
    change(world, PodCliqueSet, "chat", status={"conditions": [condition]})
    assert forest(world)[1] == "├─ InvalidSpec: minAvailable is too large"


def test_ten_replicas_of_a_group_are_in_order() -> None:
    world = running(podcliqueset(clique("w"), podCliqueScalingGroups=[{**GROUP, "replicas": 11}]))
    found = [line.split("chat-0-g-")[1].split("-w")[0] for line in forest(world) if "PodClique chat" in line]
    assert found == [str(j) for j in range(11)]


def test_what_terminates_is_still_shown() -> None:
    world = both()
    deleting(world, PodClique, "chat-0-router")
    assert line_of(world, "chat-0-router ").startswith("PodClique chat-0-router")


# the command


class Server:
    """Stands in for the transport: answers lists from a world."""

    def __init__(self, world: World | None, failure: Exception | None = None) -> None:
        self.world, self.failure = world, failure
        self.failing = ("",) if failure is None else tuple(m.KIND.plural for m in get.MODELS)
        self.queries: dict[str, dict[str, str]] = {}

    def __call__(self, *_: Any, **__: Any) -> "Server":
        return self

    async def __aenter__(self) -> "Server":
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def call(self, method: str, path: str, *, query: dict[str, str]) -> bytes:
        self.queries[path] = query
        if self.failure is not None and any(path.endswith(f"/{end}") for end in self.failing):
            raise self.failure
        kind = next(m.KIND for m in get.MODELS if path.endswith(f"/{m.KIND.plural}"))
        items = [*self.world.of_kind(kind)] if self.world is not None else []
        return msgspec.json.encode({"items": items or None})


def run(server: Server, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(get, "Transport", server)
    monkeypatch.setattr(get, "load_credentials", lambda *_: None)
    return main(["get", *arguments])


def test_get_prints_the_forest(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    server = Server(both())
    assert run(server, monkeypatch, "chat", "-n", "serving") == 0
    out = capsys.readouterr().out
    assert out.startswith("PodCliqueSet serving/chat  1/1 available\n└─ replica 0")
    assert server.queries["/api/v1/namespaces/serving/pods"] == {"labelSelector": labels.MANAGED_SELECTOR}
    assert server.queries["/api/v1/nodes"] == {}


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        ((), 0, "no PodCliqueSet in any namespace\n"),
        (("-n", "x"), 0, "no PodCliqueSet in namespace x\n"),
        (("chat",), 1, "no PodCliqueSet chat in any namespace\n"),
        (("chat", "-n", "x"), 1, "no PodCliqueSet chat in namespace x\n"),
    ],
)
def test_get_finds_nothing(
    arguments: tuple[str, ...], code: int, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Server(None), monkeypatch, *arguments) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", text)


@pytest.mark.parametrize(
    ("failure", "text"),
    [
        (errors.TransportError("connection refused"), "error: connection refused\n"),
        (errors.Forbidden(403, "Forbidden", "not allowed"), "not allowed"),
        (errors.NotFound(404, "NotFound", "x"), "grovekeeper install --crds"),
    ],
    ids=["unreachable", "forbidden", "no custom resources"],
)
def test_get_cannot_read(failure: Exception, text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(Server(None, failure), monkeypatch) == 5
    captured = capsys.readouterr()
    assert captured.out == ""
    assert text in captured.err


def test_get_leaves_out_an_object_that_it_cannot_read_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = running(podcliqueset(clique("w")), podcliqueset(clique("w"), name="batch"))
    named(world, PodCliqueSet, "batch")["spec"]["replicas"] = "three"
    assert run(Server(world), monkeypatch) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("PodCliqueSet serving/chat  1/1 available\n")
    assert "batch" not in captured.out
    assert captured.err.startswith("PodCliqueSet serving/batch cannot be read and is left out: spec.replicas: ")


def test_get_does_without_nodes_and_bindings_that_may_not_be_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = Server(both(), errors.Forbidden(403, "Forbidden", "not yours"))
    server.failing = ("nodes", "clustertopologybindings")
    assert run(server, monkeypatch) == 0
    captured = capsys.readouterr()
    assert "1/1 available" in captured.out
    assert "node is gone" not in captured.out
    assert [line.split(" may not be read")[0] for line in captured.err.splitlines()] == ["nodes", "clustertopologybindings.grove.io"]


def test_a_large_forest_is_drawn_without_looking_at_everything_for_each_branch() -> None:
    world = running(podcliqueset(clique("w")))
    [one] = world.list(PodCliqueSet)
    [pod] = world.list(Pod)
    cliques = list(world.list(PodClique))
    looks = 0

    class Counted(list[Pod]):
        def __iter__(self) -> Any:
            nonlocal looks
            looks += 1
            return super().__iter__()

    assert len(list(lines(Forest([one], (), cliques * 50, (), Counted([pod]))))) == 1 + 1 + 50 + 50
    assert looks == 1
