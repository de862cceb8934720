"""What a kubelet refuses to run."""

from typing import Any

import pytest

from sim.apiserver.resources import ObjectKey
from sim.kubelet.addresses import Addresses
from sim.kubelet.admission import requests_of, tolerates
from sim.kubelet.machines import Machine
from tests.unit.sim.kubeletworld import container, pod

G = 10**9


def asking(name: str = "main", **amounts: str) -> dict[str, Any]:
    named = {k.replace("gpu", "nvidia.com/gpu"): v for k, v in amounts.items()}
    return container(name, resources={"requests": named})


def machine(**fields: Any) -> Machine:
    amounts = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "8", "pods": "3"}
    out = Machine("n")
    out.set_node(
        {
            "metadata": {"name": "n", "uid": "u", "labels": {"zone": "a", "cores": "64"}},
            "spec": {"taints": fields.get("taints", [])},
            "status": {"allocatable": amounts},
        }
    )
    return out


def reason(on: Machine, wanted: dict[str, Any], name: str = "p") -> str:
    found = on.admit(ObjectKey("ns", name), wanted)
    return found.reason if found is not None else ""


@pytest.mark.parametrize(
    ("init", "main", "cpu"),
    [
        ((), (asking(cpu="1"), asking("b", cpu="500m")), 1500),
        ((asking("i", cpu="3"),), (asking(cpu="1"),), 3000),
        ((asking("i", cpu="3"), asking("j", cpu="2")), (asking(cpu="1"),), 3000),
        (({**asking("s", cpu="1"), "restartPolicy": "Always"}, asking("i", cpu="3")), (asking(cpu="1"),), 4000),
        (({**asking("s", cpu="1"), "restartPolicy": "Always"},), (asking(cpu="1"),), 2000),
        ((), (container(resources={"limits": {"cpu": "2"}}),), 2000),
        ((), (container(),), 0),
    ],
)
def test_what_a_pod_takes(init: tuple[Any, ...], main: tuple[Any, ...], cpu: int) -> None:
    assert requests_of(pod(init=init, main=main)).get("cpu", 0) == cpu * 10**6


def test_overhead_counts() -> None:
    assert requests_of(pod(main=(asking(cpu="1"),), overhead={"cpu": "250m"}))["cpu"] == 1250 * 10**6


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ({"cpu": "4"}, ""),
        ({"cpu": "4001m"}, "OutOfcpu"),
        ({"memory": "9Gi"}, "OutOfmemory"),
        ({"gpu": "9"}, "OutOfnvidia.com/gpu"),
        ({"example.com/absent": "1"}, "OutOfexample.com/absent"),
    ],
)
def test_a_node_gives_what_it_has(amounts: dict[str, str], expected: str) -> None:
    assert reason(machine(), pod(main=(asking(**amounts),))) == expected


def test_what_others_use_is_gone_until_they_are_over() -> None:
    node = machine()
    assert reason(node, pod(main=(asking(cpu="3"),)), "a") == ""
    refusal = node.admit(ObjectKey("ns", "b"), pod(main=(asking(cpu="2"),)))
    assert refusal is not None
    assert refusal.message == "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000"
    node.release(ObjectKey("ns", "a"))
    assert reason(node, pod(main=(asking(cpu="2"),)), "b") == ""


def test_the_number_of_pods_is_limited() -> None:
    node = machine()
    assert [reason(node, pod(), f"p{i}") for i in range(4)] == ["", "", "", "OutOfpods"]


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"nodeSelector": {"missing": ""}}, False),
        ({"term": [("zone", "In", ["a", "b"])]}, True),
        ({"term": [("zone", "NotIn", ["a"])]}, False),
        ({"term": [("zone", "Exists", None)]}, True),
        ({"term": [("zone", "DoesNotExist", None)]}, False),
        ({"term": [("cores", "Gt", ["63"]), ("cores", "Lt", ["65"])]}, True),
        ({"term": [("cores", "Gt", ["64"])]}, False),
        ({"term": [("zone", "Gt", ["1"])]}, False),
        ({"term": []}, False),
    ],
)
def test_where_a_pod_may_be(fields: dict[str, Any], fits: bool) -> None:
    if "term" in fields:
        expressions = [{"key": k, "operator": o, **({"values": v} if v else {})} for k, o, v in fields.pop("term")]
        required = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
        fields["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert reason(machine(), pod(**fields)) == ("" if fits else "NodeAffinity")


def test_taints_that_evict_refuse_too() -> None:
    taint = {"key": "broken", "value": "yes", "effect": "NoExecute"}
    assert reason(machine(taints=[taint]), pod()) == "TaintToleration"
    assert reason(machine(taints=[taint]), pod(tolerations=[{"key": "broken", "operator": "Exists"}])) == ""
    assert reason(machine(taints=[{**taint, "effect": "NoSchedule"}]), pod()) == ""


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "x", "operator": "Exists"}, False),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "w"}, False),
        ({"key": "k"}, False),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, True),
        ({"key": "k", "value": "v", "effect": "NoSchedule"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], expected: bool) -> None:
    assert tolerates(toleration, {"key": "k", "value": "v", "effect": "NoExecute"}) is expected


def test_addresses_are_unique_while_in_use_and_come_in_order() -> None:
    addresses = Addresses()
    taken = [addresses.take() for _ in range(1000)]
    assert len(set(taken)) == 1000
    assert taken[:2] == ["10.0.1.1", "10.0.1.2"]
    assert not [a for a in taken if a.endswith((".0", ".255"))]
    addresses.release(taken[0])
    assert addresses.take() not in taken
    assert [Addresses().take() for _ in range(3)] == ["10.0.1.1"] * 3
