"""What the pods of a set need besides themselves: accounts, services, autoscalers."""

from typing import Any

import pytest

from api import labels
from api.core import HorizontalPodAutoscaler, Role, RoleBinding, Secret, Service, ServiceAccount
from api.grove import PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.plan import Apply, Key, Plan
from tests.unit.setworld import GROUP, planned, template
from tests.unit.worlds import (
    change,
    chosen,
    clique,
    converge,
    created,
    deleted,
    named,
    names,
    podcliqueset,
    settled,
)

PROJECTED = OperatorConfiguration.model_validate({"grovekeeper": {"token": "projected"}})
INFRASTRUCTURE = (ServiceAccount, Role, RoleBinding, Secret, Service)


@pytest.mark.parametrize("model", INFRASTRUCTURE, ids=lambda m: m.__name__)
def test_infrastructure_that_was_deleted_is_made_again(model: type[Any]) -> None:
    world = converge(settled(podcliqueset(clique("w"))))
    (name,) = names(world, model)
    world.remove(model, Key("serving", name))
    assert created(planned(world), model) == [name]


@pytest.mark.parametrize("model", INFRASTRUCTURE, ids=lambda m: m.__name__)
def test_what_another_life_of_the_set_owns_is_not_taken_for_ours(model: type[Any]) -> None:
    world = converge(settled(podcliqueset(clique("w"))))
    (name,) = names(world, model)
    (owner,) = named(world, model, name)["metadata"]["ownerReferences"]
    change(world, model, name, metadata={"ownerReferences": [{**owner, "uid": "an earlier life"}]})
    assert created(planned(world), model) == [name]


def test_the_waiter_may_read_pods_and_nothing_else() -> None:
    world = settled(podcliqueset(clique("w")))
    rules = named(world, Role, "grove.io:pcs:chat")["rules"]
    assert rules == [{"apiGroups": [""], "resources": ["pods", "pods/status"], "verbs": ["get", "list", "watch"]}]
    assert named(world, Role, "grove.io:pcs:chat")["metadata"]["labels"][labels.NAME] == "grove.io-pcs-chat"
    (subject,) = named(world, RoleBinding, "grove.io:pcs:chat")["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": "chat", "namespace": "serving"}


def test_with_projected_tokens_there_is_no_secret_and_accounts_of_the_user_get_the_role() -> None:
    spec = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "trainer"}
    world = settled(podcliqueset(clique("w", podSpec=spec), clique("v")), config=PROJECTED)
    assert names(world, Secret) == []
    assert [s["name"] for s in named(world, RoleBinding, "grove.io:pcs:chat")["subjects"]] == ["chat", "trainer"]


def test_a_service_follows_whether_unready_pods_are_published() -> None:
    world = converge(settled(podcliqueset(clique("w"), replicas=2)))
    assert all(s["spec"]["publishNotReadyAddresses"] for s in world.of_kind(Service.KIND))
    template(world, headlessServiceConfig={"publishNotReadyAddresses": False})
    applies = chosen(planned(world), Apply)
    assert [(op.manifest["metadata"]["name"], op.manifest["spec"]["publishNotReadyAddresses"]) for op in applies] == [
        ("chat-0", False),
        ("chat-1", False),
    ]
    assert all(op.uid for op in applies)
    converge(world)
    assert not any(s["spec"]["publishNotReadyAddresses"] for s in world.of_kind(Service.KIND))


def test_a_new_service_that_does_not_publish_says_nothing_about_it() -> None:
    world = settled(podcliqueset(clique("w"), headlessServiceConfig={"publishNotReadyAddresses": False}))
    assert "publishNotReadyAddresses" not in named(world, Service, "chat-0")["spec"]


def test_services_of_replicas_that_were_scaled_in_are_deleted() -> None:
    world = converge(settled(podcliqueset(clique("w"), replicas=3)))
    change(world, PodCliqueSet, "chat", spec={"replicas": 1})
    assert deleted(planned(world), Service) == ["chat-1", "chat-2"]


SCALED: dict[str, Any] = {"maxReplicas": 5, "metrics": [{"type": "Resource", "resource": {"name": "cpu"}}]}


def test_autoscalers_belong_to_standalone_cliques_and_scaling_groups() -> None:
    cliques = (clique("router", 2, autoScalingConfig=SCALED), clique("w"))
    world = settled(podcliqueset(*cliques, replicas=2, podCliqueScalingGroups=[{**GROUP, "scaleConfig": {"maxReplicas": 9}}]))
    found = {m["metadata"]["name"]: m["spec"] for m in world.of_kind(HorizontalPodAutoscaler.KIND)}
    assert sorted(found) == ["chat-0-g", "chat-0-router", "chat-1-g", "chat-1-router"]
    target = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": "chat-0-router"}
    assert found["chat-0-router"] == {"scaleTargetRef": target, "minReplicas": 2, **SCALED}
    target = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueScalingGroup", "name": "chat-1-g"}
    assert found["chat-1-g"] == {"scaleTargetRef": target, "minReplicas": 3, "maxReplicas": 9}


@pytest.mark.parametrize(
    "changes",
    [{"maxReplicas": 7}, {"minReplicas": 1}, {"metrics": [{"type": "Resource", "resource": {"name": "memory"}}]}],
    ids=["upper bound", "lower bound", "metrics"],
)
def test_an_autoscaler_follows_its_configuration(changes: dict[str, Any]) -> None:
    world = converge(settled(podcliqueset(clique("w", 2, autoScalingConfig={**SCALED, "minReplicas": 2}))))
    template(world, cliques=[clique("w", 2, minAvailable=1, autoScalingConfig={**SCALED, "minReplicas": 2, **changes})])
    (op,) = [op for op in chosen(planned(world), Apply) if op.kind == HorizontalPodAutoscaler.KIND]
    assert op.uid
    assert op.manifest["spec"].items() >= changes.items()


def test_defaults_that_the_server_adds_to_metrics_are_no_difference() -> None:
    world = converge(settled(podcliqueset(clique("w", 2, autoScalingConfig=SCALED))))
    (metric,) = SCALED["metrics"]
    change(world, HorizontalPodAutoscaler, "chat-0-w", spec={"metrics": [{**metric, "selector": {}}]})
    assert planned(world) == Plan()


def test_an_autoscaler_goes_with_its_configuration() -> None:
    world = converge(settled(podcliqueset(clique("w", 2, autoScalingConfig=SCALED))))
    template(world, cliques=[clique("w", 2)])
    assert deleted(planned(world), HorizontalPodAutoscaler) == ["chat-0-w"]
