"""Hashes of pod templates: what counts, what does not, and values that no version may change."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from api.grove import PodCliqueSet
from api.hashes import canonical, generation_hash, pod_template_hash, safe_encode, stable_hash
from tests.admission import clique, pcs

ROOT = Path(__file__).parents[2]


def hash_of(template: dict[str, Any], priority: str = "") -> str:
    return pod_template_hash(pcs(template).spec.template.cliques[0], priority)


BASE = clique("worker", labels={"team": "a"}, annotations={"note": "x"})


@pytest.mark.parametrize(
    ("data", "value"),
    [(b"", 14695981039346656037), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)],
)
def test_fnv_64a_vectors(data: bytes, value: int) -> None:
    assert stable_hash(data) == value


def test_safe_encoding() -> None:
    assert safe_encode("0123456789") == "456789bcdf"


def test_golden_values_never_change() -> None:
    subject = pcs(BASE, clique("router", pod={"priorityClassName": "ignored", "schedulerName": "kai-scheduler"}), priorityClassName="gold")
    first, second = subject.spec.template.cliques
    assert pod_template_hash(first, "gold") == "5d48876d4f48c66dfb8c"
    assert pod_template_hash(second, "gold") == "5d4d469ff97df67bf954"
    assert generation_hash(subject) == "5b647489c4b58f495f68"


def test_the_same_in_another_process_with_another_hash_seed() -> None:
    manifest = json.dumps(pcs(BASE).to_manifest())
    code = "import sys; from api.grove import PodCliqueSet; from api.hashes import generation_hash; "
    code += "print(generation_hash(PodCliqueSet.decode(sys.stdin.buffer.read())))"
    results = {
        subprocess.run(  # noqa: S603 - our own interpreter and code
            [sys.executable, "-c", code],
            input=manifest,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert results == {generation_hash(pcs(BASE))}


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(clique("worker", labels={"team": "b"}, annotations={"note": "x"}), id="a label"),
        pytest.param(clique("worker", labels={"team": "a"}, annotations={"note": "y"}), id="an annotation"),
        pytest.param({**BASE, **clique("worker", pod={"schedulerName": "x"})}, id="the pod spec"),
        pytest.param({**BASE, **clique("worker", pod={"volumes": [{"name": "v", "emptyDir": {}}]})}, id="a volume"),
    ],
)
def test_what_reaches_pods_changes_the_hash(changed: dict[str, Any]) -> None:
    assert hash_of(changed) != hash_of(BASE)


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({**BASE, "name": "other"}, id="the name"),
        pytest.param(
            {**BASE, **clique("worker", spec={"replicas": 7, "minAvailable": 3, "roleName": "r", "startsAfter": ["x"]})}, id="counts"
        ),
        pytest.param({**BASE, **clique("worker", pod={"priorityClassName": "own"})}, id="priorityClassName of the pod spec"),
        pytest.param({**BASE, **clique("worker", pod={"nodeSelector": None})}, id="an explicit null"),
        pytest.param({**BASE, "resourceSharing": [{"name": "x", "scope": "AllReplicas"}]}, id="sharing"),
        pytest.param({**BASE, "topologyConstraint": {"pack": {"required": "rack"}}}, id="topology"),
    ],
)
def test_what_does_not_reach_pods_does_not(changed: dict[str, Any]) -> None:
    assert hash_of({**BASE, **changed}) == hash_of(BASE)


def test_priority_class_of_the_set_counts() -> None:
    assert hash_of(BASE, "gold") != hash_of(BASE)
    assert generation_hash(pcs(BASE, priorityClassName="gold")) != generation_hash(pcs(BASE))


def test_one_clique_has_the_hash_of_its_set_and_order_counts() -> None:
    assert generation_hash(pcs(BASE)) == hash_of(BASE)
    a, b = clique("a"), clique("b", labels={"x": "y"})
    assert generation_hash(pcs(a, b)) != generation_hash(pcs(b, a))


def test_key_order_and_number_notation_do_not_count() -> None:
    assert canonical({"b": 1, "a": [1.0, None, {"c": None}]}) == canonical({"a": [1, None, {}], "b": 1.0}) == b'{"a":[1,null,{}],"b":1}'


def test_a_round_trip_through_json_keeps_the_hash() -> None:
    subject = pcs(BASE)
    assert generation_hash(PodCliqueSet.decode(json.dumps(subject.to_manifest()).encode())) == generation_hash(subject)
