"""Reflector against a scripted server: whatever happens on the wire, the store ends up right."""

import asyncio
import json
import logging

import anyio
import pytest

from api.core import Pod, ResourceClaim
from api.grove import PodCliqueSet
from api.plan import Ref
from controllers.runtime import reflector as reflector_module
from controllers.runtime.errors import ServerBusy
from tests.unit.fakeapi import FakeApi, Reply, bookmark, event, pod, pod_list, refusal
from tests.unit.watchworld import NO_WATCH_LIST, PODS, stream, world


async def test_watch_list_then_changes() -> None:
    first = stream(
        event("ADDED", pod("a", 5)),
        event("ADDED", pod("b", 6)),
        event("MODIFIED", pod("a", 8)),
        event("DELETED", pod("b", 9)),
        bookmark(10, initial_end=True),
        event("ADDED", pod("c", 12)),
        bookmark(20),
    )
    async with world(lambda api: api.on("WATCH", PODS, first), label_selector="app=x", field_selector="spec.nodeName=n") as w:
        assert not w.informer.has_synced
        await w.informer.wait_synced()
        await w.until(20)
        assert w.names == ["a", "c"]
    query = w.api.seen("WATCH")[0].query
    assert (query["sendInitialEvents"], query["resourceVersionMatch"], query["allowWatchBookmarks"]) == ("true", "NotOlderThan", "true")
    assert (query["labelSelector"], query["fieldSelector"]) == ("app=x", "spec.nodeName=n")
    assert "resourceVersion" not in query
    assert 300 <= int(query["timeoutSeconds"]) <= 600
    assert w.metrics.lists == [1], "b was deleted before the list was complete"


async def test_nothing_is_visible_before_the_list_is_complete() -> None:
    async with world(lambda api: api.on("WATCH", PODS, stream(event("ADDED", pod("a", 5)), bookmark(6)))) as w:
        await w.api.arrived.wait()
        await asyncio.sleep(0.05)
        assert (w.names, w.informer.has_synced, w.informer.store.seen_rv) == ([], False, 0)


async def test_fallback_to_pages_where_watch_list_is_refused() -> None:
    def script(api: FakeApi) -> None:
        api.on("WATCH", PODS, NO_WATCH_LIST, stream(event("ADDED", pod("c", 31))))
        api.on("GET", PODS, pod_list(30, pod("a", 5), token="t1"), pod_list(30, pod("b", 6)))  # noqa: S106

    async with world(script) as w:
        await w.until(31)
        assert w.names == ["a", "b", "c"]
    pages = [dict(r.query) for r in w.api.seen("GET")]
    assert pages == [{"limit": "500"}, {"limit": "500", "continue": "t1"}]
    assert w.api.seen("WATCH")[1].query["resourceVersion"] == "30"


async def test_expired_page_token_leads_to_one_list_in_one_piece() -> None:
    def script(api: FakeApi) -> None:
        api.on("WATCH", PODS, NO_WATCH_LIST, stream())
        api.on("GET", PODS, pod_list(30, pod("gone", 5), token="t1"), refusal(410, "Expired"), pod_list(40, pod("a", 35)))  # noqa: S106

    async with world(script) as w:
        await w.until(40)
        assert w.names == ["a"]
    assert [dict(r.query) for r in w.api.seen("GET")][-1] == {}


