"""The executor: requests of every operation, what each error means, stages and slow start."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from api.core import Node, Pod, Secret
from api.grove import PodClique
from api.plan import Apply, ApplyStatus, Bind, Create, Delete, Emit, Key, Op, Outcome, PatchStatus, Plan, Ref, SetFinalizers, Stage, Ungate
from controllers.runtime import errors
from controllers.runtime.apply import Executor
from controllers.runtime.expectations import Expectations
from tests.runtime_fakes import Call, FakeCaches, FakeRecorder, FakeTransport, HandClock, pod, ref_of

KEY = Key("ns", "clique")
POD = "/api/v1/namespaces/ns/pods/p"
OWNER = {"controller": True, "uid": "owner", "kind": "PodClique", "name": "clique", "apiVersion": "grove.io/v1alpha1"}
MANIFEST = {"metadata": {"name": "p", "namespace": "ns", "ownerReferences": [OWNER], "labels": {"i": "0"}}, "spec": {"x": 1}}
CLIQUE = Ref(PodClique.KIND, "ns", "c", "cu")


class World:
    """An executor with everything around it faked. `answers` maps "METHOD path" to what is answered or raised, else success."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.clock = HandClock()
        self.caches = FakeCaches(Pod.KIND, PodClique.KIND)
        self.expectations = Expectations(self.caches, self.clock)
        self.recorder = FakeRecorder()
        self.transport = FakeTransport(self._answer)
        self.executor = Executor(self.transport, "grovekeeper/podclique", self.expectations, self.recorder, self.clock, concurrency=4)

    async def _answer(self, call: Call) -> Any:
        await anyio.lowlevel.checkpoint()
        answer = self.answers.get(f"{call.method} {call.path}", {"metadata": {"resourceVersion": "7"}})
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def run(self, *stages: Stage) -> Outcome:
        return await self.executor.run(KEY, Plan(stages))

    @property
    def sent(self) -> list[str]:
        return [f"{call.method} {call.path}" for call in self.transport.calls]


@pytest.fixture
def world() -> World:
    return World()


APPLIED = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON = "application/json"
GROUP = "/apis/grove.io/v1alpha1/namespaces/ns/podcliques/c"

REQUESTS: list[tuple[Op, str, str, Any]] = [
    (Create(Pod.KIND, MANIFEST), "POST /api/v1/namespaces/ns/pods", JSON, {"apiVersion": "v1", "kind": "Pod", **MANIFEST}),
    (
        Apply(PodClique.KIND, {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"replicas": 2}}, uid="cu"),
        f"PATCH {GROUP}",
        APPLIED,
        {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodClique",
            "metadata": {"name": "c", "namespace": "ns", "uid": "cu"},
            "spec": {"replicas": 2},
        },
    ),
    (
        ApplyStatus(CLIQUE, {"replicas": 2}),
        f"PATCH {GROUP}/status",
        APPLIED,
        {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodClique",
            "metadata": {"name": "c", "namespace": "ns", "uid": "cu"},
            "status": {"replicas": 2},
        },
    ),
    (PatchStatus(ref_of(), {"conditions": []}), f"PATCH {POD}/status", STRATEGIC, {"metadata": {"uid": "u"}, "status": {"conditions": []}}),
    (
        SetFinalizers(CLIQUE, ("a",), "12"),
        f"PATCH {GROUP}",
        MERGE,
        {"metadata": {"uid": "cu", "resourceVersion": "12", "finalizers": ["a"]}},
    ),
    (
        Delete(ref_of(), "9", grace_period_s=0),
        f"DELETE {POD}",
        JSON,
        {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": "u", "resourceVersion": "9"},
            "propagationPolicy": "Background",
            "gracePeriodSeconds": 0,
        },
    ),
    (
        Ungate(ref_of(), "grove.io/podgang"),
        f"PATCH {POD}",
        STRATEGIC,
        {"metadata": {"uid": "u"}, "spec": {"schedulingGates": [{"$patch": "delete", "name": "grove.io/podgang"}]}},
    ),
    (
        Bind(ref_of(), "n1"),
        f"POST {POD}/binding",
        JSON,
        {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
        },
    ),
]
OPS = [op for op, *_ in REQUESTS]


def name_of(value: object) -> str:
    return type(value).__name__ if isinstance(value, tuple(type(op) for op in OPS)) else ""


