"""Random small PodCliqueSets: the controllers settle, say the same thing again, and reach the same place by any way."""

import random
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from api import labels
from api.core import Pod
from api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.plan import ApplyStatus, Emit, Key, Manifest, Ungate
from api.podgang import PodGang
from cli.world import World
from tests.admission import created
from tests.unit.worlds import change, clique, converge, names, plans, podcliqueset, running, settled

TAS = OperatorConfiguration.model_validate({"topologyAwareScheduling": {"enabled": True}})
LEVELS = ("block", "rack", "host")
BINDING: Manifest = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "ClusterTopologyBinding",
    "metadata": {"name": "dc"},
    "spec": {"levels": [{"domain": d, "key": f"example.com/{d}"} for d in LEVELS]},
}
CLIQUES = ("ab", "b", "x-b", "c")
"""Names that end alike and look like parts of other names."""
small = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def cliques(draw: st.DrawFn) -> list[Manifest]:
    out: list[Manifest] = []
    for i, name in enumerate(draw(st.lists(st.sampled_from(CLIQUES), min_size=1, max_size=4, unique=True))):
        replicas = draw(st.integers(1, 3))
        spec: Manifest = {"minAvailable": draw(st.integers(1, replicas))}
        if parents := draw(st.lists(st.sampled_from([c["name"] for c in out]), max_size=2, unique=True) if i else st.just([])):
            spec["startsAfter"] = parents
        out.append(clique(name, replicas, **spec))
    return out


@st.composite
def sets(draw: st.DrawFn) -> Manifest:
    """A valid set; constraints narrow from the set to the group."""
    templates = draw(cliques())
    members = draw(st.lists(st.sampled_from([c["name"] for c in templates]), max_size=3, unique=True))
    template: Manifest = {"cliqueStartupType": f"CliqueStartupType{draw(st.sampled_from(('AnyOrder', 'InOrder', 'Explicit')))}"}
    groups = [members[:1], members[1:]] if draw(st.booleans()) else [members]
    configs: list[Manifest] = []
    for i, names_of in enumerate(g for g in groups if g):
        replicas = draw(st.integers(1, 3))
        minimum = draw(st.integers(1, replicas))
        configs.append({"name": f"g{i}", "cliqueNames": names_of, "replicas": replicas, "minAvailable": minimum})
        if draw(st.booleans()):
            configs[-1]["topologyConstraint"] = {"topologyName": "dc", "pack": {"required": draw(st.sampled_from(LEVELS[1:]))}}
    if configs:
        template["podCliqueScalingGroups"] = configs
    if draw(st.booleans()):
        template["topologyConstraint"] = {"topologyName": "dc", "pack": {"required": "block"}}
    return podcliqueset(*templates, replicas=draw(st.integers(1, 2)), **template)


def world_of(subject: Manifest) -> World:
    return settled(BINDING, subject, config=TAS)


