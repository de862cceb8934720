"""Plans of one PodCliqueSet: order, refusals, the token, invalid sets."""

from datetime import timedelta
from typing import Any

import pytest

from api import labels
from api.core import ResourceClaim, Role, RoleBinding, Secret, Service, ServiceAccount
from api.grove import PodClique, PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.plan import Apply, ApplyStatus, Create, Delete, Emit, Key, Outcome, Plan, SetFinalizers
from api.podgang import PodGang
from api.reasons import Reason
from cli.world import World
from controllers.podcliqueset.plan import failed
from tests.unit.setworld import GROUP, NOW, events, fresh, observed, planned, status_of, template
from tests.unit.worlds import (
    change,
    chosen,
    clique,
    condition_in,
    converge,
    created,
    deleted,
    deleting,
    named,
    names,
    podcliqueset,
    running,
    settled,
    status_in,
)

PROJECTED = OperatorConfiguration.model_validate({"grovekeeper": {"token": "projected"}})


# first pass


def test_the_finalizer_comes_before_everything_else() -> None:
    first, *_ = planned(fresh(podcliqueset(clique("w")))).stages
    (op,) = first
    assert isinstance(op, SetFinalizers)
    assert op.finalizers == (labels.FINALIZER_PODCLIQUESET,)
    assert op.ref.uid
    assert op.resource_version


def test_finalizers_of_others_are_kept() -> None:
    world = fresh(podcliqueset(clique("w")))
    change(world, PodCliqueSet, "chat", metadata={"finalizers": ["example.com/backup"]})
    (op,) = chosen(planned(world), SetFinalizers)
    assert op.finalizers == ("example.com/backup", labels.FINALIZER_PODCLIQUESET)


def test_things_are_made_in_the_order_in_which_they_need_each_other() -> None:
    stages = planned(fresh(podcliqueset(clique("router"), clique("w"), podCliqueScalingGroups=[GROUP]))).stages
    kinds = [{op.kind.kind for op in stage if isinstance(op, Create)} for stage in stages]
    assert [k for k in kinds if k] == [
        {"ServiceAccount", "Role", "RoleBinding", "Secret", "Service"},
        {"PodClique"},
        {"PodCliqueScalingGroup", "PodGang"},
    ]