async def test_resume_after_clean_end_and_after_a_cut_mid_line() -> None:
    line = event("ADDED", pod("c", 30))
    scripts = (
        stream(event("ADDED", pod("a", 5)), bookmark(10, initial_end=True), bookmark(15), end="close"),
        stream(event("ADDED", pod("b", 20)), line[: len(line) // 2], 0.01, end="cut"),
        stream(line),
    )
    async with world(lambda api: api.on("WATCH", PODS, *scripts)) as w:
        await w.until(30)
        assert w.names == ["a", "b", "c"]
    assert [r.query.get("resourceVersion") for r in w.api.seen("WATCH")] == [None, "15", "20"]
    assert w.metrics.rounds[:2] == ["closed", "network"]
    assert w.metrics.lists == [1], "no second list"


@pytest.mark.parametrize("how", ["answer", "event"])
async def test_410_relists_once_and_finds_lost_deletes(how: str) -> None:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    expired = refusal(410, "Expired") if how == "answer" else stream(event("ERROR", gone))
    scripts = (
        stream(event("ADDED", pod("a", 5)), event("ADDED", pod("b", 6)), bookmark(10, initial_end=True), end="close"),
        expired,
        stream(event("ADDED", pod("b", 6)), bookmark(90, initial_end=True)),
    )
    gone_pods: list[str] = []
    async with world(lambda api: api.on("WATCH", PODS, *scripts)) as w:
        w.informer.store.subscribe(lambda old, new: gone_pods.append(old.metadata.name) if old and not new else None)
        await w.until(90)
        assert w.names == ["b"]
    assert gone_pods == ["a"]
    assert w.metrics.rounds[:2] == ["closed", "expired"]
    assert w.metrics.lists == [2, 1]


async def test_410_for_ever_backs_off() -> None:
    def script(api: FakeApi) -> None:
        api.on("WATCH", PODS, NO_WATCH_LIST, refusal(410, "Expired"))
        api.on("GET", PODS, pod_list(10, pod("a", 5)))

    async with world(script) as w:
        while len(w.delays) < 12:  # noqa: ASYNC110 - the list of delays is the thing observed
            await asyncio.sleep(0.002)
    assert sum(w.delays[1:4]) > 1.0, "no more than three lists in the first second"
    assert all(0.16 * 2**n <= delay <= 0.24 * 2**n for n, delay in enumerate(w.delays[:7]))
    assert max(w.delays) <= 30.0
    assert w.delays[10] > 20.0


async def test_unreachable_server_is_tried_at_least_every_five_seconds() -> None:
    async with world(lambda api: api.on("WATCH", PODS, stream(bookmark(1, initial_end=True), end="cut"))) as w:
        while len(w.delays) < 10:  # noqa: ASYNC110
            await asyncio.sleep(0.002)
    assert max(w.delays) == 5.0


async def test_server_that_is_back_with_a_new_watch_cache_is_listed_without_delay() -> None:
    scripts = (
        stream(bookmark(1, initial_end=True), end="close"),
        *[stream(end="cut")] * 6,
        refusal(410, "Expired"),
        stream(bookmark(9, initial_end=True)),
    )
    async with world(lambda api: api.on("WATCH", PODS, *scripts)) as w:
        await w.until(9)
    assert w.metrics.rounds[:8] == ["closed", *["network"] * 6, "expired"]
    assert w.delays[6] > 4.0
    assert w.delays[7] < 0.5


async def test_long_outage_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        async with world(lambda api: api.on("WATCH", PODS, refusal(503, "ServiceUnavailable"))) as w:
            while len(w.delays) < 16:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
    assert 4 <= len([r for r in caplog.records if r.message == "watch interrupted"]) <= 5


async def test_garbage_on_the_wire_never_reaches_the_store(caplog: pytest.LogCaptureFixture) -> None:
    bad_pod = pod("bad", 12, priority="no number")
    bad_utf8 = event("ADDED", pod("utf", 13, nodeName="XX")).replace(b"XX", b"\xff\xfe")
    scripts = stream(
        event("ADDED", pod("a", 5)),
        bookmark(10, initial_end=True),
        event("SURPRISE", pod("x", 11)),
        event("SURPRISE", pod("x", 11)),
        event("ADDED", bad_pod),
        event("MODIFIED", {**bad_pod, "metadata": {**bad_pod["metadata"], "resourceVersion": "14"}}),
        bad_utf8,
        event("ADDED", {**pod("new", 15), "futureField": {"deep": [1]}}),
        event("MODIFIED", pod("a", 16, priority="bad")),
    )
    with caplog.at_level(logging.ERROR):
        async with world(lambda api: api.on("WATCH", PODS, scripts)) as w:
            await w.until(16)
            assert w.names == ["a", "new"]
    assert w.metrics.left_out == ["unknown_event", "unknown_event", "undecodable", "undecodable", "undecodable", "undecodable"]
    assert len(caplog.records) == 4, "each is logged once"
    assert len(w.api.seen("WATCH")) == 1


async def test_undecodable_object_can_still_be_deleted_and_survives_a_list() -> None:
    bad = pod("a", 20, priority="no number")
    scripts = (
        stream(event("ADDED", pod("a", 5)), event("ADDED", pod("b", 6)), bookmark(10, initial_end=True), end="close"),
        refusal(410, "Expired"),
        stream(event("ADDED", bad), bookmark(30, initial_end=True), 0.02, event("DELETED", {**bad, "metadata": pod("a", 40)["metadata"]})),
    )
    async with world(lambda api: api.on("WATCH", PODS, *scripts)) as w:
        await w.until(30)
        assert w.names == ["a"], "present but unreadable is not deleted"
        await w.until(40)
        assert w.names == []


async def test_an_object_that_cannot_be_read_is_told_once_with_its_uid_and_the_reason() -> None:
    told = list[tuple[Ref, str]]()
    bad = pod("a", 5, priority="no number")
    again = {**bad, "metadata": {**bad["metadata"], "resourceVersion": "6"}}
    scripts = (stream(event("ADDED", bad), bookmark(10, initial_end=True), event("MODIFIED", again), bookmark(20)),)
    async with world(lambda api: api.on("WATCH", PODS, *scripts), unreadable=lambda ref, why: told.append((ref, why))) as w:
        await w.until(20)
    ((ref, why),) = told
    assert (ref.kind, ref.name, ref.uid) == (Pod.KIND, "a", bad["metadata"]["uid"])
    assert "priority" in why


@pytest.mark.parametrize("line", [b'{"type":"ADDED","object":{"metadata"\n', b"\xff\xff\n", b"[]\n", b'{"type":"BOOKMARK","object":{}}\n'])
async def test_unreadable_line_leads_to_a_new_list(line: bytes) -> None:
    scripts = (
        stream(event("ADDED", pod("a", 5)), bookmark(10, initial_end=True), line),
        stream(event("ADDED", pod("b", 6)), bookmark(50, initial_end=True)),
    )
    async with world(lambda api: api.on("WATCH", PODS, *scripts)) as w:
        await w.until(50)
        assert w.names == ["b"]
    assert w.metrics.rounds[0] == "bad_line"


async def test_line_of_five_mebibytes_leads_to_a_list_in_pages() -> None:
    huge = pod("huge", 11, note="x" * (5 * 1024 * 1024))
    scripts = (stream(bookmark(10, initial_end=True), event("ADDED", huge)), stream(event("ADDED", pod("z", 60))))

    def script(api: FakeApi) -> None:
        api.on("WATCH", PODS, *scripts)
        api.on("GET", PODS, pod_list(50, huge))

    async with world(script) as w:
        await w.until(60)
        assert w.names == ["huge", "z"]
    assert w.metrics.rounds[0] == "long_line"


async def test_silent_watch_is_replaced() -> None:
    scripts = (stream(bookmark(10, initial_end=True)), stream(event("ADDED", pod("a", 11))))
    async with world(lambda api: api.on("WATCH", PODS, *scripts), inactivity_s=0.1) as w:
        await w.until(11)
    assert w.metrics.rounds[0] == "idle"
    assert w.api.seen("WATCH")[1].query["resourceVersion"] == "10"


async def test_quiet_resource_is_watched_again_at_once_and_without_a_word(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(reflector_module, "HEALTHY_S", 0.01)
    with caplog.at_level(logging.INFO, "controllers.runtime"):
        async with world(lambda api: api.on("WATCH", PODS, stream(bookmark(10, initial_end=True)), stream()), inactivity_s=0.03) as w:
            while len(w.delays) < 6:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
    assert set(w.metrics.rounds) == {"idle"}
    assert max(w.delays) <= 0.2
    assert [r for r in caplog.records if r.name.startswith("controllers.runtime")] == []
    assert w.metrics.lists == [0]


async def test_watch_list_that_never_completes_is_given_up_for_a_list() -> None:
    def script(api: FakeApi) -> None:
        api.on("WATCH", PODS, stream(event("ADDED", pod("a", 5))), stream())
        api.on("GET", PODS, pod_list(9, pod("a", 5)))

    async with world(script, inactivity_s=0.1) as w:
        await w.until(9)
        assert w.names == ["a"]


async def test_missing_resource_is_waited_for_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    path = "/apis/grove.io/v1alpha1/podcliquesets"
    with caplog.at_level(logging.WARNING):
        async with world(lambda api: None, PodCliqueSet) as w:
            while len(w.delays) < 12:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
            assert w.informer.missing
            assert not w.informer.has_synced
            w.api.on("WATCH", path, stream(bookmark(7, initial_end=True)))
            await w.informer.wait_synced()
            assert not w.informer.missing
    assert max(w.delays) == 5.0
    assert len(caplog.records) == 1


@pytest.mark.parametrize("answer", [refusal(404, "NotFound"), refusal(403, "Forbidden")])
async def test_an_optional_resource_that_is_not_served_counts_as_empty(answer: Reply, caplog: pytest.LogCaptureFixture) -> None:
    path = "/apis/resource.k8s.io/v1/resourceclaims"
    claim = {"metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "4"}}
    scripts = (answer, answer, stream(event("ADDED", claim), bookmark(6, initial_end=True)))
    with caplog.at_level(logging.WARNING):
        async with world(lambda api: api.on("WATCH", path, *scripts), ResourceClaim) as w:
            await w.informer.wait_synced()
            assert w.names == []
            await w.until(6)
            assert w.names == ["c"]
    assert caplog.messages.count("resource not available, counted as empty") == 1


@pytest.mark.parametrize("answer", [refusal(404, "NotFound"), refusal(403, "Forbidden")])
async def test_an_outage_is_over_when_the_server_withholds_an_optional_resource(answer: Reply) -> None:
    path, told = "/apis/resource.k8s.io/v1/resourceclaims", list[Exception | None]()
    outage = refusal(503, "ServiceUnavailable", "not now")
    scripts = (outage, answer)
    async with world(lambda api: api.on("WATCH", path, *scripts), ResourceClaim, told=lambda _, error: told.append(error)) as w:
        while len(w.delays) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.002)
    assert isinstance(told[0], ServerBusy)
    assert told[1] is None, "nothing is told of what the cluster may lack, and the server answers"


async def test_other_resources_that_are_withheld_are_waited_for() -> None:
    async with world(lambda api: api.on("WATCH", PODS, refusal(403, "Forbidden"))) as w:
        while len(w.delays) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.002)
        assert (w.informer.has_synced, w.informer.trouble) == (False, "denied")


async def test_known_objects_stay_while_a_starting_server_answers_404() -> None:
    def script(api: FakeApi) -> None:
        api.on(
            "WATCH",
            PODS,
            stream(event("ADDED", pod("a", 5)), bookmark(10, initial_end=True), end="close"),
            refusal(404, "NotFound"),
            stream(event("ADDED", pod("b", 11))),
        )

    async with world(script) as w:
        await w.until(11)
        assert w.names == ["a", "b"]


async def test_busy_server_names_the_pause() -> None:
    scripts = (refusal(429, "TooManyRequests", headers={"Retry-After": "7"}), stream(bookmark(3, initial_end=True)))
    async with world(lambda api: api.on("WATCH", PODS, *scripts)) as w:
        await w.informer.wait_synced()
    assert w.delays[0] == 7.0


async def test_ten_thousand_events_leave_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector_module, "YIELD_EVERY", 50)
    lines = b"".join(event("ADDED", pod(f"p{i}", i + 1)) for i in range(2000)) + bookmark(5000, initial_end=True)
    async with world(lambda api: api.on("WATCH", PODS, stream(lines))) as w:
        turns = 0
        while not w.informer.has_synced:
            await asyncio.sleep(0)
            turns += 1
        assert len(w.informer.store) == 2000
    assert turns > 20


async def test_custom_resources_are_decoded_and_bad_ones_named_without_their_values(caplog: pytest.LogCaptureFixture) -> None:
    path = "/apis/grove.io/v1alpha1/podcliquesets"
    good = {"metadata": {"name": "g", "namespace": "ns", "uid": "u", "resourceVersion": "4"}, "spec": {"template": {"cliques": []}}}
    bad = {**good, "metadata": {**good["metadata"], "name": "h"}, "spec": {"replicas": "s3cr3t-value"}}
    with caplog.at_level(logging.ERROR):
        async with world(
            lambda api: api.on("WATCH", path, stream(event("ADDED", good), event("ADDED", bad), bookmark(6, initial_end=True))),
            PodCliqueSet,
        ) as w:
            await w.informer.wait_synced()
            assert w.names == ["g"]
    what = str(vars(caplog.records[0])["what"])
    assert "ns/h" in what
    assert "replicas" in what
    assert "s3cr3t" not in json.dumps([vars(r) for r in caplog.records], default=str)


async def test_a_lost_event_is_made_up_for_by_the_list_that_comes_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reflector_module, "VERIFY_S", 0.2)
    first = stream(event("ADDED", pod("a", 5)), event("ADDED", pod("b", 6)), bookmark(7, initial_end=True), bookmark(9))
    second = stream(event("ADDED", pod("c", 8)), event("ADDED", pod("b", 6)), bookmark(10, initial_end=True))
    async with world(lambda api: api.on("WATCH", PODS, first, second)) as w:
        await w.until(9)
        assert w.names == ["a", "b"]
        await w.until(10)
        assert w.names == ["b", "c"]
        assert w.metrics.rounds == ["verify"]
    assert [("resourceVersion" in r.query, r.query.get("sendInitialEvents")) for r in w.api.seen("WATCH")[:2]] == [(False, "true")] * 2


