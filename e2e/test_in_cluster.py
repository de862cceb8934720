"""Processes with the rights that we ship, on a control plane of their own: what they say of a cluster that is not as it should be, that
they recover by themselves, how leadership changes hands, and what they do at rest."""

import contextlib
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from api.registry import MODELS, crd_name
from cli.install import CRDS, PATH, load_crds
from e2e.cluster import KINDS, eventually
from e2e.incluster import (
    AUDIT_POLICY,
    LEASES,
    NAMESPACE,
    RECOVERY_S,
    SETS,
    InCluster,
    Replica,
    bound,
    cpu_s,
    create_set,
    ended_at,
    grovekeeper,
    owned,
    pods,
    received_at,
    remove,
    wait_ready,
    wait_unready,
    write_kubeconfig,
)
from e2e.workloads import POOL
from hack.kube import ControlPlane, Lifetime, create_nodes, find_prepared, uniform_nodes
from hack.kube.cache import silent
from hack.kube.certificates import write_certificates
from hack.kube.ports import free_port
from tests.programs import needed

pytestmark = pytest.mark.timeout(240)

BOTH = pytest.mark.parametrize("component", ["controllers", "scheduler"])
REST_S = 20.0
CRD_OF_SETS, CRD_OF_GANGS = crd_name(MODELS[0]), "podgangs.scheduler.grove.io"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InCluster]:
    """Accounts and roles, nodes, no custom resource definitions."""
    binaries = needed(lambda: find_prepared(silent))
    folder = tmp_path_factory.mktemp("in-cluster")
    policy, log = folder / "audit-policy.json", folder / "audit.log"
    policy.write_text(json.dumps(AUDIT_POLICY))
    plane = ControlPlane(
        folder / "kube",
        binaries=binaries,
        lifetime=Lifetime.WITH_PARENT,
        components=("etcd", "kube-apiserver", "kube-controller-manager", "kwok"),
        flags={"kube-apiserver": {"audit-policy-file": str(policy), "audit-log-path": str(log)}},
    )
    try:
        plane.start()
        create_nodes(plane.kubeconfig, uniform_nodes(2, cpu="16", memory="4Gi", name="node-{i}", labels=lambda i: {POOL: "agent"}))
        cluster = InCluster(plane, log, folder)
        cluster.prepare()
        yield cluster
        cluster.client.close()
    finally:
        plane.stop()


@pytest.fixture
def cluster(bare: InCluster) -> InCluster:
    """With the definitions."""
    assert grovekeeper(bare, "install", "--crds")[0] == 0
    return bare


@pytest.fixture
def without_definitions(bare: InCluster) -> Iterator[InCluster]:
    """Definitions that a test installs are deleted before and after it."""
    remove(bare)
    yield bare
    remove(bare)


@pytest.fixture
def workload(cluster: InCluster) -> Iterator[str]:
    """Name of a set in namespace default; nothing of it is left afterwards."""
    name = f"set-{os.urandom(2).hex()}"
    yield name
    cluster.client.raw("DELETE", SETS.path("default", name))
    objects = lambda: [o for kind in KINDS if kind != "Event" for o in owned(cluster, kind, name)]  # noqa: E731
    if not objects():
        return
    with cluster.replica("controllers"):
        eventually(lambda: not objects(), lambda: f"left: {[o['metadata']['name'] for o in objects()]}", 60.0)


# installation


def test_definitions_are_installed_once(without_definitions: InCluster) -> None:
    cluster = without_definitions
    code, said = grovekeeper(cluster, "install", "--crds", "--dry-run")
    assert (code, said.count(" created (dry run)")) == (0, len(MODELS)), said
    assert cluster.client.raw("GET", f"{PATH}/{CRD_OF_SETS}")[0] == 404
    code, said = grovekeeper(cluster, "install", "--crds")
    assert (code, said.count(" created\n")) == (0, len(MODELS)), said
    eventually(lambda: cluster.client.raw("GET", SETS.path("default"))[0] == 200, "sets are not served")
    versions = [cluster.client.request("GET", f"{PATH}/{crd_name(m)}")["metadata"]["resourceVersion"] for m in MODELS]
    code, said = grovekeeper(cluster, "install", "--crds")
    assert (code, said.count(" unchanged\n")) == (0, len(MODELS)), said
    assert versions == [cluster.client.request("GET", f"{PATH}/{crd_name(m)}")["metadata"]["resourceVersion"] for m in MODELS]


