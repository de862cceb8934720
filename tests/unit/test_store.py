"""Store: old news never wins, indexes follow, handlers see each change once, lists leave tombstones."""

from typing import Any

import msgspec
import pytest

from api.core import Pod
from api.plan import Index, Key
from controllers.runtime.store import Change, Store
from tests.unit.fakeapi import pod

BY_NODE = Index("node", lambda p: (p.spec.node_name,) if p.spec.node_name else ())
OTHER = Index("other", lambda _: ())


def make(name: str, rv: int, **kwargs: Any) -> Pod:
    return msgspec.convert(pod(name, rv, **kwargs), Pod)


class Seen:
    """A handler that remembers what it was told, as names with resourceVersions."""

    def __init__(self) -> None:
        self.calls: list[tuple[str | None, str | None]] = []

    def __call__(self, old: Pod | None, new: Pod | None) -> None:
        self.calls.append(tuple(f"{o.metadata.uid}@{o.metadata.resource_version}" if o else None for o in (old, new)))  # pyright: ignore[reportArgumentType]


@pytest.fixture
def store() -> Store[Pod]:
    return Store(Pod, (BY_NODE,))


@pytest.fixture
def seen(store: Store[Pod]) -> Seen:
    handler = Seen()
    store.subscribe(handler)
    return handler


A = Key("ns", "a")


def test_old_and_repeated_news_is_ignored(store: Store[Pod], seen: Seen) -> None:
    first, second = make("a", 5), make("a", 10)
    assert store.apply("ADDED", first) == Change(None, first)
    assert store.apply("MODIFIED", second) == Change(first, second)
    assert store.apply("MODIFIED", make("a", 9)) is None
    assert store.apply("ADDED", make("a", 10)) is None
    assert store.get(A) is second
    assert seen.calls == [(None, "uid-a@5"), ("uid-a@5", "uid-a@10")]


def test_versions_compare_as_numbers(store: Store[Pod]) -> None:
    store.apply("ADDED", make("a", 9))
    store.apply("MODIFIED", make("a", 10))
    assert store.get(A) == make("a", 10)
    big = 2**70
    store.apply("MODIFIED", make("a", big))
    assert store.seen_rv == big


def test_deleted_object_does_not_come_back_by_late_news(store: Store[Pod], seen: Seen) -> None:
    store.apply("ADDED", make("a", 5))
    store.apply("DELETED", make("a", 8))
    assert store.apply("MODIFIED", make("a", 7)) is None
    assert store.put_live(make("a", 7)) is None
    assert store.get(A) is None
    assert seen.calls[-1] == ("uid-a@5", None)


def test_late_delete_of_a_former_life_is_ignored(store: Store[Pod]) -> None:
    store.apply("ADDED", make("a", 20, uid="new"))
    assert store.apply("DELETED", make("a", 15, uid="old")) is None
    assert store.get(A) is not None


def test_same_name_with_another_uid_is_a_delete_and_an_add(store: Store[Pod], seen: Seen) -> None:
    store.apply("ADDED", make("a", 5, uid="one", nodeName="n1"))
    store.apply("ADDED", make("a", 9, uid="two", nodeName="n2"))
    assert seen.calls[1:] == [("one@5", None), (None, "two@9")]
    assert store.by_index(BY_NODE, "n1") == ()
    assert [p.metadata.uid for p in store.by_index(BY_NODE, "n2")] == ["two"]


def test_list_leaves_tombstones_and_tells_only_differences(store: Store[Pod], seen: Seen) -> None:
    for name in "abc":
        store.apply("ADDED", make(name, 5, nodeName="n1"))
    seen.calls.clear()
    changes = store.replace([make("a", 5, nodeName="n1"), make("b", 30, nodeName="n2"), make("d", 31)], 40)
    assert len(changes) == len(seen.calls) == 3
    assert seen.calls == [("uid-c@5", None), ("uid-b@5", "uid-b@30"), (None, "uid-d@31")]
    assert store.seen_rv == 40
    assert [p.metadata.name for p in store.by_index(BY_NODE, "n1")] == ["a"]


def test_list_wins_after_resource_versions_went_back(store: Store[Pod]) -> None:
    store.apply("ADDED", make("a", 1000))
    store.replace([make("a", 7)], 12)
    assert store.seen_rv == 12
    assert store.apply("MODIFIED", make("a", 13)) is not None


def test_list_keeps_what_it_was_told_to(store: Store[Pod]) -> None:
    store.apply("ADDED", make("a", 5))
    assert store.replace([], 9, keep={A}) == ()
    assert store.get(A) is not None


def test_handlers_see_the_whole_list_at_once(store: Store[Pod]) -> None:
    sizes: list[int] = []
    store.subscribe(lambda _old, _new: sizes.append(len(store)))
    store.replace([make("a", 1), make("b", 2)], 3)
    assert sizes == [2, 2]


def test_late_subscriber_is_told_what_is_there(store: Store[Pod]) -> None:
    store.apply("ADDED", make("a", 5))
    late = Seen()
    store.subscribe(late)
    assert late.calls == [(None, "uid-a@5")]


def test_live_reads_do_not_advance_what_the_watch_has_seen(store: Store[Pod]) -> None:
    store.replace([make("a", 5)], 6)
    store.put_live(make("a", 50))
    assert (store.get(A), store.seen_rv) == (make("a", 50), 6)
    assert store.apply("MODIFIED", make("a", 20)) is None, "the watch catches up without going back"
    assert store.seen_rv == 20


def test_forget_only_what_was_known_before_the_read(store: Store[Pod]) -> None:
    known = make("a", 5)
    store.apply("ADDED", known)
    newer = make("a", 9, uid="again")
    store.apply("ADDED", newer)
    assert store.forget(A, known) is None
    assert store.forget(A, newer) == Change(newer, None)
    assert len(store) == 0


def test_index_that_raises_changes_nothing() -> None:
    def keys(obj: Pod) -> tuple[str, ...]:
        if obj.spec.node_name == "bad":
            raise ValueError("bad")
        return (obj.spec.node_name,)

    index = Index("x", keys)
    store = Store(Pod, (index,))
    first = make("a", 5, nodeName="n1")
    store.apply("ADDED", first)
    with pytest.raises(ValueError, match="bad"):
        store.apply("MODIFIED", make("a", 6, nodeName="bad"))
    assert store.get(A) is first
    assert store.by_index(index, "n1") == (first,)


def test_lists_by_namespace_and_undeclared_index(store: Store[Pod]) -> None:
    store.apply("ADDED", make("a", 1, namespace="x"))
    store.apply("ADDED", make("a", 2, namespace="y"))
    assert [p.metadata.namespace for p in store.list("x")] == ["x"]
    assert len(store.list()) == 2
    store.apply("DELETED", make("a", 3, namespace="x"))
    assert store.list("x") == ()
    with pytest.raises(KeyError, match="'other' is not declared for pods"):
        store.by_index(OTHER, "v")


async def test_reached_fires_in_order(store: Store[Pod]) -> None:
    late, early = store.reached(10), store.reached(5)
    store.advance(5)
    assert (early.is_set(), late.is_set()) == (True, False)
    store.apply("ADDED", make("a", 11))
    assert late.is_set()
    assert store.reached(11).is_set()
