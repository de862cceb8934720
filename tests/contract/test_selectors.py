"""Label and field selectors of lists."""

import pytest

from tests.contract.client import Api
from tests.contract.kinds import (
    CONFIGMAPS,
    CRDS,
    DEPLOYMENTS,
    EVENTS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICASETS,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    WIDGETS,
    Kind,
    configmap,
    node,
    pod,
    service,
    widget,
)
from tests.contract.texts import LABEL_VALUE, QUALIFIED

# name: labels
OBJECTS = {"a": {"n": "a", "odd": "y", "num": "1"}, "b": {"n": "b", "num": "2"}, "c": {"n": "c", "odd": "y", "num": "10"}, "d": {}}
LABELS = [
    ("", "abcd"),
    ("odd", "ac"),
    ("!odd", "bd"),
    ("n=a", "a"),
    ("n==a", "a"),
    ("n!=a", "bcd"),
    ("n in (a,b)", "ab"),
    ("n in (a,,b)", "ab"),
    ("n in ()", ""),
    ("n in (,a)", "a"),
    ("n notin (a,b)", "cd"),
    ("n notin (a),odd", "c"),
    ("num>1", "bc"),
    ("num<10", "ab"),
    ("num>1,num<5", "b"),
    ("odd,n in (a)", "a"),
    (" n  =  a ", "a"),
    ("n=a,n=b", ""),
    ("odd=y,!gone", "ac"),
    ("a.b/c", ""),
    ("a.b/c!=x", "abcd"),
    ("n=", ""),
    ("gone!=", "abcd"),
]
BAD_LABELS = [
    ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
    ("n exists", "unable to parse requirement: found 'exists', expected: in, notin, =, ==, !=, gt, lt"),
    ("n gt 1", "unable to parse requirement: found 'gt', expected: in, notin, =, ==, !=, gt, lt"),
    ("n in a", "unable to parse requirement: found 'a' expected: '('"),
    ("n in (a", "unable to parse requirement: found '', expected: ',' or ')'"),
    ("n>x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"),
    ("=", "found '=', expected: !, identifier, or 'end of string'"),
    ("a=b=c", "found '=', expected: ',' or 'end of string'"),
    ("!n=a", "found '=', expected: ',' or 'end of string'"),
    ("n=a,", "found '', expected: identifier after ','"),
    ("-x=1", f'unable to parse requirement: <nil>: Invalid value: "-x": {QUALIFIED}'),
    ("n=-a", f'unable to parse requirement: values[0][n]: Invalid value: "-a": {LABEL_VALUE}'),
    ("n=" + "v" * 64, f'unable to parse requirement: values[0][n]: Invalid value: "{"v" * 64}": must be no more than 63 bytes'),
]
FIELDS = [
    ("metadata.name=a", "a"),
    ("metadata.name==a", "a"),
    ("metadata.name!=a", "bcd"),
    ("metadata.name!=a,metadata.name!=b", "cd"),
    ("metadata.name=a,metadata.name=b", ""),
    ("metadata.name=a\\,b", ""),
    ("metadata.name=", ""),
    ("", "abcd"),
]
ONLY_META = 'is not a known field selector: only "metadata.name", "metadata.namespace"'
BAD_FIELDS = [
    (CONFIGMAPS, "data.x=1", f'"data.x" {ONLY_META}'),
    (CONFIGMAPS, "metadata.labels.n=a", f'"metadata.labels.n" {ONLY_META}'),
    (CONFIGMAPS, "metadata.uid=x", f'"metadata.uid" {ONLY_META}'),
    (CONFIGMAPS, "metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"),
    (CONFIGMAPS, "metadata.name in (a)", "invalid selector: 'metadata.name in (a)'; can't understand 'metadata.name in (a)'"),
    (PODS, "spec.foo=1", "field label not supported: spec.foo"),
    (NODES, "metadata.namespace=x", "field label not supported: metadata.namespace"),
    (NAMESPACES, "spec.x=1", "field label not supported: spec.x"),
    (EVENTS, "foo=x", "field label not supported: foo"),
    (WIDGETS, "spec.size=1", "field label not supported: spec.size"),
    (DEPLOYMENTS, "status.replicas=1", f'"status.replicas" {ONLY_META}'),
    (LEASES, "spec.holderIdentity=x", f'"spec.holderIdentity" {ONLY_META}'),
    (CRDS, "spec.group=x", f'"spec.group" {ONLY_META}'),
    (SERVICEACCOUNTS, "type=x", f'"type" {ONLY_META}'),
]


async def make(api: Api) -> None:
    for name, labels in OBJECTS.items():
        await api.made(CONFIGMAPS, configmap(name, labels=labels))


@pytest.mark.parametrize(("selector", "names"), LABELS, ids=[repr(s) for s, _ in LABELS])
async def test_label_selectors(api: Api, selector: str, names: str) -> None:
    await make(api)
    assert (await api.list(CONFIGMAPS, labelSelector=selector)).expect(200).names == list(names)