def test_definitions_of_another_installation_are_not_taken_over_unasked(without_definitions: InCluster) -> None:
    cluster = without_definitions
    foreign = next(crd for crd in load_crds(CRDS) if crd["metadata"]["name"] == CRD_OF_GANGS)
    foreign["spec"]["names"]["shortNames"] = ["gang"]
    cluster.client.request("PATCH", f"{PATH}/{CRD_OF_GANGS}?fieldManager=helm", foreign, "application/apply-patch+yaml")
    code, said = grovekeeper(cluster, "install", "--crds")
    assert code == 1, said
    assert f"{CRD_OF_GANGS} was installed by helm, which owns .spec.names.shortNames" in said
    assert "--force" in said
    assert cluster.client.raw("GET", f"{PATH}/{CRD_OF_SETS}")[0] == 404
    code, said = grovekeeper(cluster, "install", "--crds", "--force")
    assert (code, f"{CRD_OF_GANGS} configured" in said) == (0, True), said


def test_definitions_whose_names_are_taken(without_definitions: InCluster) -> None:
    cluster = without_definitions
    foreign = next(crd for crd in load_crds(CRDS) if crd["metadata"]["name"] == CRD_OF_GANGS)
    foreign["metadata"]["name"] = "groups.scheduler.grove.io"
    foreign["spec"]["names"] = {"plural": "groups", "singular": "podgang", "kind": "Group", "listKind": "GroupList"}
    cluster.client.request("POST", PATH, foreign)
    try:
        code, said = grovekeeper(cluster, "install", "--crds", "--timeout", "20")
        assert code == 1
        assert f"{CRD_OF_GANGS}: its names are not accepted" in said
    finally:
        remove(cluster, "groups.scheduler.grove.io")


# what keeps processes from working


@BOTH
def test_missing_definitions_are_named_and_waited_for(without_definitions: InCluster, component: str) -> None:
    cluster = without_definitions
    with cluster.replica(component) as replica:
        wait_unready(replica, "Custom resource definitions are missing", CRD_OF_GANGS, "grovekeeper install --crds")
        time.sleep(5.0)
        assert replica.logged("trouble") <= 2
        assert replica.logged("watch interrupted") == 0
        assert grovekeeper(cluster, "install", "--crds")[0] == 0
        assert wait_ready(replica) <= 20.0
        eventually(lambda: replica.logged("trouble over") == 1, replica.daemon.tail)
        remove(cluster, CRD_OF_GANGS)
        wait_unready(replica, "Custom resource definitions are missing", CRD_OF_GANGS)
        assert grovekeeper(cluster, "install", "--crds")[0] == 0
        assert wait_ready(replica) <= 20.0
        assert replica.logged("not leading") == 0, "no restart was needed"


READS = [("controllers", "podcliques", "podcliques.grove.io"), ("controllers", "services", "services"), ("scheduler", "nodes", "nodes")]


@pytest.mark.parametrize(("component", "resource", "name"), READS)
def test_a_missing_right_to_read(cluster: InCluster, component: str, resource: str, name: str) -> None:
    with contextlib.ExitStack() as lacking:
        lacking.enter_context(cluster.without(component, {"watch", "list"}, resource))
        replica = lacking.enter_context(cluster.replica(component))
        wait_unready(replica, f"ServiceAccount {NAMESPACE}/grovekeeper-{component} may not watch {name}", "verbs: [list, watch]")
        cluster.apply_role(cluster.roles["ClusterRole", f"grovekeeper-{component}"])
        wait_ready(replica)