@pytest.mark.parametrize(("op", "request_line", "content_type", "body"), REQUESTS, ids=name_of)
async def test_request_of_each_operation(world: World, op: Op, request_line: str, content_type: str, body: Any) -> None:
    assert await world.run((op,)) == Outcome()
    [call] = world.transport.calls
    assert (f"{call.method} {call.path}", call.content_type, call.body) == (request_line, content_type, body)
    if content_type == APPLIED:
        assert call.query == {"fieldManager": "grovekeeper/podclique", "force": "true"}


def api(
    kind: type[errors.ApiError], status: int, message: str = "no", wait_s: float | None = None, cause: str = "", field: str = ""
) -> errors.ApiError:
    details = (errors.FieldCause(field, "", cause),) if cause or field else ()
    return kind(status, kind.__name__, message, details=details, retry_after_s=wait_s)


RBAC = 'pods is forbidden: User "jane" cannot create resource "pods" in API group "" in the namespace "ns"'
ERRORS: list[tuple[Exception, str, float, str]] = [
    (api(errors.Conflict, 409), "conflict", 0, ""),
    (api(errors.Invalid, 422), "blocked", 60, "InvalidSpec: "),
    (api(errors.Invalid, 422, field="metadata.uid"), "conflict", 0, ""),
    (api(errors.BadRequest, 400), "blocked", 60, "InvalidSpec: "),
    (api(errors.Forbidden, 403), "blocked", 60, "Forbidden: "),
    (api(errors.Forbidden, 403, "pods is forbidden: exceeded quota: q, used 1"), "blocked", 60, "QuotaExceeded: "),
    (api(errors.Forbidden, 403, RBAC), "blocked", 15, "Forbidden: User jane may not create pods in namespace ns. Add"),
    (api(errors.Forbidden, 403, cause="NamespaceTerminating"), "blocked", 60, "NamespaceTerminating: "),
    (api(errors.Forbidden, 403, "namespace ns because it is being terminated"), "blocked", 60, "NamespaceTerminating: "),
    (api(errors.TooManyRequests, 429, wait_s=5.0), "after", 5, ""),
    (api(errors.TooManyRequests, 429), "backoff", 0, ""),
    (api(errors.ServerBusy, 503, wait_s=3.0), "after", 3, ""),
    (api(errors.ServerBusy, 503), "backoff", 0, ""),
    (api(errors.Unauthorized, 401), "backoff", 0, ""),
    (api(errors.ApiError, 413), "blocked", 60, "InvalidSpec: "),
    (errors.TransportError("refused"), "after", 3, "refused"),
    (errors.UnknownOutcome("timeout"), "backoff", 0, "timeout"),
]


@pytest.mark.parametrize(("error", "result", "after_s", "prefix"), ERRORS, ids=str)
@pytest.mark.parametrize("op", [op for op in OPS if not isinstance(op, Bind)], ids=name_of)
async def test_what_each_error_means(world: World, op: Op, error: Exception, result: str, after_s: float, prefix: str) -> None:
    line = next(line for known, line, *_ in REQUESTS if known is op)
    world.answers[line] = error
    outcome = await world.run((op,), (Emit(ref_of(), "After", "never"),))
    assert (outcome.result, outcome.after_s) == (result, after_s)
    assert outcome.error.startswith(prefix)
    assert outcome.error
    assert outcome.failed_op == op
    assert world.recorder.events == []


@pytest.mark.parametrize("op", OPS, ids=name_of)
async def test_gone_object_is_done_where_nothing_is_left_to_do(world: World, op: Op) -> None:
    world.answers[next(line for known, line, *_ in REQUESTS if known is op)] = api(errors.NotFound, 404)
    expected = {"Create": "backoff", "Apply": "backoff", "Bind": "conflict"}.get(type(op).__name__, "done")
    assert (await world.run((op,))).result == expected


@pytest.mark.parametrize("op", OPS, ids=name_of)
async def test_unknown_outcome_demands_a_live_read(world: World, op: Op) -> None:
    world.answers[next(line for known, line, *_ in REQUESTS if known is op)] = errors.UnknownOutcome("timeout")
    assert (await world.run((op,))).result == "backoff"
    assert world.expectations.behind(KEY) == 0.0
    await world.expectations.settle(KEY)
    assert len(world.caches.live_reads) == 1


@pytest.mark.parametrize("status", [500, 502, 504])
async def test_server_errors_that_may_have_run_are_unknown(world: World, status: int) -> None:
    world.answers["POST /api/v1/namespaces/ns/pods"] = api(errors.ServerBusy, status)
    assert (await world.run((OPS[0],))).result == "backoff"
    assert world.expectations.behind(KEY) == 0.0


