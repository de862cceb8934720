"""Leader election and the fence: renewals that hang, paused processes, two candidates, edits by hand."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import msgspec
import pytest

from controllers.runtime import errors
from controllers.runtime.clock import SystemClock
from controllers.runtime.fence import LeaseFence, OpenFence
from controllers.runtime.leader import LeaderElector, LeadershipLost, Timing, identity
from tests.runtime_fakes import Call, FakeTransport, HandClock, seeded

LEASE = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/one"
FAST = Timing(duration_s=0.9, renew_deadline_s=0.6, retry_s=0.02)


class LeaseServer:
    """One lease with the server's rules: resourceVersion must match, creation only when absent."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.writes: list[dict[str, Any]] = []
        self.before: Callable[[Call], Awaitable[None]] | None = None
        self.after: Callable[[Call], Awaitable[None]] | None = None

    async def answer(self, call: Call) -> Any:
        if self.before is not None:
            await self.before(call)
        await anyio.lowlevel.checkpoint()
        answer = self._apply(call)
        if self.after is not None:
            await self.after(call)
        return answer

    def _apply(self, call: Call) -> dict[str, Any]:
        if call.method == "GET":
            if self.lease is None:
                raise errors.NotFound(404, "NotFound")
            return self.lease
        if call.method == "POST" and self.lease is not None:
            raise errors.AlreadyExists(409, "AlreadyExists")
        if call.method == "PUT":
            if self.lease is None:
                raise errors.NotFound(404, "NotFound")
            if call.body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                raise errors.Conflict(409, "Conflict")
        return self.put(call.body)

    def put(self, body: dict[str, Any]) -> dict[str, Any]:
        self.version += 1
        metadata = {**body["metadata"], "uid": "lu", "resourceVersion": str(self.version)}
        self.lease = {**body, "metadata": metadata}
        self.writes.append(self.lease)
        return self.lease

    def edit(self, **spec: Any) -> None:
        """What somebody does by hand."""
        assert self.lease is not None
        self.put({**self.lease, "spec": {**self.lease["spec"], **spec}})

    @property
    def holder(self) -> str:
        return self.lease["spec"]["holderIdentity"] if self.lease is not None else ""


class Candidate:
    """One process: an elector, its fence and what its work experienced."""

    def __init__(self, server: LeaseServer, name: str, clock: Any = None, timing: Timing = FAST) -> None:
        self.clock = clock or SystemClock()
        self.fence = LeaseFence(self.clock, lease_duration_s=timing.duration_s, request_budget_s=timing.duration_s / 3)
        self.transport = FakeTransport(server.answer)
        self.elector = LeaderElector(
            self.transport, self.fence, self.clock, seeded(), namespace="ns", name="one", holder=name, timing=timing
        )
        self.stop = anyio.Event()
        self.leading = anyio.Event()
        self.trail: list[str] = []

    async def lead(self) -> None:
        self.fence.check()
        self.leading.set()
        self.trail.append("begun")
        try:
            await self.stop.wait()
            self.trail.append("drained")
        except anyio.get_cancelled_exc_class():
            self.trail.append("cancelled behind an open fence" if self.fence.is_open else "cancelled behind a closed fence")
            raise

    async def run(self) -> None:
        try:
            await self.elector.run(self.lead, self.stop)
        except LeadershipLost as lost:
            self.trail.append(f"lost: {lost}")


@pytest.fixture
def server() -> LeaseServer:
    return LeaseServer()


