"""ResourceClaims shared on three levels, by the example of the resource sharing scenario (grove.md §9.8)."""

import copy
from typing import Any

import pytest

from api.core import Pod, ResourceClaim
from api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from api.objects.claims import pod_claims, with_claims
from api.objects.template import Membership, clique_template, group_of_clique
from api.plan import Key, Manifest
from cli.world import World
from tests.unit import worlds
from tests.unit.worlds import change, converge, named, names, podcliqueset, settled


def share(name: str, scope: str, **fields: Any) -> Manifest:
    return {"name": name, "scope": scope, **fields}


def sharing(kind: str, *names: str) -> Manifest:
    return {"filter": {kind: list(names)}}


ALL, EACH = "AllReplicas", "PerReplica"
INTERNAL = ("int-tpl", *(f"int-tpl{i}" for i in range(2, 9)))


def rs_test(replicas: int = 1) -> Manifest:
    worker_a = {**worlds.clique("worker-a"), "resourceSharing": [share("int-tpl4", EACH), share("ext-ns-tpl", ALL, namespace="shared")]}
    worker_b = {**worlds.clique("worker-b"), "resourceSharing": [share("int-tpl6", ALL)]}
    sga = {
        "name": "sga",
        "cliqueNames": ["worker-b"],
        "replicas": 2,
        "minAvailable": 1,
        "resourceSharing": [
            share("int-tpl2", ALL),
            share("int-tpl3", EACH),
            share("int-tpl8", ALL, **sharing("childCliqueNames", "worker-b")),
        ],
    }
    return podcliqueset(
        worker_a,
        worker_b,
        name="rs-test",
        replicas=replicas,
        podCliqueScalingGroups=[sga],
        resourceClaimTemplates=[{"name": n, "templateSpec": {"spec": {"devices": {"requests": [{"name": n}]}}}} for n in INTERNAL],
        resourceSharing=[
            share("int-tpl5", ALL),
            share("ext-tpl", EACH),
            share("int-tpl", EACH, **sharing("childCliqueNames", "worker-a")),
            share("int-tpl7", ALL, **sharing("childScalingGroupNames", "sga")),
        ],
    )


def external(name: str, namespace: str) -> Manifest:
    spec = {"spec": {"devices": {"requests": [{"name": f"{namespace}-{name}"}]}}}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": meta, "spec": spec}


def rs_world(replicas: int = 1) -> World:
    # a template of the cluster that an internal one of the same name hides
    outside = (external("ext-tpl", "serving"), external("ext-ns-tpl", "shared"), external("int-tpl", "serving"))
    return converge(settled(*outside, rs_test(replicas)))


TWELVE = [
    "rs-test-0-ext-tpl",
    "rs-test-0-int-tpl",
    "rs-test-0-sga-0-int-tpl3",
    "rs-test-0-sga-0-worker-b-all-int-tpl6",
    "rs-test-0-sga-1-int-tpl3",
    "rs-test-0-sga-1-worker-b-all-int-tpl6",
    "rs-test-0-sga-all-int-tpl2",
    "rs-test-0-sga-all-int-tpl8",
    "rs-test-0-worker-a-0-int-tpl4",
    "rs-test-0-worker-a-all-ext-ns-tpl",
    "rs-test-all-int-tpl5",
    "rs-test-all-int-tpl7",
]


def test_the_twelve_claims_of_the_example() -> None:
    world = rs_world()
    assert names(world, ResourceClaim) == TWELVE
    assert {m["metadata"]["namespace"] for m in world.of_kind(ResourceClaim.KIND)} == {"serving"}


@pytest.mark.parametrize(
    ("claim", "owner"),
    [
        ("rs-test-all-int-tpl5", ("PodCliqueSet", "rs-test")),
        ("rs-test-0-int-tpl", ("PodCliqueSet", "rs-test")),
        ("rs-test-0-sga-1-int-tpl3", ("PodCliqueScalingGroup", "rs-test-0-sga")),
        ("rs-test-0-worker-a-0-int-tpl4", ("PodClique", "rs-test-0-worker-a")),
        ("rs-test-0-sga-1-worker-b-all-int-tpl6", ("PodClique", "rs-test-0-sga-1-worker-b")),
    ],
)
def test_claims_belong_to_their_level(claim: str, owner: tuple[str, str]) -> None:
    (found,) = named(rs_world(), ResourceClaim, claim)["metadata"]["ownerReferences"]
    assert (found["kind"], found["name"]) == owner


@pytest.mark.parametrize(
    ("claim", "asked"),
    [
        ("rs-test-0-int-tpl", "int-tpl"),
        ("rs-test-0-ext-tpl", "serving-ext-tpl"),
        ("rs-test-0-worker-a-all-ext-ns-tpl", "shared-ext-ns-tpl"),
    ],
    ids=["internal hides external", "of the set's namespace", "of another namespace"],
)
def test_where_a_claims_spec_comes_from(claim: str, asked: str) -> None:
    assert named(rs_world(), ResourceClaim, claim)["spec"]["devices"]["requests"] == [{"name": asked}]


