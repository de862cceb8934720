"""Node rules and pod requests."""

from typing import Any

import msgspec
import pytest

from api.core import LabelSelector, Node, Pod
from scheduler.eligibility import Cause, exclusion, facts_of, rules_of, selects
from scheduler.requests import MOST, node_capacity, pod_request, read_capacity, read_request

NOT_READY = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
GPU_TAINT = {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}


def _term(key: str, operator: str, *values: str, kind: str = "matchExpressions") -> dict[str, Any]:
    terms = [{kind: [{"key": key, "operator": operator, "values": values}]}]
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}}


def _tolerate(**toleration: str) -> dict[str, Any]:
    return {"tolerations": [toleration]}


@pytest.mark.parametrize(
    ("pod", "node", "cause"),
    [
        ({}, {}, Cause.NONE),
        ({}, {"status": NOT_READY}, Cause.NOT_READY),
        (_tolerate(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute"), {"status": NOT_READY}, Cause.NOT_READY),
        (_tolerate(operator="Exists"), {"status": NOT_READY}, Cause.NONE),
        ({}, {"spec": {"unschedulable": True}}, Cause.CORDONED),
        (_tolerate(key="node.kubernetes.io/unschedulable", operator="Exists"), {"spec": {"unschedulable": True}}, Cause.NONE),
        ({}, {"spec": GPU_TAINT}, Cause.TAINT),
        ({}, {"spec": {"taints": [{"key": "gpu", "effect": "PreferNoSchedule"}]}}, Cause.NONE),
        ({}, {"spec": {"taints": [{"key": "gpu", "effect": "NoExecute"}]}}, Cause.TAINT),
        ({}, {"spec": {"taints": [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]}}, Cause.NOT_READY),
        (_tolerate(key="gpu", value="yes"), {"spec": GPU_TAINT}, Cause.NONE),
        (_tolerate(key="gpu", value="no"), {"spec": GPU_TAINT}, Cause.TAINT),
        (_tolerate(key="gpu", operator="Exists", effect="NoExecute"), {"spec": GPU_TAINT}, Cause.TAINT),
        ({"nodeSelector": {"kind": "a"}}, {}, Cause.NONE),
        ({"nodeSelector": {"kind": "b"}}, {}, Cause.SELECTOR),
        (_term("kind", "In", "a", "b"), {}, Cause.NONE),
        (_term("kind", "NotIn", "a"), {}, Cause.AFFINITY),
        (_term("other", "NotIn", "a"), {}, Cause.NONE),
        (_term("kind", "Exists"), {}, Cause.NONE),
        (_term("kind", "DoesNotExist"), {}, Cause.AFFINITY),
        (_term("size", "Gt", "4"), {}, Cause.NONE),
        (_term("size", "Lt", "5"), {}, Cause.AFFINITY),
        (_term("kind", "Gt", "4"), {}, Cause.AFFINITY),
        (_term("kind", "Near", "a"), {}, Cause.AFFINITY),
        (_term("metadata.name", "In", "n", kind="matchFields"), {}, Cause.NONE),
        (_term("metadata.name", "In", "m", kind="matchFields"), {}, Cause.AFFINITY),
        (
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}},
            {},
            Cause.AFFINITY,
        ),
    ],
)
def test_exclusion(pod: dict[str, Any], node: dict[str, Any], cause: Cause) -> None:
    facts = facts_of(msgspec.convert({"metadata": {"name": "n", "labels": {"kind": "a", "size": "5"}}, **node}, Node))
    assert exclusion(rules_of(msgspec.convert({"spec": pod}, Pod)), facts) is cause


def test_label_selectors() -> None:
    assert selects(LabelSelector(), {"a": "1"})
    assert not selects(LabelSelector(match_labels={"a": "2"}), {"a": "1"})
    selector = msgspec.convert({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, LabelSelector)
    assert selects(selector, {"a": "1"})
    assert not selects(selector, {})


def _container(restart: str = "", /, **requests: Any) -> dict[str, Any]:
    return {"restartPolicy": restart, "resources": {"requests": requests}}


@pytest.mark.parametrize(
    ("spec", "request_"),
    [
        ({"containers": [_container(cpu="100m", memory="1Ki"), _container(cpu=1)]}, {"cpu": 1100, "memory": 1024}),
        ({"containers": [_container(cpu=1)], "initContainers": [_container(cpu=3)]}, {"cpu": 3000}),
        ({"containers": [_container(cpu=1)], "initContainers": [_container("Always", cpu=1), _container(cpu=1)]}, {"cpu": 2000}),
        ({"containers": [_container(cpu=1)], "initContainers": [_container("Always", cpu=1), _container(cpu=3)]}, {"cpu": 4000}),
        ({"containers": [_container(cpu=1)], "initContainers": [_container(cpu=3), _container("Always", cpu=1)]}, {"cpu": 3000}),
        ({"containers": [_container(cpu=1)], "overhead": {"cpu": "250m", "memory": 5}}, {"cpu": 1250, "memory": 5}),
        ({"containers": [_container(cpu=1, **{"a/b": 2})], "resources": {"requests": {"cpu": 5}}}, {"cpu": 5000, "a/b": 2}),
        ({"containers": [{"resources": {"limits": {"a/b": 2}}}]}, {"a/b": 2}),
        ({"containers": [_container(cpu="0")]}, {}),
    ],
)
def test_pod_request(spec: dict[str, Any], request_: dict[str, int]) -> None:
    assert dict(pod_request(msgspec.convert({"spec": spec}, Pod))) == {**request_, "pods": 1}


def test_node_capacity_rounds_down() -> None:
    node = msgspec.convert({"status": {"allocatable": {"cpu": "3900m", "memory": "1500m", "pods": "110"}}}, Node)
    assert node_capacity(node) == {"cpu": 3900, "memory": 1, "pods": 110}


def test_absurd_amounts_are_bounded_and_never_fit() -> None:
    node = msgspec.convert({"status": {"allocatable": {"cpu": "1E", "memory": "-1", "pods": "110"}}}, Node)
    assert node_capacity(node) == {"cpu": MOST, "memory": 0, "pods": 110}
    pod = msgspec.convert({"spec": {"containers": [_container(cpu="1E"), _container(cpu="1E", memory="8Ei")]}}, Pod)
    assert dict(pod_request(pod)) == {"cpu": MOST + 1, "memory": MOST + 1, "pods": 1}


def test_what_is_no_quantity_counts_as_nothing_and_is_named() -> None:
    node = msgspec.convert({"status": {"allocatable": {"cpu": "two", "pods": "110"}}}, Node)
    assert read_capacity(node)[0] == {"pods": 110}
    assert read_capacity(node)[1].startswith("cpu: 'two' is not a quantity")
    spec = {"containers": [_container(cpu=1)], "overhead": {"memory": "1GB"}}
    request, problem = read_request(msgspec.convert({"spec": spec}, Pod))
    assert dict(request) == {"cpu": 1000, "pods": 1}
    assert problem.startswith("memory: '1GB' is not a quantity")
