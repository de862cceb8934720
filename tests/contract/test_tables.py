"""Objects as tables and as metadata alone."""

from typing import Any

import pytest

from tests.contract.client import Api
from tests.contract.kinds import CONFIGMAPS, NODES, PODS, configmap, pod
from tests.contract.rows import RESOURCES, serve

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
CLIQUE = {"roleName": "r", "replicas": 2, "minAvailable": 1, "podSpec": {"containers": [{"name": "a", "image": "i"}]}}
COLUMNS = [
    (
        "pods",
        [
            ("Name", 0),
            ("Ready", 0),
            ("Status", 0),
            ("Restarts", 0),
            ("Age", 0),
            ("IP", 1),
            ("Node", 1),
            ("Nominated Node", 1),
            ("Readiness Gates", 1),
        ],
    ),
    ("configmaps", [("Name", 0), ("Data", 0), ("Age", 0)]),
    ("secrets", [("Name", 0), ("Type", 0), ("Data", 0), ("Age", 0)]),
    ("services", [("Name", 0), ("Type", 0), ("Cluster-IP", 0), ("External-IP", 0), ("Port(s)", 0), ("Age", 0), ("Selector", 1)]),
    (
        "nodes",
        [
            ("Name", 0),
            ("Status", 0),
            ("Roles", 0),
            ("Age", 0),
            ("Version", 0),
            ("Internal-IP", 1),
            ("External-IP", 1),
            ("OS-Image", 1),
            ("Kernel-Version", 1),
            ("Container-Runtime", 1),
        ],
    ),
    ("namespaces", [("Name", 0), ("Status", 0), ("Age", 0)]),
    (
        "deployments",
        [("Name", 0), ("Ready", 0), ("Up-to-date", 0), ("Available", 0), ("Age", 0), ("Containers", 1), ("Images", 1), ("Selector", 1)],
    ),
    (
        "events",
        [
            ("Last Seen", 0),
            ("Type", 0),
            ("Reason", 0),
            ("Object", 0),
            ("Subobject", 1),
            ("Source", 1),
            ("Message", 0),
            ("First Seen", 1),
            ("Count", 1),
            ("Name", 1),
        ],
    ),
    ("leases", [("Name", 0), ("Holder", 0), ("Age", 0)]),
    (
        "podcliques",
        [
            ("Name", 0),
            ("MinAvail", 0),
            ("Replicas", 0),
            ("Ready", 0),
            ("Scheduled", 0),
            ("Updated", 0),
            ("Gated", 1),
            ("MinBreached", 1),
            ("Age", 0),
        ],
    ),
    (
        "podgangs",
        [
            ("Name", 0),
            ("Phase", 0),
            ("Pods", 1),
            ("Bound", 1),
            ("Ready", 1),
            ("Domain", 1),
            ("Score", 1),
            ("Blocked", 1),
            ("Since", 1),
            ("Age", 0),
        ],
    ),
    ("things", [("Name", 0), ("Age", 0)]),
]