def normal(world: World) -> dict[str, Any]:
    """Everything that was asked for, under names that depend on no uid; without set, uids and what pods went through."""
    aliases = world.pod_names()

    def clean(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {k: clean(v) for k, v in sorted(value.items()) if k not in ("uid", "resourceVersion", "status", "schedulingGates")}
        if isinstance(value, list):
            return [clean(v) for v in value]
        return aliases.get(value, value) if isinstance(value, str) else value

    out: dict[str, Any] = {}
    for kind in world.kinds():
        for manifest in world.of_kind(kind):
            if kind != PodCliqueSet.KIND:
                found = clean(manifest)
                if kind == PodGang.KIND:
                    for group in found["spec"]["podgroups"]:
                        group["podReferences"].sort(key=lambda r: r["name"])
                out[f"{kind.kind}/{found['metadata']['name']}"] = found
    return out


@small
@given(sets())
def test_what_is_drawn_here_is_valid(subject: Manifest) -> None:
    assert [e for e in created(PodCliqueSet.model_validate(subject), TAS) if "topologyName" not in e] == []


@small
@given(sets())
def test_a_settled_world_is_done_except_for_gates_and_statuses(subject: Manifest) -> None:
    world = world_of(subject)
    for key, plan in plans(world):
        assert all(isinstance(op, Ungate | ApplyStatus | Emit) for op in plan.ops), key


@small
@given(sets())
def test_everything_runs_in_the_end_and_then_nothing_is_left_to_do(subject: Manifest) -> None:
    world = running(BINDING, subject, config=TAS)
    assert [(key, op) for key, plan in plans(world) for op in plan.ops] == []
    status = world.get(PodCliqueSet, "serving", "chat").status
    assert (status.available_replicas, status.updated_replicas) == (subject["spec"]["replicas"],) * 2
    assert {m["status"]["phase"] for m in world.of_kind(PodGang.KIND)} == {"Running"}


@small
@given(sets())
def test_pods_are_as_many_as_asked_for_and_in_exactly_one_gang(subject: Manifest) -> None:
    world = world_of(subject)
    template, replicas = subject["spec"]["template"], subject["spec"]["replicas"]
    times = {name: g["replicas"] for g in template.get("podCliqueScalingGroups", ()) for name in g["cliqueNames"]}
    wanted = replicas * sum(c["spec"]["replicas"] * times.get(c["name"], 1) for c in template["cliques"])
    references = [r["name"] for g in world.of_kind(PodGang.KIND) for group in g["spec"]["podgroups"] for r in group["podReferences"]]
    assert len(references) == len(set(references)) == wanted
    assert sorted(references) == names(world, Pod)
    hostnames = [p["spec"]["hostname"] for p in world.of_kind(Pod.KIND)]
    assert len(set(hostnames)) == wanted


@small
@given(sets())
def test_the_same_input_gives_the_same_bytes(subject: Manifest) -> None:
    assert world_of(subject).manifests == world_of(subject).manifests


@small
@given(sets(), st.integers(0, 3), st.integers(0, 3))
def test_scaling_a_set_leads_to_what_a_new_set_of_that_size_has(subject: Manifest, before: int, after: int) -> None:
    def sized(replicas: int) -> Manifest:
        return {**subject, "spec": {**subject["spec"], "replicas": replicas}}

    world = converge(world_of(sized(before)))
    change(world, PodCliqueSet, "chat", spec={"replicas": after})
    assert normal(converge(world)) == normal(converge(world_of(sized(after))))


GROUP: Manifest = {"name": "g", "cliqueNames": ["b", "c"], "minAvailable": 1}


@small
@given(cliques(), st.integers(1, 2), st.integers(1, 4), st.integers(1, 4))
def test_scaling_a_group_leads_to_what_a_new_group_of_that_size_has(
    templates: list[Manifest], minimum: int, before: int, after: int
) -> None:
    member = templates[0]["name"]
    before, after = max(before, minimum), max(after, minimum)

    def sized(replicas: int) -> Manifest:
        group = {"name": "g", "cliqueNames": [member], "minAvailable": minimum, "replicas": replicas}
        return podcliqueset(*templates, podCliqueScalingGroups=[group])

    world = converge(settled(sized(before)))
    change(world, PodCliqueScalingGroup, "chat-0-g", spec={"replicas": after})
    assert normal(converge(world)) == normal(converge(settled(sized(after))))


def shuffled(value: Any, rng: random.Random) -> Any:
    """The same data with the keys of every mapping in another order."""
    if isinstance(value, dict):
        items = list(value.items())
        rng.shuffle(items)
        return {k: shuffled(v, rng) for k, v in items}
    return [shuffled(v, rng) for v in value] if isinstance(value, list) else value


@small
@given(sets(), st.integers(0, 2**32))
def test_the_order_of_keys_means_nothing(subject: Manifest, seed: int) -> None:
    subject["metadata"]["labels"] = {"a": "1", "b": "2", "c": "3"}
    subject["spec"]["template"]["cliques"][0]["labels"] = {"x": "1", "y": "2"}
    assert world_of(shuffled(subject, random.Random(seed))).manifests == world_of(subject).manifests  # noqa: S311


@small
@given(sets(), st.integers(0, 2**32))
def test_the_order_in_which_the_cache_lists_objects_means_nothing(subject: Manifest, seed: int) -> None:
    world, other = world_of(subject), world_of(subject)
    for objects in other._typed.values():
        items = list(objects.items())
        random.Random(seed).shuffle(items)  # noqa: S311
        objects.clear()
        objects.update(items)
    other._indexes.clear()
    assert dict(plans(world)) == dict(plans(other))


VALUES = st.one_of(
    st.just(""),
    st.integers(-5, 2**70).map(str),
    st.sampled_from(["²", "chat", "chat-0", "chat-9", "x" * 63, "-1", "grove-operator"]),
    st.text(max_size=10),
)
NO_KEYS = ("MANAGED_SELECTOR", "MANAGED_BY_VALUE", "GATE")
KEYS = st.sampled_from(sorted(v for name, v in vars(labels).items() if name.isupper() and isinstance(v, str) and name not in NO_KEYS))


@settings(small, max_examples=40)
@given(
    sets(),
    st.lists(
        st.tuples(st.integers(0, 99), st.dictionaries(KEYS, VALUES, max_size=5), st.dictionaries(KEYS, VALUES, max_size=3)), max_size=6
    ),
)
def test_labels_and_annotations_that_a_user_breaks_stop_no_plan(subject: Manifest, edits: list[Any]) -> None:
    world = converge(world_of(subject))
    children = [m for kind in (PodClique, PodCliqueScalingGroup, PodGang, Pod) for m in world.of_kind(kind.KIND)]
    for which, bad_labels, bad_annotations in edits:
        child = children[which % len(children)]
        meta = child["metadata"]
        edited = {**meta, "labels": {**meta["labels"], **bad_labels}, "annotations": {**meta.get("annotations", {}), **bad_annotations}}
        world.put({**child, "metadata": edited})
    for _, plan in plans(world):
        assert all(isinstance(stage, tuple) for stage in plan.stages)


@settings(small, max_examples=40)
@given(sets(), st.lists(st.sampled_from(["labels", "ownerReferences", "spec"]), min_size=1, max_size=3), st.integers(0, 99))
def test_children_that_lost_everything_stop_no_plan(subject: Manifest, lost: list[str], which: int) -> None:
    world = converge(world_of(subject))
    children = [m for kind in (PodClique, PodCliqueScalingGroup, PodGang, Pod) for m in world.of_kind(kind.KIND)]
    child = children[which % len(children)]
    meta = {k: v for k, v in child["metadata"].items() if k not in lost}
    world.put({**child, "metadata": meta, **({"spec": {}} if "spec" in lost and child["kind"] == "Pod" else {})})
    assert list(plans(world))


@pytest.mark.parametrize("model", [PodClique, PodCliqueScalingGroup, PodGang], ids=lambda m: m.__name__)
def test_children_outlive_a_set_that_vanished_without_its_children(model: type[Any]) -> None:
    world = running(podcliqueset(clique("b"), clique("c"), podCliqueScalingGroups=[{**GROUP, "replicas": 2}]))
    world.remove(PodCliqueSet, Key("serving", "chat"))
    assert not [op for _, plan in plans(world) for op in plan.ops]
    assert names(world, model)
