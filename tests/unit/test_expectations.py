"""Own writes that caches do not show yet."""

import pytest

from api.core import Node, Pod
from api.plan import Key, Ref
from controllers.runtime.expectations import Expectations
from controllers.runtime.metrics import Metrics
from tests.runtime_fakes import FakeCaches, HandClock, pod, ref_of

KEY = Key("ns", "clique")
P = (Pod.KIND, Key("ns", "p"))


@pytest.fixture
def caches() -> FakeCaches:
    return FakeCaches(Pod.KIND)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def expectations(caches: FakeCaches, clock: HandClock) -> Expectations:
    return Expectations(caches, clock)


def test_waits_until_the_cache_has_passed_the_write(expectations: Expectations, caches: FakeCaches) -> None:
    expectations.wrote(KEY, ref_of(), "10")
    caches.seen[Pod.KIND] = 9
    assert expectations.behind(KEY) is not None
    caches.seen[Pod.KIND] = 10
    assert expectations.behind(KEY) is None


def test_versions_compare_as_numbers_not_text(expectations: Expectations, caches: FakeCaches) -> None:
    expectations.wrote(KEY, ref_of(), "10")
    caches.seen[Pod.KIND] = 9
    assert expectations.behind(KEY) is not None
    expectations.wrote(Key("ns", "other"), ref_of(), "9")
    assert expectations.behind(Key("ns", "other")) is None


def test_kinds_without_a_cache_are_not_waited_for(expectations: Expectations) -> None:
    ref = Ref(Node.KIND, "", "n")
    expectations.wrote(KEY, ref, "10")
    expectations.unknown(KEY, ref)
    assert expectations.behind(KEY) is None


def test_waits_double_and_end_at_the_limit(expectations: Expectations, clock: HandClock) -> None:
    expectations.wrote(KEY, ref_of(), "10")
    waits: list[float] = []
    while (wait := expectations.behind(KEY)) is not None and wait > 0:
        waits.append(wait)
        clock.advance(wait)
    assert waits[:4] == pytest.approx([0.01, 0.01, 0.02, 0.04])
    assert max(waits) == 1.0
    assert sum(waits) == pytest.approx(30.0)


async def test_after_the_limit_one_live_read_is_made_and_counted(caches: FakeCaches, clock: HandClock) -> None:
    metrics = Metrics()
    expectations = Expectations(caches, clock, metrics)
    expectations.wrote(KEY, ref_of(), "10")
    clock.advance(30.0)
    assert expectations.behind(KEY) == 0.0
    await expectations.settle(KEY)
    assert caches.live_reads == [P]
    assert expectations.behind(KEY) is None
    labels = {"kind": "Pod", "cause": "late"}
    assert metrics.registry.get_sample_value("grovekeeper_expectation_live_reads_total", labels) == 1


async def test_unknown_write_that_was_committed_is_waited_for(expectations: Expectations, caches: FakeCaches) -> None:
    expectations.unknown(KEY, ref_of())
    caches.live[P] = pod(rv="12")
    assert expectations.behind(KEY) == 0.0
    await expectations.settle(KEY)
    assert expectations.behind(KEY) not in (None, 0.0)
    caches.seen[Pod.KIND] = 12
    assert expectations.behind(KEY) is None


async def test_unknown_write_of_a_gone_object_waits_for_its_absence(expectations: Expectations, caches: FakeCaches) -> None:
    caches.held[P] = pod()
    expectations.unknown(KEY, ref_of())
    await expectations.settle(KEY)
    assert expectations.behind(KEY) is not None
    caches.held.clear()
    assert expectations.behind(KEY) is None


async def test_failed_live_read_keeps_the_demand(expectations: Expectations, caches: FakeCaches, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(kind: object, key: object) -> None:
        raise ConnectionError

    expectations.unknown(KEY, ref_of())
    monkeypatch.setattr(caches, "live_get", refuse)
    with pytest.raises(ConnectionError):
        await expectations.settle(KEY)
    assert expectations.behind(KEY) == 0.0


def test_bound_is_seen_by_the_node_name(expectations: Expectations, caches: FakeCaches) -> None:
    caches.held[P] = pod()
    expectations.bound(KEY, ref_of())
    assert expectations.behind(KEY) is not None
    caches.held[P] = pod(node="n1")
    assert expectations.behind(KEY) is None


def test_another_life_of_the_key_does_not_inherit_the_wait(expectations: Expectations) -> None:
    expectations.wrote(KEY, ref_of(), "10", uid="first")
    assert expectations.behind(KEY, "first") is not None
    assert expectations.behind(KEY, "second") is None


def test_forget_drops_the_key_only(expectations: Expectations) -> None:
    other = Key("ns", "other")
    expectations.wrote(KEY, ref_of(), "10")
    expectations.wrote(other, ref_of(), "10")
    expectations.forget(KEY)
    assert expectations.behind(KEY) is None
    assert expectations.behind(other) is not None