async def test_renewing_lists_once_for_all_who_ask_and_not_at_all_if_the_list_is_new_enough() -> None:
    first = stream(event("ADDED", pod("a", 5)), bookmark(7, initial_end=True))
    second = stream(event("ADDED", pod("a", 8)), bookmark(10, initial_end=True))
    async with world(lambda api: api.on("WATCH", PODS, first, second)) as w:
        await w.until(7)
        await w.informer.renew(0.0)
        assert len(w.api.seen("WATCH")) == 1
        now = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(w.informer.renew, now)
        assert w.informer.store.seen_rv == 10
        await w.informer.renew(now)
        assert len(w.api.seen("WATCH")) == 2


async def test_renewing_waits_while_the_server_does_not_answer() -> None:
    first = stream(event("ADDED", pod("a", 5)), bookmark(7, initial_end=True))
    second = stream(event("ADDED", pod("b", 8)), bookmark(10, initial_end=True))
    async with world(lambda api: api.on("WATCH", PODS, first, refusal(503, "ServiceUnavailable", "not now"), second)) as w:
        await w.until(7)
        await w.informer.renew(anyio.current_time())
        assert w.names == ["b"]


async def test_an_optional_resource_that_is_not_served_is_new_enough() -> None:
    path = "/apis/resource.k8s.io/v1/resourceclaims"
    async with world(lambda api: api.on("WATCH", path, refusal(404, "NotFound", "no such resource")), ResourceClaim) as w:
        await w.informer.wait_synced()
        with anyio.fail_after(2):
            await w.informer.renew(anyio.current_time())