@BOTH
@pytest.mark.parametrize("verb", ["get", "update"])
def test_a_missing_right_to_the_lease(cluster: InCluster, component: str, verb: str) -> None:
    cluster.free_lease(component)
    with contextlib.ExitStack() as lacking:
        lacking.enter_context(cluster.without(component, {verb}, "leases", kind="Role"))
        if verb == "update":  # the first holder creates it
            first = lacking.enter_context(contextlib.ExitStack())
            replica = first.enter_context(cluster.replica(component))
            eventually(lambda: replica.logged("lost") + replica.logged("leadership lost") == 1, replica.daemon.tail)
            assert f"may not {verb} leases.coordination.k8s.io" in replica.daemon.tail()
            first.close()
            cluster.client.request("PATCH", cluster.lease_path(component), {"spec": {"holderIdentity": ""}}, "application/merge-patch+json")
        replica = lacking.enter_context(cluster.replica(component))
        account = f"ServiceAccount {NAMESPACE}/grovekeeper-{component}"
        wait_unready(replica, f"{account} may not {verb} leases.coordination.k8s.io in namespace {NAMESPACE}")
        cluster.apply_role(cluster.roles["Role", f"grovekeeper-{component}"])
        wait_ready(replica)
        eventually(lambda: cluster.holder(component) != "", replica.daemon.tail)


def test_a_missing_right_to_create_pods(cluster: InCluster, workload: str) -> None:
    with contextlib.ExitStack() as lacking:
        lacking.enter_context(cluster.without("controllers", {"create"}, "pods"))
        replica = lacking.enter_context(cluster.replica("controllers"))
        wait_ready(replica)
        create_set(cluster, workload)
        text = f"ServiceAccount {NAMESPACE}/grovekeeper-controllers may not create pods"

        def told() -> bool:
            errors = [e for o in owned(cluster, "PodClique", workload) for e in o.get("status", {}).get("lastErrors", ())]
            events = [e["message"] for e in owned(cluster, "Event", workload)]
            return any(text in e["description"] for e in errors) and any(text in message for message in events)

        eventually(told, replica.daemon.tail)
        assert any(text in said for said in replica.texts), replica.texts
        cluster.apply_role(cluster.roles["ClusterRole", "grovekeeper-controllers"])
        eventually(lambda: len(pods(cluster, workload)) == 2, replica.daemon.tail, RECOVERY_S)


def test_a_missing_right_to_bind(cluster: InCluster, workload: str) -> None:
    with contextlib.ExitStack() as lacking:
        lacking.enter_context(cluster.replica("controllers"))
        lacking.enter_context(cluster.without("scheduler", {"create"}, "pods/binding"))
        replica = lacking.enter_context(cluster.replica("scheduler"))
        create_set(cluster, workload)
        text = f"ServiceAccount {NAMESPACE}/grovekeeper-scheduler may not create pods/binding"
        eventually(lambda: text in json.dumps([g.get("status") for g in owned(cluster, "PodGang", workload)]), replica.daemon.tail)
        assert any(text in said for said in replica.texts), replica.texts
        time.sleep(10.0)
        cluster.apply_role(cluster.roles["ClusterRole", "grovekeeper-scheduler"])
        eventually(lambda: bound(cluster, workload) == 2, replica.daemon.tail, RECOVERY_S)


@pytest.mark.parametrize(("component", "resource"), [("controllers", "podcliquesets/status"), ("scheduler", "podgangs/status")])
def test_a_missing_right_to_write_status(cluster: InCluster, workload: str, component: str, resource: str) -> None:
    with contextlib.ExitStack() as lacking:
        lacking.enter_context(cluster.without(component, {"patch"}, resource))
        replicas = {c: lacking.enter_context(cluster.replica(c)) for c in ("controllers", "scheduler")}
        create_set(cluster, workload)
        text = f"ServiceAccount {NAMESPACE}/grovekeeper-{component} may not patch {resource}"
        eventually(lambda: any(text in said for said in replicas[component].texts), replicas[component].daemon.tail)
        cluster.apply_role(cluster.roles["ClusterRole", f"grovekeeper-{component}"])
        kind = "PodCliqueSet" if component == "controllers" else "PodGang"
        eventually(lambda: any(o.get("status") for o in owned(cluster, kind, workload)), replicas[component].daemon.tail, RECOVERY_S)
        eventually(lambda: bound(cluster, workload) == 2, replicas["scheduler"].daemon.tail, RECOVERY_S)