@pytest.mark.parametrize("op", OPS, ids=name_of)
async def test_closed_fence_propagates(world: World, op: Op) -> None:
    world.answers[next(line for known, line, *_ in REQUESTS if known is op)] = errors.NotLeader("closed")
    with pytest.raises(errors.NotLeader):
        await world.run((op,))


async def test_refusals_wait_longer_each_time_and_a_success_resets(world: World) -> None:
    line = "POST /api/v1/namespaces/ns/pods"
    world.answers[line] = api(errors.Forbidden, 403)
    assert [(await world.run((OPS[0],))).after_s for _ in range(6)] == [60, 120, 240, 480, 600, 600]
    del world.answers[line]
    assert (await world.run((OPS[0],))).result == "done"
    world.answers[line] = api(errors.Forbidden, 403)
    assert (await world.run((OPS[0],))).after_s == 60


async def test_success_is_expected_until_the_cache_shows_it(world: World) -> None:
    assert (await world.run((OPS[0],))).result == "done"
    assert world.expectations.behind(KEY) is not None
    world.caches.seen[Pod.KIND] = 7
    assert world.expectations.behind(KEY) is None


async def test_events_go_to_the_recorder(world: World) -> None:
    assert (await world.run((Emit(ref_of(), "Made", "made it"),))).result == "done"
    assert world.recorder.events == [(ref_of(), "Made", "made it", "Normal")]
    assert world.sent == []


def taken(uid: str = "owner", index: str = "0", owner: str = "clique", **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"ownerReferences": [{**OWNER, "uid": uid, "name": owner}], "labels": {"i": index}, "resourceVersion": "9", **metadata}
    }


@pytest.mark.parametrize(
    ("live", "result"),
    [
        (taken(), "done"),
        (taken(uid="other", owner="other"), "blocked"),
        ({"metadata": {"resourceVersion": "9"}}, "blocked"),
        (taken(index="1"), "blocked"),
        (taken(uid="before"), "backoff"),
        (taken(deletionTimestamp="2026-01-01T00:00:00Z"), "backoff"),
    ],
    ids=["our earlier create", "another owner", "no owner", "another index", "an owner's earlier life", "being deleted"],
)
async def test_create_of_a_taken_name(world: World, live: dict[str, Any], result: str) -> None:
    world.answers["POST /api/v1/namespaces/ns/pods"] = api(errors.AlreadyExists, 409)
    world.answers[f"GET {POD}"] = live
    outcome = await world.run((Create(Pod.KIND, MANIFEST, match_labels=("i",)),))
    assert outcome.result == result
    assert (world.expectations.behind(KEY) is not None) == (result == "done")


async def test_of_a_taken_secret_only_metadata_is_read(world: World) -> None:
    world.answers["POST /api/v1/namespaces/ns/secrets"] = api(errors.AlreadyExists, 409)
    world.answers["GET /api/v1/namespaces/ns/secrets/p"] = taken()
    assert (await world.run((Create(Secret.KIND, MANIFEST),))).result == "done"
    assert world.transport.calls[1].accept.startswith("application/json;as=PartialObjectMetadata;")


async def test_writes_fit_the_fence_and_get_longer_while_their_outcome_stays_unknown(world: World) -> None:
    line = "POST /api/v1/namespaces/ns/pods"
    world.answers[line] = errors.UnknownOutcome("no answer")
    for _ in range(4):
        assert (await world.run((OPS[0],))).result == "backoff"
    del world.answers[line]
    for _ in range(2):
        assert (await world.run((OPS[0],))).result == "done"
    assert [call.timeout_s for call in world.transport.calls] == [5.0, 10.0, 20.0, 30.0, 30.0, 5.0]


async def test_create_tries_the_fallback_names_in_order() -> None:
    world, free = World(), "p3"

    async def answer(call: Call) -> Any:
        if call.method == "POST" and call.body["metadata"]["name"] != free:
            raise api(errors.AlreadyExists, 409)
        return taken(uid="other")

    transport = FakeTransport(answer)
    executor = Executor(transport, "m", world.expectations, world.recorder, world.clock)
    op = Create(Pod.KIND, MANIFEST, fallback_names=("p2", free, "p4"))
    assert (await executor.run(KEY, Plan(((op,),)))).result == "done"
    assert [c.body["metadata"]["name"] for c in transport.calls if c.method == "POST"] == ["p", "p2", "p3"]


