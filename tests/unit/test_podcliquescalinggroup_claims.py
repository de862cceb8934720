"""ResourceClaims that the pods of one scaling group share."""

from datetime import UTC, datetime
from typing import Any

from api import labels
from api.core import ResourceClaim
from api.grove import PodClique, PodCliqueScalingGroup
from api.plan import ApplyStatus, Create, Key, Plan
from api.reasons import Reason
from cli.world import World
from controllers.podcliquescalinggroup.observe import observe
from controllers.podcliquescalinggroup.plan import plan
from tests.unit.worlds import (
    change,
    clique,
    converge,
    created,
    deleted,
    deleting,
    named,
    names,
    podcliqueset,
    settled,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GROUP: dict[str, Any] = {"name": "g", "cliqueNames": ["lead", "work"], "minAvailable": 1}
NAME = "chat-0-g"


def planned(world: World, now: datetime = NOW) -> Plan:
    seen = observe(world, Key("serving", NAME), now)
    assert seen is not None
    return plan(seen)


def rescale(world: World, replicas: int) -> None:
    change(world, PodCliqueScalingGroup, NAME, spec={"replicas": replicas})


def shared(*sharing: dict[str, Any], replicas: int = 2) -> dict[str, Any]:
    templates = [{"name": n, "templateSpec": {"spec": {"devices": {"requests": [{"name": n}]}}}} for n in ("gpu", "nic")]
    group = {**GROUP, "replicas": replicas, "resourceSharing": list(sharing)}
    return podcliqueset(clique("lead"), clique("work"), podCliqueScalingGroups=[group], resourceClaimTemplates=templates)


ALL, EACH = {"name": "gpu", "scope": "AllReplicas"}, {"name": "nic", "scope": "PerReplica"}


def test_claims_of_a_group_and_of_its_replicas() -> None:
    world = settled(shared(ALL, EACH))
    assert names(world, ResourceClaim) == ["chat-0-g-0-nic", "chat-0-g-1-nic", "chat-0-g-all-gpu"]
    found = named(world, ResourceClaim, "chat-0-g-1-nic")
    assert found["metadata"]["labels"] == {
        **labels.default_labels("chat"),
        labels.COMPONENT: "resource-claim",
        labels.PCSG: NAME,
        labels.PCSG_REPLICA_INDEX: "1",
    }
    assert found["spec"] == {"devices": {"requests": [{"name": "nic"}]}}
    assert labels.PCSG_REPLICA_INDEX not in named(world, ResourceClaim, "chat-0-g-all-gpu")["metadata"]["labels"]


def test_claims_come_before_the_members_that_use_them() -> None:
    world = settled(shared(ALL, EACH))
    rescale(world, 3)
    kinds = [{op.kind.kind for op in stage if isinstance(op, Create)} for stage in planned(world).stages]
    assert [k for k in kinds if k] == [{"ResourceClaim"}, {"PodClique"}]


def test_claims_go_with_their_replicas() -> None:
    world = converge(settled(shared(ALL, EACH, replicas=3)))
    rescale(world, 1)
    assert deleted(planned(world), ResourceClaim) == ["chat-0-g-1-nic", "chat-0-g-2-nic"]
    for name in ("chat-0-g-1-nic", "chat-0-g-2-nic"):
        deleting(world, ResourceClaim, name)
    assert deleted(planned(world), ResourceClaim) == []


def test_members_wait_for_a_missing_claim_template() -> None:
    world = settled(shared({"name": "nvme", "scope": "AllReplicas"}))
    p = planned(world)
    assert created(p, PodClique) == []
    missing = "ResourceClaimTemplate serving/nvme does not exist: create it, or correct resourceSharing"
    assert [(w.reason, w.message) for w in p.why] == [(Reason.CLAIM_UNALLOCATABLE, missing)]
    assert [e["description"] for op in p.ops if isinstance(op, ApplyStatus) for e in op.status["lastErrors"]] == [missing]