def test_every_created_object_is_controlled_by_the_set_and_managed() -> None:
    world = fresh(podcliqueset(clique("w")))
    uid = named(world, PodCliqueSet, "chat")["metadata"]["uid"]
    for op in chosen(planned(world), Create):
        (owner,) = op.manifest["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (uid, True), op.kind
        assert op.manifest["metadata"]["labels"].items() >= labels.default_labels("chat").items(), op.kind


def test_a_settled_set_needs_nothing() -> None:
    world = running(podcliqueset(clique("router"), clique("w"), replicas=2, podCliqueScalingGroups=[GROUP]))
    assert planned(world, NOW + timedelta(hours=1)) == Plan()


# operations that the server refuses for good


REFUSALS = [
    (ServiceAccount, "ERR_SYNC_SERVICEACCOUNT"),
    (Role, "ERR_SYNC_ROLE"),
    (RoleBinding, "ERR_SYNC_ROLEBINDING"),
    (Secret, "ERR_CREATE_SECRET"),
    (Service, "ERR_SYNC_PODCLIQUESET_SERVICE"),
    (PodClique, "ERR_CREATE_OR_UPDATE_PODCLIQUE"),
    (PodGang, "ERR_CREATE_PODGANG"),
]


@pytest.mark.parametrize(("model", "code"), REFUSALS, ids=lambda v: v if isinstance(v, str) else v.__name__)
def test_a_name_that_belongs_to_somebody_else_is_told_once(model: type[Any], code: str) -> None:
    world = fresh(podcliqueset(clique("w")))
    change(world, PodCliqueSet, "chat", metadata={"finalizers": [labels.FINALIZER_PODCLIQUESET]})
    op = next(op for op in chosen(planned(world), Create) if op.kind == model.KIND)
    outcome = Outcome("blocked", 60.0, "Conflict: the name belongs to somebody else", op)
    told = failed(observed(world), outcome)
    (error,) = status_in(told)["lastErrors"]
    assert error == {"code": code, "description": outcome.error, "observedAt": "2026-01-01T00:00:00Z"}
    (event,) = chosen(told, Emit)
    assert (event.reason, event.message, event.type) == (f"{model.__name__}CreateOrUpdateFailed", outcome.error, "Warning")
    change(world, PodCliqueSet, "chat", status=status_in(told))
    assert failed(observed(world, NOW + timedelta(minutes=5)), outcome) == Plan()


def test_another_refusal_is_told_again() -> None:
    world = fresh(podcliqueset(clique("w")))
    op = next(op for op in chosen(planned(world), Create) if op.kind == Role.KIND)
    change(world, PodCliqueSet, "chat", status=status_in(failed(observed(world), Outcome("blocked", 60.0, "first", op))))
    later = failed(observed(world, NOW + timedelta(minutes=5)), Outcome("blocked", 60.0, "second", op))
    (error,) = status_in(later)["lastErrors"]
    assert (error["description"], error["observedAt"]) == ("second", "2026-01-01T00:05:00Z")
    assert events(later) == ["RoleCreateOrUpdateFailed"]


def test_a_pass_that_succeeds_clears_the_error() -> None:
    world = converge(settled(podcliqueset(clique("w"))))
    error = {"code": "ERR_SYNC_ROLE", "description": "x", "observedAt": "2026-01-01T00:00:00Z"}
    change(world, PodCliqueSet, "chat", status={"lastErrors": [error]})
    assert "lastErrors" not in status_in(planned(world))


@pytest.mark.parametrize("outcome", [Outcome("blocked", 60.0, "x"), None], ids=["no operation", "deleted set"])
def test_there_is_nothing_to_tell_without_operation_or_about_a_deleted_set(outcome: Outcome | None) -> None:
    world = fresh(podcliqueset(clique("w")))
    op = chosen(planned(world), Create)[0]
    if outcome is None:
        deleting(world, PodCliqueSet, "chat")
    assert failed(observed(world), outcome or Outcome("blocked", 60.0, "x", op)) == Plan()


# the token of the startup waiter


IN_ORDER: dict[str, Any] = {"cliqueStartupType": "CliqueStartupTypeInOrder"}


@pytest.mark.parametrize(
    ("cliques", "startup", "config", "waits"),
    [
        ((clique("a"), clique("b")), IN_ORDER, None, True),
        ((clique("a"), clique("b", startsAfter=["a"])), {"cliqueStartupType": "CliqueStartupTypeExplicit"}, None, True),
        ((clique("a"), clique("b")), {"cliqueStartupType": "CliqueStartupTypeExplicit"}, None, False),
        ((clique("a"),), IN_ORDER, None, False),
        ((clique("a"), clique("b")), {}, None, False),
        ((clique("a"), clique("b")), IN_ORDER, PROJECTED, False),
    ],
    ids=["in order", "explicit", "explicit without parents", "a single clique", "any order", "projected token"],
)
def test_cliques_wait_for_the_token_only_where_a_waiter_will_use_it(
    cliques: tuple[dict[str, Any], ...], startup: dict[str, Any], config: OperatorConfiguration | None, waits: bool
) -> None:
    p = planned(fresh(podcliqueset(*cliques, **startup), config=config))
    assert bool(created(p, PodClique)) is not waits
    assert [w.reason for w in p.why] == ([Reason.WAITING_FOR_STARTUP_ORDER] if waits else [])
    assert created(p, Service) == ["chat-0"]
    assert ("observedGeneration" in status_in(p)) is not waits


def test_a_filled_token_lets_the_cliques_go() -> None:
    world = fresh(podcliqueset(clique("a"), clique("b"), **IN_ORDER))
    (secret,) = [op.manifest for op in chosen(planned(world), Create) if op.kind == Secret.KIND]
    world.put(secret)
    assert created(planned(world), PodClique) == ["chat-0-a", "chat-0-b"]


def test_missing_claim_templates_hold_the_cliques_back() -> None:
    sharing = [{"name": "gpus", "scope": "AllReplicas"}, {"name": "nics", "scope": "PerReplica"}]
    world = fresh(podcliqueset(clique("w"), resourceSharing=sharing))
    p = planned(world)
    assert created(p, PodClique) == []
    missing = "ResourceClaimTemplate serving/{} does not exist: create it, or correct resourceSharing"
    assert [w.message for w in p.why] == [missing.format(n) for n in ("gpus", "nics")]
    assert [e["description"] for op in p.ops if isinstance(op, ApplyStatus) for e in op.status["lastErrors"]] == [missing.format("gpus")]
    for name in ("gpus", "nics"):
        meta = {"name": name, "namespace": "serving"}
        world.put({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": meta, "spec": {"spec": {"x": name}}})
    p = planned(world)
    assert created(p, ResourceClaim) == ["chat-all-gpus", "chat-0-nics"]
    assert created(p, PodClique) == ["chat-0-w"]
    world.settle()
    change(world, PodCliqueSet, "chat", spec={"replicas": 2})
    assert created(planned(world), ResourceClaim) == ["chat-1-nics"]
    world.settle()
    change(world, PodCliqueSet, "chat", spec={"replicas": 1})
    assert deleted(planned(world), ResourceClaim) == ["chat-1-nics"]


# sets that are not valid


def broken(world: World, minimum: int = 5) -> None:
    template(world, cliques=[clique("w", 2, minAvailable=minimum)])


def test_an_invalid_set_gets_nothing_and_is_told_what_is_wrong() -> None:
    p = planned(fresh(podcliqueset(clique("w", 2, minAvailable=5))))
    assert not [op for op in p.ops if isinstance(op, Create | Apply | Delete | SetFinalizers)]
    condition = condition_in(p, "InvalidSpec")
    assert (condition["status"], condition["reason"]) == ("True", "InvalidSpec")
    assert "spec.template.cliques[0].spec.minAvailable" in condition["message"]
    (error,) = status_in(p)["lastErrors"]
    assert (error["code"], error["description"]) == ("ERR_VALIDATE_CREATE_PODCLIQUESET", condition["message"])
    assert "currentGenerationHash" not in status_in(p)
    assert [(e.reason, e.type) for e in chosen(p, Emit)] == [("InvalidSpec", "Warning")]
    assert [w.reason for w in p.why] == [Reason.INVALID_SPEC]


def test_an_invalid_set_is_announced_once_for_each_mistake() -> None:
    world = fresh(podcliqueset(clique("w", 2, minAvailable=5)))
    change(world, PodCliqueSet, "chat", status=status_in(planned(world)))
    assert planned(world, NOW + timedelta(hours=1)).ops == ()
    broken(world, minimum=6)
    assert events(planned(world)) == ["InvalidSpec"]


def test_a_mistake_that_begins_like_the_last_one_is_announced_too() -> None:
    world = fresh(podcliqueset(clique("w", 2, minAvailable=5)))
    status = status_in(planned(world))
    (condition,) = status["conditions"]
    change(world, PodCliqueSet, "chat", status={**status, "conditions": [{**condition, "message": condition["message"][:-1]}]})
    assert events(planned(world)) == ["InvalidSpec"]


def test_an_invalid_change_leaves_everything_that_runs_alone() -> None:
    world = running(podcliqueset(clique("w", 2)))
    before = status_of(world)
    broken(world)
    world.remove(Service, Key("serving", "chat-0"))
    p = planned(world)
    assert not [op for op in p.ops if isinstance(op, Create | Apply | Delete)]
    status = status_in(p)
    assert status["availableReplicas"] == 1
    assert status["observedGeneration"] == before["observedGeneration"]
    assert status["currentGenerationHash"] == before["currentGenerationHash"]


def test_a_repaired_set_comes_up_and_forgets_what_was_wrong() -> None:
    world = fresh(podcliqueset(clique("w", 2, minAvailable=5)))
    change(world, PodCliqueSet, "chat", status=status_in(planned(world)))
    template(world, cliques=[clique("w", 2, minAvailable=2)])
    converge(world)
    status = status_of(world)
    assert names(world, PodClique) == ["chat-0-w"]
    assert "conditions" not in status
    assert "lastErrors" not in status
    assert status["observedGeneration"] == 1


def test_a_changed_template_is_said_to_be_pending_once_and_keeps_the_generation_unobserved() -> None:
    world = settled(podcliqueset(clique("w")))
    (live,) = world.of_kind(PodCliqueSet.KIND)
    first = planned(world)
    (status,) = [op.status for op in first.ops if isinstance(op, ApplyStatus)]
    assert status["observedGeneration"] == 1
    changed = podcliqueset(clique("w", podSpec={"containers": [{"name": "engine", "image": "registry.local/engine:2"}]}))
    world.put({**live, "spec": changed["spec"], "status": {**status, "observedGeneration": 0}})
    p = planned(world)
    (told,) = [op.status for op in p.ops if isinstance(op, ApplyStatus)]
    assert [c["reason"] for c in told["conditions"] if c["type"] == "TemplateNotApplied"] == ["UpdateNotSupported"]
    assert told.get("observedGeneration", 0) == 0
    assert [op.reason for op in p.ops if isinstance(op, Emit)] == ["TemplateNotApplied"]
    assert not [op for op in p.ops if isinstance(op, (Create, Delete))]
    (now,) = world.of_kind(PodCliqueSet.KIND)
    world.put({**now, "status": told})
    assert not planned(world).ops
