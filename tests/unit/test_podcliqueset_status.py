"""Status of a PodCliqueSet: topology, available and updated replicas."""

from typing import Any

import pytest

from api import labels
from api.grove import ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.plan import ApplyStatus, Key
from cli.world import World
from tests.unit.setworld import GROUP, both, fresh, planned, status_of
from tests.unit.worlds import (
    change,
    chosen,
    clique,
    condition_in,
    converge,
    deleting,
    named,
    podcliqueset,
    running,
    settled,
    status_in,
)

TAS = OperatorConfiguration.model_validate({"topologyAwareScheduling": {"enabled": True}})


# topology


LEVELS = [{"domain": "block", "key": "example.com/block"}, {"domain": "rack", "key": "example.com/rack"}]
BINDING = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "ClusterTopologyBinding",
    "metadata": {"name": "dc"},
    "spec": {"levels": LEVELS},
}
RACK = {"topologyName": "dc", "pack": {"required": "rack"}}


def test_all_levels_are_available() -> None:
    world = settled(BINDING, podcliqueset(clique("w"), topologyConstraint=RACK), config=TAS)
    condition = condition_in(planned(world), "TopologyLevelsUnavailable")
    assert (condition["status"], condition["reason"]) == ("False", "AllClusterTopologyLevelsAvailable")
    assert condition["message"] == "All topology levels are available"
    assert condition["observedGeneration"] == 1


def test_a_set_without_constraints_says_so() -> None:
    condition = condition_in(planned(settled(podcliqueset(clique("w")), config=TAS)), "TopologyLevelsUnavailable")
    assert (condition["status"], condition["message"]) == ("False", "No topology constraints defined")


def test_a_level_that_vanishes_is_named() -> None:
    world = converge(settled(BINDING, podcliqueset(clique("w"), topologyConstraint=RACK), config=TAS))
    change(world, ClusterTopologyBinding, "dc", spec={"levels": LEVELS[:1]})
    condition = condition_in(planned(world), "TopologyLevelsUnavailable")
    assert (condition["status"], condition["reason"]) == ("True", "ClusterTopologyLevelsUnavailable")
    assert condition["message"] == "Unavailable topology domains: [rack]"


def test_a_binding_that_vanishes_is_named_and_stops_nothing() -> None:
    world = converge(settled(BINDING, podcliqueset(clique("w"), topologyConstraint=RACK), config=TAS))
    world.remove(ClusterTopologyBinding, Key("", "dc"))
    p = planned(world)
    condition = condition_in(p, "TopologyLevelsUnavailable")
    assert (condition["status"], condition["reason"]) == ("Unknown", "ClusterTopologyNotFound")
    assert "dc" in condition["message"]
    assert not p.why


def accepted(world: World) -> World:
    """The set looks like one that was accepted under an older configuration."""
    change(world, PodCliqueSet, "chat", status={"replicas": 1, "currentGenerationHash": "x"})
    return world


def test_constraints_without_topology_aware_scheduling_have_no_effect() -> None:
    world = accepted(fresh(BINDING, podcliqueset(clique("w"), topologyConstraint=RACK)))
    condition = condition_in(planned(world), "TopologyLevelsUnavailable")
    assert (condition["status"], condition["reason"]) == ("Unknown", "TopologyAwareSchedulingDisabled")


def test_without_topology_aware_scheduling_and_constraints_there_is_no_condition() -> None:
    assert "conditions" not in status_in(planned(settled(podcliqueset(clique("w")))))


def test_constraints_that_name_no_topology_have_no_effect() -> None:
    world = accepted(fresh(podcliqueset(clique("w"), topologyConstraint={"packDomain": "rack"}), config=TAS))
    condition = condition_in(planned(world), "TopologyLevelsUnavailable")
    assert (condition["status"], condition["reason"]) == ("Unknown", "TopologyNameMissing")


# status


def counts(world: World) -> tuple[int, int, int]:
    written = [op.status for op in chosen(planned(world), ApplyStatus)]
    status = written[0] if written else status_of(world)
    return status["replicas"], status["availableReplicas"], status["updatedReplicas"]


def test_replicas_that_run_are_available_and_updated() -> None:
    world = both(replicas=2)
    assert counts(world) == (2, 2, 2)
    status = status_of(world)
    assert status["hpaPodSelector"] == f"{labels.MANAGED_BY}=grove-operator,{labels.PART_OF}=chat"
    assert status["observedGeneration"] == 1


@pytest.mark.parametrize(
    ("model", "name", "status", "expected"),
    [
        (PodClique, "chat-0-router", {"readyReplicas": 1}, (1, 0, 0)),
        (PodClique, "chat-0-router", {"conditions": []}, (1, 1, 1)),
        (PodClique, "chat-0-router", {"currentPodTemplateHash": "old"}, (1, 1, 0)),
        (PodClique, "chat-0-router", {"currentPodCliqueSetGenerationHash": "old"}, (1, 1, 0)),
        (PodClique, "chat-0-router", {"updatedReplicas": 1}, (1, 1, 0)),
        (PodCliqueScalingGroup, "chat-0-g", {"availableReplicas": 0}, (1, 0, 0)),
        (PodCliqueScalingGroup, "chat-0-g", {"availableReplicas": 1}, (1, 1, 1)),
        (PodCliqueScalingGroup, "chat-0-g", {"currentPodCliqueSetGenerationHash": "old"}, (1, 1, 0)),
    ],
    ids=[
        "too few ready pods",
        "conditions do not count",
        "old template",
        "old generation",
        "too few updated pods",
        "no available group replica",
        "minimum of available group replicas",
        "group of an old generation",
    ],
)
def test_available_and_updated_replicas(model: type[Any], name: str, status: dict[str, Any], expected: tuple[int, int, int]) -> None:
    world = both()
    change(world, model, name, status=status)
    assert counts(world) == expected


@pytest.mark.parametrize(("model", "name"), [(PodClique, "chat-0-router"), (PodCliqueScalingGroup, "chat-0-g")])
@pytest.mark.parametrize(
    "how", [deleting, lambda world, model, name: world.remove(model, Key("serving", name))], ids=["terminating", "gone"]
)
def test_a_replica_that_lacks_a_part_is_not_available(model: type[Any], name: str, how: Any) -> None:
    world = both()
    how(world, model, name)
    assert counts(world) == (1, 0, 0)


def test_children_without_status_are_not_available() -> None:
    assert counts(settled(podcliqueset(clique("w"), replicas=2))) == (2, 0, 0)


def test_a_set_with_scaling_groups_only_is_available_with_them() -> None:
    assert counts(running(podcliqueset(clique("w"), podCliqueScalingGroups=[GROUP]))) == (1, 1, 1)


def test_parts_that_nobody_asked_for_do_not_count() -> None:
    world = both()
    extra = named(world, PodCliqueScalingGroup, "chat-0-g")
    meta = {k: v for k, v in extra["metadata"].items() if k != "uid"}
    world.put({**extra, "metadata": {**meta, "name": "chat-0-h"}, "status": {}})
    assert counts(world) == (1, 1, 1)


def test_the_generation_hash_stays_what_it_was_first() -> None:
    world = both()
    change(world, PodCliqueSet, "chat", status={"currentGenerationHash": "first"})
    assert status_in(planned(world))["currentGenerationHash"] == "first"
