"""metadata.generation: which kinds count, and what counts."""

from typing import NamedTuple

import pytest

from tests.contract.client import Api
from tests.contract.crds import serve
from tests.contract.kinds import (
    CLIQUES,
    CONFIGMAPS,
    DEPLOYMENTS,
    JOBS,
    LEASES,
    NODES,
    PODS,
    PRIORITYCLASSES,
    REPLICASETS,
    ROLES,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    STATEFULSETS,
    WIDGETS,
    Kind,
    Obj,
    deployment,
    pod,
    service,
    widget,
)

WORKLOAD = deployment()["spec"]
JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "b"}]}}}
CLIQUE = {"roleName": "r", "replicas": 1, "podSpec": {"containers": [{"name": "m", "image": "b"}]}}
IMAGE = {"spec": {"containers": [{"name": "main", "image": "other"}]}}


class Row(NamedTuple):
    """`spec`: a patch of what is not metadata or status; `status`: one of status."""

    kind: Kind
    fields: Obj
    spec: Obj
    status: Obj
    after_spec: int
    keeps_status_labels: bool = False
    """Whether a write of status may change labels."""


COUNTING = [
    Row(PODS, {"spec": pod()["spec"]}, IMAGE, {"phase": "Running"}, 2, keeps_status_labels=True),
    Row(DEPLOYMENTS, {"spec": WORKLOAD}, {"spec": {"replicas": 3}}, {"replicas": 1}, 2),
    Row(REPLICASETS, {"spec": WORKLOAD}, {"spec": {"replicas": 3}}, {"replicas": 1}, 2, keeps_status_labels=True),
    Row(STATEFULSETS, {"spec": {**WORKLOAD, "serviceName": "s"}}, {"spec": {"replicas": 3}}, {"replicas": 1}, 2, keeps_status_labels=True),
    Row(JOBS, {"spec": JOB}, {"spec": {"parallelism": 2}}, {"active": 0}, 2, keeps_status_labels=True),
    Row(WIDGETS, {"spec": widget()["spec"]}, {"spec": {"size": 5}}, {"phase": "x"}, 2),
    Row(CLIQUES, {"spec": CLIQUE}, {"spec": {"replicas": 2}}, {"replicas": 1}, 2),
    Row(PRIORITYCLASSES, {"value": 4}, {"description": "x"}, {}, 1),
]
OTHERS = [
    (CONFIGMAPS, {}, {"data": {"x": "y"}}),
    (SECRETS, {}, {"stringData": {"x": "y"}}),
    (SERVICEACCOUNTS, {}, {"automountServiceAccountToken": False}),
    (SERVICES, {"spec": service()["spec"]}, {"spec": {"selector": {"a": "b"}}}),
    (NODES, {}, {"spec": {"unschedulable": True}}),
    (LEASES, {}, {"spec": {"holderIdentity": "x"}}),
    (ROLES, {}, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
]


@pytest.mark.parametrize("row", COUNTING, ids=[row.kind.plural for row in COUNTING])
async def test_kinds_that_count(api: Api, row: Row) -> None:
    kind = await serve(api, row.kind)
    name = api.unique()
    assert (await api.made(kind, kind.new(name, finalizers=["a.b/c"], **row.fields)))["metadata"]["generation"] == 1
    labelled = (await api.patch(kind, name, {"metadata": {"labels": {"a": "b"}}})).expect(200)
    assert labelled.meta["generation"] == 1
    patch_type = "merge" if kind in (WIDGETS, CLIQUES) else "strategic"
    assert (await api.patch(kind, name, row.spec, patch_type)).expect(200).meta["generation"] == row.after_spec
    if row.status:
        body = {"status": row.status, "metadata": {"labels": {"from": "status"}}}
        reported = (await api.patch(kind, name, body, sub="status")).expect(200)
        assert reported.meta["generation"] == row.after_spec
        assert ("from" in reported.meta["labels"]) == row.keeps_status_labels
    # To be deleted is a change of what is wanted, too.
    deleting = (await api.delete(kind, name, propagationPolicy="Background")).expect(200)
    assert deleting.meta["generation"] == row.after_spec + 1


@pytest.mark.parametrize(("kind", "fields", "change"), OTHERS, ids=[kind.plural for kind, _, _ in OTHERS])
async def test_kinds_that_do_not(api: Api, kind: Kind, fields: Obj, change: Obj) -> None:
    name = api.unique()
    made = await api.made(kind, kind.new(name, finalizers=["a.b/c"], **fields))
    assert "generation" not in made["metadata"]
    changed = (await api.patch(kind, name, change)).expect(200)
    assert changed.rv != made["metadata"]["resourceVersion"]
    assert "generation" not in changed.meta
    assert "generation" not in (await api.delete(kind, name)).expect(200).meta


async def test_generation_in_a_body_is_ignored(api: Api, widgets: Kind) -> None:
    made = await api.made(widgets, {**widget("a"), "metadata": {"name": "a", "generation": 9}})
    assert made["metadata"]["generation"] == 1
    made["metadata"]["generation"] = 9
    reply = (await api.update(widgets, made)).expect(200)
    assert (reply.meta["generation"], reply.rv) == (1, made["metadata"]["resourceVersion"])


async def test_status_and_spec_are_written_apart(api: Api, widgets: Kind) -> None:
    made = await api.made(widgets, widget("a", spec={"size": 1}))
    both = {**made, "spec": {"size": 9}, "status": {"phase": "New"}}
    reported = (await api.update(widgets, both, sub="status")).expect(200).body
    assert (reported["spec"]["size"], reported["status"], reported["metadata"]["generation"]) == (1, {"phase": "New"}, 1)
    wanted = (await api.update(widgets, {**reported, "spec": {"size": 9}, "status": {"phase": "Old"}})).expect(200).body
    assert (wanted["spec"]["size"], wanted["status"], wanted["metadata"]["generation"]) == (9, {"phase": "New"}, 2)


async def test_a_defaulted_field_set_to_its_default_is_no_change(api: Api, widgets: Kind) -> None:
    made = await api.made(widgets, widget("a"))
    assert made["spec"] == {"size": 1, "colour": "red"}
    reply = (await api.patch(widgets, "a", {"spec": {"colour": "red"}})).expect(200)
    assert (reply.meta["generation"], reply.rv) == (1, made["metadata"]["resourceVersion"])
