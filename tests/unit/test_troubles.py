"""What a process says about a cluster that it cannot work with: which sentence, how often, and when it is over."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest

from api.plan import Bind
from controllers.runtime import errors, troubles
from controllers.runtime.advice import advice, missing_right
from controllers.runtime.refusals import RIGHT_MISSING_S, outcome_of
from controllers.runtime.troubles import Troubles
from scheduler.memory import Memory
from tests.runtime_fakes import HandClock, ref_of

SERVER = "https://10.96.0.1:443"
CONTROLLERS = "system:serviceaccount:grovekeeper-system:grovekeeper-controllers"


def forbidden(verb: str, resource: str, group: str = "", where: str = "at the cluster scope", user: str = CONTROLLERS) -> errors.Forbidden:
    """As kube-apiserver says it."""
    what = f"{resource}.{group}" if group else resource
    text = f'{what} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group "{group}" {where}'
    return errors.Forbidden(403, "Forbidden", text)


def missing(path: str) -> errors.NotFound:
    return errors.NotFound(404, "NotFound", "the server could not find the requested resource", method="GET", path=path)


ESCALATION = (
    f'roles.rbac.authorization.k8s.io "a" is forbidden: user "{CONTROLLERS}" (groups=["system:authenticated"]) is attempting to grant '
    'RBAC permissions not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'
)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            forbidden("create", "pods/binding", where='in the namespace "serving"'),
            (
                "ServiceAccount grovekeeper-system/grovekeeper-controllers may not create pods/binding in namespace serving",
                "verbs: [create]",
            ),
        ),
        (
            forbidden("update", "leases", "coordination.k8s.io", 'in the namespace "grovekeeper-system"'),
            ("may not update leases.coordination.k8s.io", 'apiGroups: ["coordination.k8s.io"], resources: [leases], verbs: [update]'),
        ),
        (forbidden("patch", "podcliquesets/status", "grove.io", user="jane"), ("User jane may not patch podcliquesets/status.grove.io",)),
        (
            errors.Forbidden(403, "Forbidden", ESCALATION),
            ("may not grant the rights", '{APIGroups:[""]', "kubectl apply -k manifests/base"),
        ),
    ],
    ids=["bind", "lease", "status of a user", "granting"],
)
def test_a_missing_right_names_who_what_and_what_to_add(error: errors.Forbidden, words: tuple[str, ...]) -> None:
    text = str(missing_right(error))
    assert [word for word in words if word not in text] == [], text


@pytest.mark.parametrize("text", ["exceeded quota: q, requested: pods=1", "admission webhook x denied the request", ""])
def test_other_refusals_are_no_missing_rights(text: str) -> None:
    assert missing_right(errors.Forbidden(403, "Forbidden", text)) is None


def test_what_is_told_is_grouped() -> None:
    found = advice(
        SERVER,
        {
            "podcliques.grove.io": missing("/apis/grove.io/v1alpha1/podcliques"),
            "podgangs.scheduler.grove.io": missing("/apis/scheduler.grove.io/v1alpha1/podgangs"),
            "services": forbidden("watch", "services"),
            "secrets": forbidden("list", "secrets"),
            "pods": errors.TransportError("GET /api/v1/pods: refused", "connection refused"),
            "nodes": errors.TransportError("GET /api/v1/nodes: refused", "connection refused"),
            "lease a/b": errors.Unauthorized(401, "Unauthorized", "Unauthorized"),
        },
    )
    assert found[0] == (
        "Custom resource definitions are missing: podcliques.grove.io, podgangs.scheduler.grove.io. "
        "Install them: grovekeeper install --crds"
    )
    assert found[1].startswith("ServiceAccount grovekeeper-system/grovekeeper-controllers may not list and watch secrets, services. ")
    assert 'apiGroups: [""], resources: [secrets, services], verbs: [list, watch]' in found[1]
    assert found[2].startswith(f"API server {SERVER} refuses the credentials (401)")
    assert found[3:] == [f"API server {SERVER} cannot be reached: connection refused"]


@asynccontextmanager
async def running(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[tuple[Troubles, HandClock]]:
    """Troubles that look at their clock often."""
    monkeypatch.setattr(troubles, "GRACE_S", 0.001)
    clock = HandClock()
    subject = Troubles(SERVER, clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(subject.run)
        yield subject, clock
        tasks.cancel_scope.cancel()


async def said(caplog: pytest.LogCaptureFixture, clock: HandClock, seconds: float) -> list[str]:
    """Messages of the next seconds of the clock."""
    caplog.clear()
    for _ in range(int(seconds)):
        clock.advance(1.0)
        await anyio.sleep(0.003)
    return caplog.messages


async def test_the_same_trouble_is_logged_at_growing_intervals(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.INFO)
    async with running(monkeypatch) as (subject, clock):
        for what in ("pods", "nodes", "pods"):
            subject.tell(what, errors.TransportError("x", "connection refused"))
        assert await said(caplog, clock, 25) == ["trouble"]
        assert vars(caplog.records[0])["what"] == [f"API server {SERVER} cannot be reached: connection refused"]
        assert len(await said(caplog, clock, 200)) == 3, "after 30, 90 and 210 seconds"
        subject.tell("pods", missing("/api/v1/pods"))
        assert await said(caplog, clock, 5) == ["trouble"], "another one is told at once"
        subject.tell("pods", None)
        assert await said(caplog, clock, 5) == [], "half of it remains"
        subject.tell("nodes", None)
        assert await said(caplog, clock, 5) == ["trouble over"]
        assert await said(caplog, clock, 20) == []


async def test_a_server_that_words_every_refusal_differently_fills_no_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    async with running(monkeypatch) as (subject, clock):
        lines = 0
        for port in range(4 * troubles.AT_ONCE):
            text = f"etcdserver: read tcp 127.0.0.1:{30000 + port}->127.0.0.1:2379: connection reset"
            subject.tell("pods", errors.ServerBusy(500, "InternalError", text))
            lines += len(await said(caplog, clock, 1))
        assert troubles.AT_ONCE // 2 <= lines <= troubles.AT_ONCE
        assert "30079" in subject.lasting()[0], "who asks hears the latest"


async def test_what_passes_within_moments_is_not_told() -> None:
    clock = HandClock()
    subject = Troubles(SERVER, clock)
    subject.tell("pods", errors.TransportError("x", "connection refused"))
    assert subject.lasting() == []
    clock.advance(troubles.GRACE_S)
    assert len(subject.lasting()) == 1
    subject.tell("pods", errors.TransportError("x", "no answer in time"))
    assert subject.lasting() == [f"API server {SERVER} cannot be reached: no answer in time"], "another error does not begin anew"
    subject.tell("pods", forbidden("watch", "pods"))
    clock.advance(troubles.GRACE_S - 0.1)
    assert subject.lasting() == [f"API server {SERVER} cannot be reached: no answer in time"], "refused by a server that starts"
    clock.advance(0.1)
    assert "may not watch pods" in subject.lasting()[0]
    subject.tell("pods", None)
    assert subject.lasting() == []


def test_a_gang_whose_bind_lacks_a_right_sits_out_no_longer_than_the_next_try() -> None:
    memory = Memory()
    bind = Bind(ref_of(), "node")
    for _ in range(8):
        outcome = outcome_of(forbidden("create", "pods/binding"), bind, 0)
        assert memory.refused(outcome, 0.0) <= RIGHT_MISSING_S
    assert memory.refusal is not None
    assert "may not create pods/binding" in memory.refusal.message


def test_refused_writes_are_logged_once_per_right(caplog: pytest.LogCaptureFixture) -> None:
    clock = HandClock()
    subject = Troubles(SERVER, clock)
    for namespace in ("a", "b"):
        for _ in range(5):
            subject.refused(forbidden("create", "pods", where=f'in the namespace "{namespace}"'))
    subject.refused(errors.Forbidden(403, "Forbidden", "exceeded quota"))
    subject.refused(forbidden("watch", "pods"))
    assert caplog.messages == ["right missing"]
    assert "may not create pods. Add" in vars(caplog.records[0])["what"]
    clock.advance(31.0)
    subject.refused(forbidden("create", "pods"))
    clock.advance(31.0)
    subject.refused(forbidden("create", "pods"))
    assert len(caplog.messages) == 2
    clock.advance(troubles.FORGET_S + 1.0)
    subject.refused(forbidden("create", "pods"))
    assert len(caplog.messages) == 3
    assert subject.lasting() == []
