"""Behaviour of built-in kinds that single answers do not show."""

import base64
from typing import Any

import pytest

from sim.apiserver.builtin.amounts import canonical
from sim.apiserver.builtin.config import token_secret_data
from sim.apiserver.builtin.pod_defaults import pull_policy
from sim.apiserver.builtin.registry import builtin_resources
from sim.apiserver.builtin.services import SERVICE_RANGE
from sim.apiserver.resources import Strategy
from sim.apiserver.status import StatusError
from tests.unit.sim.kindworld import RESOURCES, KindWorld

POLICY = "policy"
SCHEDULING = "scheduling.k8s.io"


def pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {"containers": [{"name": "c", "image": "x:1"}], **spec}}


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1000M", "1G"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Gi", "512Mi"),
        ("512", "512"),
        ("1e9", "1e9"),
        ("1.5e3", "1500"),
        ("0", "0"),
        (2, "2"),
        ("100u", "100u"),
    ],
)
def test_quantities_have_one_printed_form(given: str | int, printed: str) -> None:
    assert canonical(given) == printed


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("x", "Always"),
        ("x:latest", "Always"),
        ("reg.io:5000/a/b", "Always"),
        ("x:1.0", "IfNotPresent"),
        ("reg.io:5000/a/b:v1", "IfNotPresent"),
        ("x@sha256:" + "a" * 64, "IfNotPresent"),
        ("x:latest@sha256:" + "a" * 64, "Always"),
        ("", "IfNotPresent"),
        ("UPPER/Case", "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_every_resource_is_named_once_and_has_its_storage_version() -> None:
    resources = builtin_resources()
    keys = [(r.group, r.plural) for r in resources]
    assert len(keys) == len(set(keys)) >= 60
    for resource in resources:
        assert resource.version(resource.storage) is not None
        assert resource.singular == resource.kind.lower()
        assert all(name in resource.subresources for name in resource.actions)
    assert {r.plural for r in resources if r.review} == {
        "selfsubjectaccessreviews",
        "subjectaccessreviews",
        "localsubjectaccessreviews",
        "selfsubjectrulesreviews",
        "tokenreviews",
        "selfsubjectreviews",
    }


def test_a_given_strategy_replaces_ours() -> None:
    mine = Strategy()
    resources = builtin_resources({("apiextensions.k8s.io", "customresourcedefinitions"): mine})
    assert [r.kind for r in resources if r.strategy is mine] == ["CustomResourceDefinition"]


@pytest.mark.parametrize(
    ("spec", "phase", "wanted", "seconds"),
    [
        ({}, "Pending", None, 0),
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 7}, "Running", None, 7),
        ({"nodeName": "n"}, "Running", 5, 5),
        ({"nodeName": "n"}, "Running", 0, 0),
        ({"nodeName": "n"}, "Running", -5, 1),
        ({"nodeName": "n"}, "Succeeded", None, 0),
        ({"nodeName": "n"}, "Failed", 9, 0),
    ],
)
def test_grace_of_pods(spec: dict[str, Any], phase: str, wanted: int | None, seconds: int) -> None:
    world = KindWorld()
    obj = world.create("pods", pod("a", **spec))
    obj = {**obj, "status": {**obj["status"], "phase": phase}}
    assert RESOURCES["", "pods"].strategy.grace_s(world.ctx, obj, wanted) == seconds


def test_a_default_priority_class_counts_where_none_is_named() -> None:
    world = KindWorld()
    for name, value in (("b", 7), ("a", 9)):
        world.create("priorityclasses", {"metadata": {"name": name}, "value": value, "globalDefault": True}, SCHEDULING)
    spec = world.create("pods", pod("p"))["spec"]
    assert (spec["priorityClassName"], spec["priority"], spec["preemptionPolicy"]) == ("b", 7, "PreemptLowerPriority")


def test_fields_that_select_pods() -> None:
    world = KindWorld()
    world.create("pods", pod("p", nodeName="n", hostNetwork=True, serviceAccountName="s"))
    world.patch("pods", "p", {"status": {"phase": "Running", "podIP": "10.1.2.3"}}, "status")
    obj = world.get("", "pods", "test", "p")
    assert obj is not None
    assert RESOURCES["", "pods"].strategy.selectable_fields(obj) == {
        "spec.nodeName": "n",
        "spec.restartPolicy": "Always",
        "spec.schedulerName": "default-scheduler",
        "spec.serviceAccountName": "s",
        "spec.hostNetwork": "true",
        "status.phase": "Running",
        "status.podIP": "10.1.2.3",
        "status.nominatedNodeName": "",
    }


def test_addresses_of_services_are_unique_and_the_same_for_the_same_seed() -> None:
    def allotted() -> list[str]:
        world = KindWorld()
        services = [world.create("services", {"metadata": {"name": f"s{i}"}, "spec": {"ports": [{"port": 80}]}}) for i in range(50)]
        return [s["spec"]["clusterIP"] for s in services]

    first = allotted()
    assert len(set(first)) == 50
    assert first == allotted()
    assert all(ip.startswith("10.") for ip in first)
    assert SERVICE_RANGE.num_addresses == 2**20