def test_a_missing_right_to_events_hinders_nothing(cluster: InCluster, workload: str) -> None:
    with contextlib.ExitStack() as lacking:
        replicas = {}
        for component in ("controllers", "scheduler"):
            lacking.enter_context(cluster.without(component, {"create", "patch"}, "events"))
            replicas[component] = lacking.enter_context(cluster.replica(component))
        create_set(cluster, workload)
        eventually(lambda: bound(cluster, workload) == 2, replicas["scheduler"].daemon.tail)
        text = f"ServiceAccount {NAMESPACE}/grovekeeper-controllers may not create events"
        eventually(lambda: any(text in said for said in replicas["controllers"].texts), replicas["controllers"].daemon.tail)
        assert all(replica.ready()[0] for replica in replicas.values())


# the way to the API server


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("https://127.0.0.1:{closed}", "connection refused"),
        ("https://grovekeeper.invalid:{closed}", "DNS does not resolve grovekeeper.invalid"),
    ],
    ids=["refused", "name"],
)
def test_an_api_server_that_is_nowhere(bare: InCluster, server: str, words: str) -> None:
    identity = bare.identity("scheduler")
    address = server.format(closed=free_port())
    write_kubeconfig(identity.kubeconfig, address, identity.ca, identity.token)
    with bare.replica("scheduler", identity=identity) as replica:
        wait_unready(replica, f"API server {address} cannot be reached: {words}")
        assert replica.logged("trouble") == 1


@BOTH
def test_a_wrong_ca_and_then_the_right_one(cluster: InCluster, component: str) -> None:
    identity = cluster.identity(component)
    other = cluster.folder / "other"
    identity.ca.write_bytes(write_certificates(other).ca.read_bytes())
    with cluster.replica(component, identity=identity) as replica:
        wait_unready(replica, cluster.plane.server, "TLS: its certificate is refused")
        identity.mend()
        wait_ready(replica)


@BOTH
def test_a_token_that_is_refused_and_then_a_good_one(cluster: InCluster, component: str) -> None:
    identity = cluster.identity(component)
    identity.token.write_text("expired")
    with cluster.replica(component, identity=identity) as replica:
        wait_unready(replica, cluster.plane.server, "refuses the credentials (401)")
        identity.mend()
        wait_ready(replica)


@BOTH
def test_an_api_server_that_comes_later_goes_and_returns(cluster: InCluster, component: str) -> None:
    plane, identity = cluster.plane, cluster.identity(component)
    cluster.client.close()
    plane.stop_apiserver()
    try:
        with cluster.replica(component, "--no-leader-elect", identity=identity) as replica:
            for _ in range(2):
                wait_unready(replica, f"API server {plane.server} cannot be reached: connection refused")
                plane.start_apiserver()
                wait_ready(replica)
                plane.stop_apiserver()
    finally:
        if "kube-apiserver" not in plane.running():
            plane.start_apiserver()


# leadership