@pytest.mark.parametrize(("selector", "message"), BAD_LABELS, ids=[s[:12] for s, _ in BAD_LABELS])
async def test_bad_label_selectors(api: Api, selector: str, message: str) -> None:
    (await api.list(CONFIGMAPS, labelSelector=selector)).expect(400, "BadRequest", message)


@pytest.mark.parametrize(("selector", "names"), FIELDS, ids=[repr(s) for s, _ in FIELDS])
async def test_field_selectors(api: Api, selector: str, names: str) -> None:
    await make(api)
    assert (await api.list(CONFIGMAPS, fieldSelector=selector)).expect(200).names == list(names)


@pytest.mark.parametrize(("kind", "selector", "message"), BAD_FIELDS, ids=[f"{k.plural} {s}" for k, s, _ in BAD_FIELDS])
async def test_unsupported_field_selectors(api: Api, widgets: Kind, kind: Kind, selector: str, message: str) -> None:
    (await api.list(kind, fieldSelector=selector)).expect(400, "BadRequest", message)


async def test_label_and_field_selectors_both_hold(api: Api) -> None:
    await make(api)
    assert (await api.list(CONFIGMAPS, labelSelector="odd", fieldSelector="metadata.name!=a")).names == ["c"]


async def test_namespace_as_a_field(api: Api) -> None:
    await make(api)
    assert (await api.list(CONFIGMAPS, ns="", fieldSelector=f"metadata.namespace={api.ns}")).names == list("abcd")
    assert (await api.list(CONFIGMAPS, fieldSelector="metadata.namespace=other")).names == []


async def test_fields_of_pods(api: Api) -> None:
    where = api.unique("node")
    await api.made(NODES, node(where))
    await api.made(PODS, pod("bound", node=where))
    await api.made(PODS, pod("free", spec={"schedulerName": "mine", "restartPolicy": "Never", "serviceAccountName": "sa"}))
    (await api.patch(PODS, "bound", {"status": {"phase": "Running", "podIP": "10.1.2.3"}}, sub="status")).expect(200)
    for selector, names in (
        (f"spec.nodeName={where}", ["bound"]),
        ("spec.nodeName=", ["free"]),
        ("spec.nodeName!=", ["bound"]),
        ("status.phase=Pending", ["free"]),
        ("status.phase!=Running", ["free"]),
        ("spec.schedulerName=mine", ["free"]),
        ("spec.restartPolicy=Always", ["bound"]),
        ("spec.serviceAccountName=sa", ["free"]),
        ("status.podIP=10.1.2.3", ["bound"]),
        ("status.nominatedNodeName=", ["bound", "free"]),
        ("spec.hostNetwork=false", ["bound", "free"]),
    ):
        assert (await api.list(PODS, fieldSelector=selector)).expect(200).names == names, selector


async def test_fields_of_other_kinds(api: Api) -> None:
    await api.made(SECRETS, SECRETS.new("plain"))
    await api.made(SECRETS, SECRETS.new("typed", type="x/y"))
    assert (await api.list(SECRETS, fieldSelector="type=Opaque")).names == ["plain"]
    await api.made(SERVICES, service("headless", spec={"clusterIP": "None", "ports": [{"port": 1}]}))
    await api.made(SERVICES, service("normal"))
    assert (await api.list(SERVICES, fieldSelector="spec.clusterIP=None")).names == ["headless"]
    assert (await api.list(SERVICES, fieldSelector="spec.type=ClusterIP")).names == ["headless", "normal"]
    cordoned = api.unique("node")
    await api.made(NODES, node(cordoned, spec={"unschedulable": True}))
    assert (await api.list(NODES, fieldSelector=f"spec.unschedulable=true,metadata.name={cordoned}")).names == [cordoned]
    assert (await api.list(NAMESPACES, fieldSelector=f"status.phase=Active,metadata.name={api.ns}")).names == [api.ns]
    await api.made(EVENTS, EVENTS.new("e", reason="Why", type="Normal", involvedObject={"namespace": api.ns, "name": "n", "kind": "Pod"}))
    for selector in ("involvedObject.name=n", "involvedObject.kind=Pod", "reason=Why", "type=Normal", f"involvedObject.namespace={api.ns}"):
        assert (await api.list(EVENTS, fieldSelector=selector)).names == ["e"], selector
    assert (await api.list(JOBS, fieldSelector="status.successful=1")).expect(200).items == []
    assert (await api.list(REPLICASETS, fieldSelector="metadata.name=x")).expect(200).items == []


async def test_selectable_fields_of_a_custom_resource(api: Api, widgets: Kind) -> None:
    await api.made(widgets, widget("default"))
    await api.made(widgets, widget("blue", spec={"colour": "blue"}))
    assert (await api.list(widgets, fieldSelector="spec.colour=red")).expect(200).names == ["default"]
    assert (await api.list(widgets, fieldSelector="spec.colour!=red")).expect(200).names == ["blue"]
