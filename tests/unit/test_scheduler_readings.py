"""What is read of gangs is used again exactly as long as it is the same."""

from typing import Any

import msgspec
import pytest

from api.core import Pod
from api.podgang import PodGang
from scheduler.gangs import GangContext
from scheduler.model import MemberState
from scheduler.observe import Entry
from scheduler.rounds import Built, gangs_of
from tests.sched_builders import make_pod

NAMES = frozenset({"grovekeeper"})


def podgang(*pods: Pod) -> PodGang:
    references = [{"namespace": p.metadata.namespace, "name": p.metadata.name} for p in pods]
    group = {"name": "g", "podReferences": references, "minReplicas": len(pods)}
    metadata = {"name": "gang", "namespace": pods[0].metadata.namespace, "uid": "u", "generation": 1}
    raw: dict[str, Any] = {"apiVersion": "scheduler.grove.io/v1alpha1", "kind": "PodGang", "metadata": metadata}
    return PodGang.decode(msgspec.json.encode({**raw, "spec": {"podgroups": [group]}}))


@pytest.fixture
def pods() -> tuple[Pod, ...]:
    return make_pod("b"), make_pod("a")


def context(**assumed: str) -> GangContext:
    return GangContext(topologies={}, has_label_key=lambda key: True, assumed=assumed)


def test_an_entry_is_of_the_very_same_objects(pods: tuple[Pod, ...]) -> None:
    gang = podgang(*pods)
    entry = Entry.of(gang, pods, NAMES)
    assert [p.metadata.name for p in entry.pods] == ["a", "b"]
    assert entry.is_of(gang, tuple(pods))
    assert not entry.is_of(podgang(*pods), pods)
    assert not entry.is_of(gang, pods[:1])
    assert not entry.is_of(gang, (pods[0], msgspec.structs.replace(pods[1])))


def test_a_gang_is_built_again_for_another_entry_an_assumed_node_or_after_a_clear(pods: tuple[Pod, ...]) -> None:
    built, gang = Built(), podgang(*pods)
    entry = Entry.of(gang, pods, NAMES)
    first = built.gang(entry, context())
    assert built.gang(entry, context()) is first
    placed = built.gang(entry, context(**{pods[0].metadata.uid: "node"}))
    assert [m.state for g in placed.groups for m in g.members].count(MemberState.PLACED) == 1
    assert built.gang(entry, context()) == first
    again = built.gang(entry, context())
    assert built.gang(Entry.of(gang, pods, NAMES), context()) is not again
    kept = built.gang(entry, context())
    built.clear()
    assert built.gang(entry, context()) is not kept


def test_an_idle_gang_is_planned_with_its_placed_pods_only_and_stays_whole_in_memory(pods: tuple[Pod, ...]) -> None:
    built, entry = Built(), Entry.of(podgang(*pods), pods, NAMES)
    (idle,) = gangs_of([entry], context(), lambda uid: True, {}, built)
    assert [g.members for g in idle.groups] == [()]
    (whole,) = gangs_of([entry], context(), lambda uid: False, {}, built)
    assert [len(g.members) for g in whole.groups] == [2]
