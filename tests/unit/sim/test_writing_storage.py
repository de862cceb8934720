"""The storage: revisions, history, lists of the past, and who is told in which order."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.apiserver.fields.lazy import NOBODY
from sim.apiserver.resources import ObjectKey, Resource, Version
from sim.apiserver.storage import Author, Change, Compacted, Storage, buried, is_ending

THINGS = Resource("x.io", "things", "Thing", (Version("v1"),), "v1", is_custom=True)
OTHERS = Resource("x.io", "others", "Other", (Version("v1"),), "v1")
DEFINITIONS = Resource("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", (Version("v1"),), "v1")
AUTHOR = Author("u", "a/1", "create")


def thing(name: str, value: int = 0, namespace: str = "n") -> dict[str, Any]:
    return {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": name, "namespace": namespace}, "value": value}


def put(storage: Storage, name: str, value: int | None, namespace: str = "n", resource: Resource = THINGS) -> None:
    obj = None if value is None else thing(name, value, namespace)
    storage.commit(resource, ObjectKey(namespace, name), obj, NOBODY, AUTHOR)


def shown(storage: Storage, revision: int, namespace: str = "") -> dict[str, int]:
    return {f"{key.namespace}/{key.name}": entry.obj["value"] for key, entry in storage.table(THINGS).at(revision, namespace)}


def test_every_commit_has_a_revision_of_its_own():
    storage = Storage()
    obj = thing("a")
    entry = storage.commit(THINGS, ObjectKey("n", "a"), obj, NOBODY, AUTHOR)
    assert entry is not None
    assert entry.revision == storage.revision == 2
    assert entry.obj["metadata"]["resourceVersion"] == "2"
    assert "resourceVersion" not in obj["metadata"]
    put(storage, "b", 1, resource=OTHERS)
    put(storage, "a", None)
    assert storage.revision == 4
    assert [(c.revision, c.old is None, c.new is None) for c in storage.table(THINGS).history] == [(2, True, False), (4, False, True)]


def test_deleting_what_is_not_there_fails():
    storage = Storage()
    with pytest.raises(KeyError):
        put(storage, "a", None)


def test_keys_are_in_the_order_of_their_paths():
    storage = Storage()
    # etcd sorts "a-b/x" before "a/x", as "-" comes before "/".
    for namespace, name in (("a", "x"), ("a-b", "x"), ("a", "b"), ("b", "a")):
        put(storage, name, 0, namespace)
    assert list(shown(storage, storage.revision)) == ["a-b/x", "a/b", "a/x", "b/a"]
    assert list(shown(storage, storage.revision, "a")) == ["a/b", "a/x"]


Step = tuple[str, str, int | None]
STEPS = st.lists(st.tuples(st.sampled_from("mn"), st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 9))), max_size=30)


@given(STEPS)
def test_lists_of_the_past_are_what_was_there(steps: list[Step]):
    storage = Storage()
    storage.table(THINGS)
    state: dict[str, int] = {}
    seen = {storage.revision: dict(state)}
    for namespace, name, value in steps:
        if value is None and f"{namespace}/{name}" not in state:
            put(storage, name, 1, namespace, OTHERS)
        else:
            put(storage, name, value, namespace)
            if value is None:
                del state[f"{namespace}/{name}"]
            else:
                state[f"{namespace}/{name}"] = value
        seen[storage.revision] = dict(state)
    for revision, expected in seen.items():
        assert shown(storage, revision) == expected
        assert shown(storage, revision, "m") == {key: value for key, value in expected.items() if key.startswith("m/")}
    newest = storage.table(THINGS).at(storage.revision, "")
    assert [f"{k.namespace}/{k.name}" for k, _ in newest] == sorted(state)


@given(STEPS, st.integers(0, 30))
def test_changes_since_a_revision_lead_from_the_list_then_to_the_list_now(steps: list[Step], start: int):
    storage = Storage()
    table = storage.table(THINGS)
    for namespace, name, value in steps:
        if value is not None or ObjectKey(namespace, name) in table.entries:
            put(storage, name, value, namespace)
    since = min(1 + start, storage.revision)
    state = dict(table.at(since, ""))
    for change in table.since(since):
        assert change.revision > since
        if change.new is None:
            del state[change.key]
        else:
            state[change.key] = change.new
    assert state == dict(table.at(storage.revision, ""))


def test_compaction_forgets_the_past_and_keeps_the_present():
    storage = Storage()
    for value in range(5):
        put(storage, "a", value)
    storage.compact()
    assert shown(storage, storage.revision) == {"n/a": 4}
    assert list(storage.table(THINGS).since(storage.revision)) == []
    with pytest.raises(Compacted):
        storage.table(THINGS).since(storage.revision - 1)
    with pytest.raises(Compacted):
        storage.table(THINGS).at(storage.revision - 1, "")
    put(storage, "a", 9)
    assert [c.revision for c in storage.table(THINGS).since(storage.revision - 1)] == [storage.revision]


def test_a_long_history_loses_its_oldest_tenth():
    storage = Storage(history=20)
    for value in range(21):
        put(storage, "a", value)
    table = storage.table(THINGS)
    assert len(table.history) == 18
    assert table.compacted == table.history[0].revision - 1
    with pytest.raises(Compacted):
        table.since(table.compacted - 1)
    assert len(list(table.since(table.compacted))) == 18


def test_a_table_that_is_made_late_has_no_past():
    storage = Storage()
    put(storage, "a", 1, resource=OTHERS)
    put(storage, "a", 2, resource=OTHERS)
    put(storage, "b", 1)
    with pytest.raises(Compacted):
        storage.table(THINGS).since(2)
    assert [c.revision for c in storage.table(THINGS).since(3)] == [4]


def recorder(into: list[str], name: str) -> Callable[[Change], None]:
    return lambda change: into.append(f"{name}:{change.resource.plural}/{change.key.name}@{change.revision}")


def test_watchers_hear_before_subscribers_and_only_of_their_resource():
    storage, heard = Storage(), list[str]()
    storage.subscribe(recorder(heard, "all"))
    end = storage.watch(THINGS, recorder(heard, "things"))
    put(storage, "a", 1)
    put(storage, "b", 1, resource=OTHERS)
    assert heard == ["things:things/a@2", "all:things/a@2", "all:others/b@3"]
    end()
    end()
    heard.clear()
    put(storage, "a", 2)
    assert heard == ["all:things/a@4"]


def test_changes_made_by_those_who_are_told_are_told_after():
    storage, heard = Storage(), list[str]()

    def answer(change: Change) -> None:
        if change.resource is THINGS and change.new is not None and change.new.obj["value"] < 3:
            put(storage, change.key.name, change.new.obj["value"] + 1)
            # It is stored already, and told to nobody yet.
            assert storage.table(THINGS).entries[change.key].obj["value"] == change.new.obj["value"] + 1
            assert heard[-1] != f"late:things/a@{storage.revision}"

    storage.watch(THINGS, recorder(heard, "early"))
    storage.subscribe(answer)
    storage.subscribe(recorder(heard, "late"))
    put(storage, "a", 1)
    assert heard == [f"{who}:things/a@{revision}" for revision in (2, 3, 4) for who in ("early", "late")]


def test_a_failing_listener_does_not_stop_later_changes():
    storage, heard = Storage(), list[str]()

    def fail(change: Change) -> None:
        raise ValueError(change.key.name)

    end = storage.watch(THINGS, fail)
    with pytest.raises(ValueError, match="a"):
        put(storage, "a", 1)
    end()
    storage.subscribe(recorder(heard, "all"))
    put(storage, "b", 1)
    assert heard == ["all:things/b@3"]
    assert shown(storage, 3) == {"n/a": 1, "n/b": 1}


def test_a_resource_that_is_dropped_leaves_nothing():
    storage = Storage()
    put(storage, "a", 1)
    storage.drop(THINGS)
    assert storage.find("x.io", "things") is None
    assert shown(storage, storage.revision) == {}


def test_the_last_state_of_an_object_is_at_the_revision_of_its_end():
    storage = Storage()
    entry = storage.commit(THINGS, ObjectKey("n", "a"), thing("a", 7), NOBODY, AUTHOR)
    assert entry is not None
    last = buried(entry, 9)
    assert (last.revision, last.obj["metadata"]["resourceVersion"], last.obj["value"]) == (9, "9", 7)
    assert entry.obj["metadata"]["resourceVersion"] == "2"


def test_a_definition_ends_when_it_is_being_deleted():
    storage = Storage()
    assert not is_ending(storage, THINGS)
    key = ObjectKey("", "things.x.io")
    storage.commit(DEFINITIONS, key, {"metadata": {"name": key.name}}, NOBODY, AUTHOR)
    assert not is_ending(storage, THINGS)
    storage.commit(DEFINITIONS, key, {"metadata": {"name": key.name, "deletionTimestamp": "2026-01-01T00:00:00Z"}}, NOBODY, AUTHOR)
    assert is_ending(storage, THINGS)
    assert not is_ending(storage, OTHERS)