async def test_a_free_lease_is_created_and_released_last(server: LeaseServer) -> None:
    one = Candidate(server, "one")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await one.leading.wait()
        assert server.holder == "one"
        spec = server.writes[0]["spec"]
        assert (spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (1, 1)
        one.stop.set()
    assert one.trail == ["begun", "drained"]
    assert server.holder == ""
    with pytest.raises(errors.NotLeader):
        one.fence.check()


async def test_only_one_of_two_leads_and_the_other_follows_at_once_after_a_release(server: LeaseServer) -> None:
    one, two = Candidate(server, "one"), Candidate(server, "two")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await one.leading.wait()
        tasks.start_soon(two.run)
        await anyio.sleep(0.05)
        assert two.trail == []
        one.stop.set()
        with anyio.fail_after(1):
            await two.leading.wait()
        assert (one.elector.epoch, two.elector.epoch) == (1, 2)
        two.stop.set()
    assert two.trail == ["begun", "drained"]


async def test_candidates_that_start_together_never_lead_together(server: LeaseServer) -> None:
    candidates = [Candidate(server, name) for name in ("one", "two", "three")]
    async with anyio.create_task_group() as tasks:
        for candidate in candidates:
            tasks.start_soon(candidate.run)
        await anyio.sleep(0.05)
        assert sum(candidate.elector.is_leading for candidate in candidates) == 1
        for candidate in candidates:
            candidate.stop.set()


async def test_a_renewal_that_hangs_loses_the_lease_behind_a_closed_fence(server: LeaseServer) -> None:
    one, two = Candidate(server, "one"), Candidate(server, "two")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await one.leading.wait()

        async def hang(call: Call) -> None:
            if one.transport.calls[-1] is call:
                await anyio.sleep_forever()

        server.before = hang
        tasks.start_soon(two.run)
        with anyio.fail_after(2):
            await two.leading.wait()
        assert one.trail == ["begun", "cancelled behind a closed fence", "lost: not renewed in time"]
        two.stop.set()


async def test_a_short_outage_is_survived(server: LeaseServer) -> None:
    one = Candidate(server, "one", timing=Timing(1.0, 0.6, 0.02))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await one.leading.wait()

        async def refuse(call: Call) -> None:
            raise errors.TransportError("refused")

        server.before = refuse
        await anyio.sleep(0.05)
        server.before = None
        await anyio.sleep(0.05)
        assert one.elector.is_leading
        one.stop.set()
    assert one.trail == ["begun", "drained"]


@pytest.mark.parametrize(
    "edit",
    [
        lambda server: server.edit(holderIdentity="somebody"),
        lambda server: server.edit(holderIdentity=""),
        lambda server: setattr(server, "lease", None),
    ],
    ids=["another holder", "no holder", "deleted"],
)
async def test_a_lease_taken_by_hand_is_noticed_at_the_next_renewal(server: LeaseServer, edit: Callable[[LeaseServer], None]) -> None:
    one = Candidate(server, "one")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await one.leading.wait()
        edit(server)
    assert one.trail == ["begun", "cancelled behind a closed fence", "lost: the lease was taken or deleted"]


async def test_an_edit_that_leaves_the_holder_alone_is_survived(server: LeaseServer) -> None:
    one = Candidate(server, "one")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await one.leading.wait()
        assert server.lease is not None
        server.put({**server.lease, "metadata": {**server.lease["metadata"], "labels": {"a": "b"}}})
        await anyio.sleep(0.06)
        assert one.elector.is_leading
        assert server.lease["metadata"]["labels"] == {"a": "b"}
        one.stop.set()


async def test_a_write_of_unknown_outcome_is_settled_by_the_holder(server: LeaseServer) -> None:
    one = Candidate(server, "one")

    async def vanish(call: Call) -> None:
        if call.method == "POST":
            raise errors.UnknownOutcome("timeout")

    server.after = vanish
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        with anyio.fail_after(1):
            await one.leading.wait()
        assert one.elector.epoch == 1
        one.stop.set()


async def test_failure_of_the_work_releases_the_lease(server: LeaseServer) -> None:
    one = Candidate(server, "one")

    async def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup):
        await one.elector.run(fail, one.stop)
    assert server.holder == ""
    assert not one.fence.is_open


async def test_a_stop_while_following_ends_without_work(server: LeaseServer) -> None:
    server.put({"metadata": {}, "spec": {"holderIdentity": "other", "leaseDurationSeconds": 60}})
    one = Candidate(server, "one")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await anyio.sleep(0.03)
        one.stop.set()
    assert one.trail == []
    assert server.holder == "other"