@pytest.mark.parametrize(
    ("live", "result", "error"),
    [
        ({"metadata": {"uid": "u"}, "spec": {"nodeName": "n1"}}, "done", ""),
        ({"metadata": {"uid": "u"}, "spec": {"nodeName": "n2"}}, "backoff", "foreign bind: Pod ns/p is on node n2, not on n1"),
        ({"metadata": {"uid": "u"}, "spec": {}}, "conflict", None),
        ({"metadata": {"uid": "new"}, "spec": {"nodeName": "n1"}}, "conflict", None),
    ],
    ids=["same node", "other node", "not bound", "another life"],
)
async def test_bind_conflict_is_settled_by_the_pod(world: World, live: dict[str, Any], result: str, error: str | None) -> None:
    world.answers[f"POST {POD}/binding"] = api(errors.Conflict, 409)
    world.answers[f"GET {POD}"] = live
    outcome = await world.run((Bind(ref_of(), "n1"),))
    assert outcome.result == result
    assert error is None or outcome.error == error


async def test_bind_refused_by_admission_says_so(world: World) -> None:
    world.answers[f"POST {POD}/binding"] = api(errors.Forbidden, 403, 'admission webhook "w" denied the request')
    outcome = await world.run((Bind(ref_of(), "n1"),))
    assert outcome.result == "blocked"
    assert outcome.error.startswith("BindRejected: ")


def deletes(*names: str) -> Stage:
    return tuple(Delete(ref_of(name)) for name in names)


async def test_next_stage_starts_only_without_error(world: World) -> None:
    world.answers["DELETE /api/v1/namespaces/ns/pods/b"] = api(errors.Conflict, 409)
    assert (await world.run(deletes("a"), deletes("b"), deletes("c"))).result == "conflict"
    assert [line[-1] for line in world.sent] == ["a", "b"]


async def test_slow_start_stops_after_the_batch_with_the_error(world: World) -> None:
    names = [f"p{i:02}" for i in range(20)]
    world.answers["DELETE /api/v1/namespaces/ns/pods/p02"] = api(errors.Conflict, 409)
    await world.run(deletes(*names))
    assert len(world.sent) == 3
    world.transport.calls.clear()
    world.answers.clear()
    assert (await world.run(deletes(*names))).result == "done"
    assert len(world.sent) == 20
    assert world.transport.most_running == 4


async def test_first_error_in_plan_order_decides(world: World) -> None:
    world.answers["DELETE /api/v1/namespaces/ns/pods/b"] = api(errors.Forbidden, 403)
    world.answers["DELETE /api/v1/namespaces/ns/pods/c"] = api(errors.Conflict, 409)
    outcome = await world.run(deletes("a", "b", "c"))
    assert (outcome.result, outcome.failed_op) == ("blocked", Delete(ref_of("b")))


async def test_cluster_scoped_objects_have_no_namespace(world: World) -> None:
    await world.run((PatchStatus(Ref(Node.KIND, "", "n1", "nu"), {}),))
    assert world.sent == ["PATCH /api/v1/nodes/n1/status"]


@pytest.mark.parametrize(
    "shown",
    [lambda w: w.caches.held.clear(), lambda w: hold(w, pod(deleting=True)), lambda w: hold(w, pod(uid="next"))],
    ids=["gone", "marked", "another life"],
)
async def test_delete_is_expected_until_the_cache_shows_it(world: World, shown: Callable[[World], None]) -> None:
    hold(world, pod())
    await world.run(deletes("p"))
    assert world.expectations.behind(KEY) is not None
    shown(world)
    assert world.expectations.behind(KEY) is None


def hold(world: World, obj: Pod) -> None:
    world.caches.held[(Pod.KIND, Key.of(obj))] = obj


async def test_an_apply_that_changed_nothing_is_not_sent_again_for_the_same_object(world: World) -> None:
    manifest = {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"x": 1}}
    hold(world, pod(rv="6"))
    await world.run((Apply(Pod.KIND, manifest),))
    hold(world, pod(rv="7"))
    await world.run((Apply(Pod.KIND, manifest),))
    assert len(world.sent) == 2, "only the second one is known to change nothing"
    await world.run((Apply(Pod.KIND, manifest),))
    assert len(world.sent) == 2
    await world.run((Apply(Pod.KIND, {**manifest, "spec": {"x": 2}}),))
    assert len(world.sent) == 3, "another intent is sent"
    hold(world, pod(rv="8"))
    await world.run((Apply(Pod.KIND, manifest),))
    assert len(world.sent) == 4, "somebody has changed the object"
    world.executor.forget(KEY)
    hold(world, pod(rv="7"))
    await world.run((Apply(Pod.KIND, manifest),))
    assert len(world.sent) == 5