def test_defaults_do_not_change_an_object_that_has_them() -> None:
    world = KindWorld()
    for plural, body, group in (
        ("pods", pod("p", volumes=[{"name": "v", "configMap": {"name": "x"}}]), ""),
        ("services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, ""),
        ("nodes", {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "8.0"}}}, ""),
        ("leases", {"metadata": {"name": "l"}}, "coordination.k8s.io"),
    ):
        stored = world.create(plural, body, group)
        again = {**stored, "metadata": dict(stored["metadata"])}
        RESOURCES[group, plural].strategy.default(again)
        assert again == stored


def running(world: KindWorld, name: str) -> None:
    world.create("pods", pod(name, {"app": "x"}, nodeName="n"))
    world.patch("pods", name, {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, "status")


def test_evictions_use_up_a_budget() -> None:
    world = KindWorld()
    world.create("poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "x"}}}}, POLICY)
    for name in ("p", "q"):
        running(world, name)
    with pytest.raises(StatusError) as waiting:
        world.act("pods", "p", "eviction", {"metadata": {"name": "p"}})
    assert (waiting.value.code, waiting.value.retry_after_s) == (429, 10)
    status = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2}
    world.patch("poddisruptionbudgets", "b", {"status": status}, "status", POLICY)
    world.act("pods", "p", "eviction", {"metadata": {"name": "p"}})
    assert world.get("", "pods", "test", "p") is None
    with pytest.raises(StatusError) as refused:
        world.act("pods", "q", "eviction", {"metadata": {"name": "q"}})
    assert refused.value.details["causes"][0]["message"] == "The disruption budget b needs 1 healthy pods and has 2 currently"


def test_a_pod_that_is_not_ready_may_go_where_its_budget_is_met() -> None:
    world = KindWorld()
    world.create("poddisruptionbudgets", {"metadata": {"name": "b"}, "spec": {"selector": {}}}, POLICY)
    running(world, "p")
    world.patch("pods", "p", {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}, "status")
    world.patch("poddisruptionbudgets", "b", {"status": {"currentHealthy": 1, "desiredHealthy": 1}}, "status", POLICY)
    assert world.act("pods", "p", "eviction", {"metadata": {"name": "p"}}).others == ()


def test_a_namespace_is_held_until_it_is_finalized() -> None:
    world, strategy = KindWorld(), RESOURCES["", "namespaces"].strategy
    obj = world.create("namespaces", {"metadata": {"name": "n"}})
    assert strategy.is_held(obj)
    strategy.prepare_delete(world.ctx, terminating := dict(obj))
    assert terminating["status"] == {"phase": "Terminating"}
    assert not strategy.is_held(world.patch("namespaces", "n", {"spec": {"finalizers": None}}, "finalize"))
    with pytest.raises(StatusError, match="this namespace may not be deleted"):
        strategy.validate_delete(world.ctx, {"metadata": {"name": "kube-system"}})


def test_secrets_of_service_accounts_are_filled_in() -> None:
    world = KindWorld()
    secret = {"metadata": {"name": "t", "annotations": {"kubernetes.io/service-account.name": "a"}}}
    stored = world.create("secrets", {**secret, "type": "kubernetes.io/service-account-token"})
    assert token_secret_data(world.ctx, stored, "CA") is None
    world.create("serviceaccounts", {"metadata": {"name": "a"}})
    data = token_secret_data(world.ctx, stored, "CA")
    assert data is not None
    assert base64.b64decode(data["ca.crt"]) == b"CA"
    assert base64.b64decode(data["namespace"]) == b"test"
    assert base64.b64decode(data["token"])
    assert token_secret_data(world.ctx, {**stored, "data": data}, "CA") is None


def test_events_and_autoscalers_survive_a_round_trip_through_their_other_version() -> None:
    world = KindWorld()
    event = world.create("events", {"metadata": {"name": "e"}, "involvedObject": {"namespace": "test"}, "message": "m", "count": 2})
    strategy = RESOURCES["", "events"].strategy
    new = strategy.convert(event, "events.k8s.io/v1")
    assert (new["note"], new["deprecatedCount"], new["regarding"]) == ("m", 2, {"namespace": "test"})
    assert strategy.convert(new, "v1") == event
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "D", "name": "d"},
        "maxReplicas": 4,
        "metrics": [
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
            {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
        ],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}},
    }
    scaler = world.create("horizontalpodautoscalers", {"metadata": {"name": "h"}, "spec": spec}, "autoscaling")
    hpa = RESOURCES["autoscaling", "horizontalpodautoscalers"].strategy
    old = hpa.convert(scaler, "autoscaling/v1")
    assert old["spec"]["targetCPUUtilizationPercentage"] == 60
    assert hpa.convert(old, "autoscaling/v2")["spec"] == scaler["spec"]


def test_a_config_map_has_a_greatest_size() -> None:
    with pytest.raises(StatusError, match="may not be more than 1048576 bytes") as refused:
        KindWorld().create("configmaps", {"metadata": {"name": "big"}, "data": {"a": "x" * 1_100_000}})
    assert refused.value.details["causes"][0]["reason"] == "FieldValueTooLong"