async def test_an_abandoned_lease_is_taken_when_it_expires_not_a_period_later(server: LeaseServer) -> None:
    server.put({"metadata": {}, "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 1}})
    one = Candidate(server, "one", timing=Timing(1.0, 10.0, 8.0))
    began = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        with anyio.fail_after(5):
            await one.leading.wait()
        one.stop.set()
    assert 1.0 <= anyio.current_time() - began < 3.0


async def test_what_keeps_the_lease_from_being_written_is_told_until_it_is_over(server: LeaseServer) -> None:
    one = Candidate(server, "one")
    told: list[tuple[str, str]] = []
    answers: list[Exception | None] = [
        errors.Forbidden(403, "Forbidden", "no"),
        errors.TransportError("x", "refused"),
        TimeoutError(),
        None,
    ]
    elector = LeaderElector(
        one.transport,
        one.fence,
        one.clock,
        seeded(),
        namespace="ns",
        name="one",
        holder="one",
        timing=FAST,
        told=lambda what, error: told.append((what, type(error).__name__)),
    )

    async def fail(call: Call) -> None:
        match answers[0]:
            case None:
                return
            case TimeoutError():
                del answers[0]
                await anyio.sleep_forever()
            case error:
                del answers[0]
                raise error

    server.before = fail
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(elector.run, one.lead, one.stop)
            await one.leading.wait()
            one.stop.set()
    assert [what for what, _ in told[:4]] == ["lease ns/one"] * 4
    assert [error for _, error in told[:4]] == ["Forbidden", "TransportError", "TransportError", "NoneType"]


async def test_a_foreign_lease_expires_by_our_clock_not_by_its_times(server: LeaseServer) -> None:
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 15, "leaseTransitions": 6, "renewTime": "1999-01-01T00:00:00.000000Z"}
    server.put({"metadata": {}, "spec": spec})
    clock = HandClock()
    one = Candidate(server, "one", clock, timing=Timing(15.0, 10.0, 0.01))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await anyio.sleep(0.03)
        assert one.trail == []
        clock.advance(14.0)
        server.edit(renewTime="1999-01-01T00:00:01.000000Z")
        await anyio.sleep(0.03)
        clock.advance(14.0)
        await anyio.sleep(0.03)
        assert one.trail == []
        clock.advance(1.1)
        with anyio.fail_after(1):
            await one.leading.wait()
        assert one.elector.epoch == 7
        one.stop.set()


async def test_a_paused_leader_finds_its_fence_closed_at_the_first_write() -> None:
    server, clock = LeaseServer(), HandClock()
    one = Candidate(server, "one", clock, timing=Timing(15.0, 10.0, 2.0))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await one.leading.wait()
        clock.advance(9.9)
        one.fence.check()
        clock.advance(60.0)
        with pytest.raises(errors.NotLeader):
            one.fence.check()
        tasks.cancel_scope.cancel()


def test_the_fence_counts_from_the_start_of_the_renewal() -> None:
    clock = HandClock()
    fence = LeaseFence(clock, lease_duration_s=15.0, request_budget_s=5.0)
    with pytest.raises(errors.NotLeader):
        fence.check()
    fence.renewed(clock.monotonic() - 3.0, 4)
    fence.check()
    assert fence.epoch == 4
    clock.advance(6.9)
    fence.check()
    clock.advance(0.1)
    with pytest.raises(errors.NotLeader):
        fence.check()
    fence.renewed(clock.monotonic(), 4)
    fence.check()
    fence.close()
    with pytest.raises(errors.NotLeader):
        fence.check()


def test_without_election_the_fence_is_open() -> None:
    fence = OpenFence()
    fence.check()
    assert fence.epoch == 0


def test_identities_of_one_host_differ() -> None:
    rng = seeded()
    assert identity(rng) != identity(rng)
    assert len(identity(rng).split("_")) >= 3


async def test_times_are_written_with_six_digits(server: LeaseServer) -> None:
    one = Candidate(server, "one", HandClock())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.run)
        await one.leading.wait()
        one.stop.set()
    assert server.writes[0]["spec"]["renewTime"] == "2026-01-01T00:16:40.000000Z"
    assert msgspec.json.encode(server.writes[0])