@BOTH
def test_who_loses_the_lease_competes_again(cluster: InCluster, component: str) -> None:
    """The API server is away for longer than a lease may go without renewal, then the lease is given to somebody else by hand."""
    plane = cluster.plane
    with cluster.replica(component) as replica:
        eventually(lambda: replica.logged("working") > 0, replica.daemon.tail)
        pid = replica.daemon.pid
        cluster.client.close()
        plane.stop_apiserver()
        try:
            eventually(lambda: replica.logged("beginning anew") == 1, replica.daemon.tail, 20.0)
            wait_unready(replica, f"API server {plane.server} cannot be reached: connection refused")
        finally:
            plane.start_apiserver()
        eventually(lambda: replica.logged("leading") == 2, replica.daemon.tail, 40.0)
        wait_ready(replica)
        stolen = {"spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 2}}
        cluster.client.request("PATCH", cluster.lease_path(component), stolen, "application/merge-patch+json")
        eventually(lambda: replica.logged("leading") == 3, replica.daemon.tail, 40.0)
        assert replica.daemon.pid == pid
        lost = f'grovekeeper_leader_transitions_total{{name="{LEASES[component]}",transition="lost"}} 2.0'
        assert lost in replica.daemon.metrics().splitlines()
        assert replica.daemon.stop() < 5.0
        assert cluster.holder(component) == ""


@BOTH
def test_a_stop_without_an_api_server_is_one(cluster: InCluster, component: str) -> None:
    plane = cluster.plane
    with cluster.replica(component) as replica:
        eventually(lambda: replica.logged("working") > 0, replica.daemon.tail)
        cluster.client.close()
        plane.stop_apiserver()
        try:
            assert replica.daemon.stop() < 15.0
            assert replica.logged("beginning anew") == 0
        finally:
            plane.start_apiserver()
    cluster.free_lease(component)


def first_write(cluster: InCluster, component: str, since: float) -> float | None:
    """UNIX time of the first useful write after `since`."""
    return min((ended_at(entry) for entry in cluster.writes(since, component) if succeeded(entry)), default=None)


def succeeded(entry: dict[str, Any]) -> bool:
    return entry["responseStatus"]["code"] < 300 and entry["objectRef"]["resource"] != "events"


@pytest.mark.parametrize(("how", "limit_s"), [("term", 8.0), ("kill", 20.0)])
@BOTH
def test_another_replica_takes_over(
    cluster: InCluster, workload: str, component: str, how: str, limit_s: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """The leader ends in the middle of a scale-up; how long until somebody else writes the first useful thing."""
    with contextlib.ExitStack() as running:
        both = [running.enter_context(cluster.replica(component))]
        eventually(lambda: cluster.holder(component) != "", both[0].daemon.tail)
        both.append(running.enter_context(cluster.replica(component)))
        other = running.enter_context(cluster.replica("controllers" if component == "scheduler" else "scheduler"))
        for replica in (*both, other):
            wait_ready(replica)  # followers are ready too
        create_set(cluster, workload, pods=30)
        eventually(lambda: first_write(cluster, component, 0.0) is not None, both[0].daemon.tail)
        began = time.time()
        (both[0].daemon.kill if how == "kill" else both[0].daemon.stop)()
        ended = time.time()
        cluster.client.request("PATCH", SETS.path("default", workload), {"spec": {"replicas": 2}}, "application/merge-patch+json")
        eventually(lambda: bound(cluster, workload) == 60, both[1].daemon.tail, 40.0)
        released = ended if how == "term" else began
        took = (first_write(cluster, component, released) or float("inf")) - began
    with capsys.disabled():
        print(f"\n{component} {how}: ended after {ended - began:.1f} s, the other one writes {took:.1f} s after the signal")  # noqa: T201
    assert took <= limit_s
    if how == "term":
        assert ended - began <= 5.0
        assert_no_write_between_terms(cluster, component, *both)


def assert_no_write_between_terms(cluster: InCluster, component: str, old: Replica, new: Replica) -> None:
    """Between the moment when the old leader closes its fence, before it lets go of the lease, and the next term nobody writes."""
    closed, opened = old.logged_at("not leading"), new.logged_at("leading")
    assert closed < opened
    between = [e["requestURI"] for e in cluster.writes(closed, component) if closed < received_at(e) < opened]
    assert between == []


def test_at_rest_nothing_is_written_and_little_is_done(cluster: InCluster, workload: str, capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.ExitStack() as running:
        replicas = {f"{c} {i}": running.enter_context(cluster.replica(c)) for i in range(2) for c in ("controllers", "scheduler")}
        for replica in replicas.values():
            wait_ready(replica)
        create_set(cluster, workload, pods=10)
        eventually(lambda: bound(cluster, workload) == 10, lambda: "not bound")
        eventually(lambda: all(o["status"].get("phase") == "Running" for o in owned(cluster, "PodGang", workload)), "gang does not run")
        time.sleep(8.0)
        began, clock = time.time(), time.monotonic()
        before = {name: cpu_s(pid) for name, r in replicas.items() if (pid := r.daemon.pid) is not None}
        time.sleep(REST_S)
        seconds = time.monotonic() - clock
        used = {name: 100 * (cpu_s(pid) - before[name]) / seconds for name, r in replicas.items() if (pid := r.daemon.pid) is not None}
        written = [(e["verb"], e["requestURI"]) for c in ("controllers", "scheduler") for e in cluster.writes(began, c)]
    with capsys.disabled():
        print(f"\nat rest, % of a core: {', '.join(f'{name} {percent:.2f}' for name, percent in sorted(used.items()))}")  # noqa: T201
    assert written == []
    assert max(used.values()) <= 2.0, used