@pytest.mark.parametrize(("plural", "columns"), COLUMNS, ids=[c[0] for c in COLUMNS])
async def test_columns(api: Api, plural: str, columns: list[tuple[str, int]]) -> None:
    await serve(api, *({plural} & {"podcliques", "podgangs", "things"}))
    reply = (await api.list(RESOURCES[plural], accept=TABLE)).expect(200)
    assert (reply.body["kind"], reply.body["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [(c["name"], c["priority"]) for c in reply.body["columnDefinitions"]] == columns


async def rows(api: Api, plural: str, name: str = "", **query: Any) -> list[Any]:
    kind = RESOURCES[plural]
    reply = await (api.get(kind, name, accept=TABLE, **query) if name else api.list(kind, accept=TABLE, **query))
    return [row["cells"] for row in reply.expect(200).body["rows"]]


async def test_a_pod(api: Api) -> None:
    await api.made(PODS, pod("p", node="n"))
    [[name, ready, status, restarts, age, ip, node, nominated, gates]] = await rows(api, "pods")
    assert (name, ready, status, restarts, ip, node, nominated, gates) == ("p", "0/1", "Pending", "0", "<none>", "n", "<none>", "<none>")
    assert age.endswith("s")
    running = {
        "phase": "Running",
        "podIP": "10.0.0.1",
        "containerStatuses": [{"name": "main", "ready": True, "restartCount": 2, "image": "i", "imageID": "", "state": {"running": {}}}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    (await api.patch(PODS, "p", {"status": {**running, "podIPs": [{"ip": "10.0.0.1"}]}}, sub="status")).expect(200)
    assert (await rows(api, "pods", "p"))[0][1:4] == ["1/1", "Running", "2"]
    (await api.delete(PODS, "p")).expect(200)
    assert (await rows(api, "pods", "p"))[0][2] == "Terminating"


async def test_a_gated_pod(api: Api) -> None:
    await api.made(PODS, pod("p", spec={"schedulingGates": [{"name": "g"}]}))
    assert (await rows(api, "pods"))[0][2] == "SchedulingGated"


async def test_a_crashing_pod(api: Api) -> None:
    await api.made(PODS, pod("p", node="n"))
    waiting = {
        "name": "main",
        "ready": False,
        "restartCount": 1,
        "image": "i",
        "imageID": "",
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
    }
    (await api.patch(PODS, "p", {"status": {"phase": "Running", "containerStatuses": [waiting]}}, sub="status")).expect(200)
    assert (await rows(api, "pods"))[0][1:4] == ["0/1", "CrashLoopBackOff", "1"]


async def test_a_node(api: Api) -> None:
    name = api.unique("node")
    await api.made(
        NODES,
        {
            "metadata": {"name": name, "labels": {"node-role.kubernetes.io/gpu": ""}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        },
    )
    (await api.patch(NODES, name, {"spec": {"unschedulable": True}})).expect(200)
    assert (await rows(api, "nodes", name))[0][:3] == [name, "Ready,SchedulingDisabled", "gpu"]


async def test_a_clique(api: Api) -> None:
    await serve(api, "podcliques")
    kind = RESOURCES["podcliques"]
    await api.made(kind, kind.new("c", spec=CLIQUE))
    [cells] = await rows(api, "podcliques")
    assert cells[:-1] == ["c", 1, 2, None, None, None, None, None]
    condition = {
        "type": "MinAvailableBreached",
        "status": "True",
        "reason": "R",
        "message": "",
        "lastTransitionTime": "2024-01-01T00:00:00Z",
    }
    (await api.patch(kind, "c", {"status": {"readyReplicas": 1, "conditions": [condition]}}, sub="status")).expect(200)
    [cells] = await rows(api, "podcliques")
    assert (cells[3], cells[7]) == (1, "True")


async def test_of_several_values_the_first_is_shown(api: Api) -> None:
    await serve(api, "clustertopologybindings")
    kind, name = RESOURCES["clustertopologybindings"], api.unique("topology")
    await api.made(kind, kind.new(name, spec={"levels": [{"domain": "zone", "key": "z"}, {"domain": "rack", "key": "r"}]}))
    assert (await rows(api, "clustertopologybindings", name))[0][:2] == [name, "zone"]


@pytest.mark.parametrize(
    ("include", "kind"), [("", "PartialObjectMetadata"), ("Metadata", "PartialObjectMetadata"), ("Object", "ConfigMap"), ("None", None)]
)
async def test_what_a_row_includes(api: Api, include: str, kind: str | None) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    reply = await api.list(CONFIGMAPS, accept=TABLE, includeObject=include or None)
    [row] = reply.expect(200).body["rows"]
    assert (row["object"] and row["object"]["kind"]) == kind


async def test_a_bad_include(api: Api) -> None:
    reply = await api.list(CONFIGMAPS, accept=TABLE, includeObject="Frob")
    assert (reply.status, reply.reason) == (400, "BadRequest")


async def test_a_watch_of_tables(api: Api) -> None:
    await api.made(CONFIGMAPS, configmap("a"))
    async with api.watch(CONFIGMAPS, accept=TABLE, resourceVersion=0) as watch:
        first = await watch.next()
        await api.made(CONFIGMAPS, configmap("b"))
        second = await watch.next()
    assert (first["type"], first["object"]["kind"], first["object"]["rows"][0]["cells"][0]) == ("ADDED", "Table", "a")
    assert [c["name"] for c in first["object"]["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert second["object"].get("columnDefinitions") is None
    assert second["object"]["rows"][0]["cells"][0] == "b"


async def test_metadata_alone(api: Api) -> None:
    made = await api.made(CONFIGMAPS, configmap("a"))
    one = (await api.get(CONFIGMAPS, "a", accept=PARTIAL)).expect(200).body
    assert one == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": made["metadata"]}
    many = (await api.list(CONFIGMAPS, accept=PARTIAL_LIST)).expect(200).body
    assert (many["kind"], many["apiVersion"], [i["metadata"]["name"] for i in many["items"]]) == (
        "PartialObjectMetadataList",
        "meta.k8s.io/v1",
        ["a"],
    )


async def test_an_empty_table(api: Api) -> None:
    reply = (await api.list(CONFIGMAPS, accept=TABLE)).expect(200)
    assert reply.body["rows"] == []
    assert reply.rv


async def test_a_failure_stays_a_status(api: Api) -> None:
    (await api.get(CONFIGMAPS, "a", accept=TABLE)).expect(404, "NotFound")


async def test_a_fallback_to_json(api: Api) -> None:
    reply = await api.list(CONFIGMAPS, accept="application/json;as=Table;v=v9;g=meta.k8s.io,application/json")
    assert reply.expect(200).body["kind"] == "ConfigMapList"


async def test_an_unknown_form(api: Api) -> None:
    (await api.list(CONFIGMAPS, accept="application/json;as=Frob;v=v1;g=meta.k8s.io")).expect(406)