@pytest.mark.parametrize(
    ("hostname", "claims"),
    [
        (
            "rs-test-0-worker-a-0",
            [
                "rs-test-all-int-tpl5",
                "rs-test-0-ext-tpl",
                "rs-test-0-int-tpl",
                "rs-test-0-worker-a-0-int-tpl4",
                "rs-test-0-worker-a-all-ext-ns-tpl",
            ],
        ),
        (
            "rs-test-0-sga-1-worker-b-0",
            [
                "rs-test-all-int-tpl5",
                "rs-test-0-ext-tpl",
                "rs-test-all-int-tpl7",
                "rs-test-0-sga-all-int-tpl2",
                "rs-test-0-sga-1-int-tpl3",
                "rs-test-0-sga-all-int-tpl8",
                "rs-test-0-sga-1-worker-b-all-int-tpl6",
            ],
        ),
    ],
)
def test_the_claims_that_a_pod_uses(hostname: str, claims: list[str]) -> None:
    pod = next(p for p in rs_world().of_kind(Pod.KIND) if p["spec"]["hostname"] == hostname)
    assert sorted(c["resourceClaimName"] for c in pod["spec"]["resourceClaims"]) == sorted(claims)
    assert all(c["name"] == c["resourceClaimName"] for c in pod["spec"]["resourceClaims"])
    assert pod["spec"]["containers"][0]["resources"]["claims"] == [{"name": c["name"]} for c in pod["spec"]["resourceClaims"]]


def test_claims_follow_scaling_on_every_level() -> None:
    world = rs_world()

    def count() -> int:
        return len(converge(world).of_kind(ResourceClaim.KIND))

    counts = [count()]
    for model, name, replicas in (
        (PodCliqueScalingGroup, "rs-test-0-sga", 1),
        (PodCliqueScalingGroup, "rs-test-0-sga", 3),
        (PodClique, "rs-test-0-worker-a", 2),
        (PodClique, "rs-test-0-worker-a", 1),
        (PodCliqueSet, "rs-test", 2),
        (PodCliqueSet, "rs-test", 1),
    ):
        change(world, model, name, spec={"replicas": replicas})
        counts.append(count())
    # the second replica of the set has a group of two replicas, as its template says
    assert counts == [12, 10, 14, 15, 14, 24, 14]


def test_filters_choose_cliques_and_groups() -> None:
    subject = PodCliqueSet.model_validate(rs_test())
    config = group_of_clique(subject, "worker-b")
    worker_a, worker_b = (clique_template(subject, n) for n in ("worker-a", "worker-b"))
    assert config is not None
    assert worker_a is not None
    assert worker_b is not None
    member = Membership.of(subject, 0, config, 0)
    assert "rs-test-all-int-tpl7" not in pod_claims(subject, 0, worker_a, None, "rs-test-0-worker-a", 0)
    assert "rs-test-0-int-tpl" not in pod_claims(subject, 0, worker_b, member, "rs-test-0-sga-0-worker-b", 0)
    assert "rs-test-0-worker-a-3-int-tpl4" in pod_claims(subject, 0, worker_a, None, "rs-test-0-worker-a", 3)


def test_claims_are_referenced_by_every_container_but_the_waiter() -> None:
    spec: Manifest = {
        "containers": [{"name": "a", "resources": {"limits": {"cpu": 1}, "claims": [{"name": "own"}]}}, {"name": "b"}],
        "initContainers": [{"name": "c"}],
        "resourceClaims": [{"name": "own", "resourceClaimName": "own"}],
    }
    out = with_claims(copy.deepcopy(spec), ("x",))
    assert [c["name"] for c in out["resourceClaims"]] == ["own", "x"]
    assert out["containers"][0]["resources"] == {"limits": {"cpu": 1}, "claims": [{"name": "own"}, {"name": "x"}]}
    assert out["containers"][1]["resources"] == out["initContainers"][0]["resources"] == {"claims": [{"name": "x"}]}
    assert with_claims(copy.deepcopy(spec), ()) == spec


def test_the_waiter_uses_no_claims() -> None:
    manifest = rs_test()
    manifest["spec"]["template"]["cliqueStartupType"] = "CliqueStartupTypeInOrder"
    world = converge(settled(external("ext-tpl", "serving"), external("ext-ns-tpl", "shared"), manifest))
    pod = next(p for p in world.of_kind(Pod.KIND) if p["spec"]["hostname"] == "rs-test-0-sga-0-worker-b-0")
    (waiter,) = pod["spec"]["initContainers"]
    assert "resources" not in waiter
    assert world.get(Pod, *Key("serving", pod["metadata"]["name"])).spec.resource_claims
