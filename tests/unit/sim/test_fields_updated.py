"""Ownership after creates and updates; entries as kube-apiserver 1.36 shows them."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.apiserver.fields import Ledger, Manager, Managers, claimed, decode, encode, set_of, updated, zero_of
from sim.apiserver.fields.fieldset import contains, difference, union
from sim.apiserver.fields.managed import STRIPPED
from tests.unit.sim.fieldschemas import CONFIG_MAP, METADATA, POD, UNKNOWN, mapping, schema_of

EARLY, LATE, LATER = "2026-11-30T09:30:02Z", "2026-11-30T09:30:03Z", "2026-11-30T09:30:04Z"


def config_map(data: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    out: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "d", "uid": "u", **metadata}}
    return out if data is None else {**out, "data": data}


def written(managers: Managers, old: Any, new: Any, manager: str, now: str = EARLY, **more: Any) -> Managers:
    return updated(managers, old, new, CONFIG_MAP, manager=manager, api_version="v1", now=now, **more)


def owned(managers: Managers) -> dict[str, Any]:
    return {m.name: m.fields for m in managers}


def test_a_create_owns_all_but_what_nobody_owns() -> None:
    (entry,) = encode(written((), None, config_map({"a": "1"}, labels={"l": "1"}, finalizers=["b/b", "a/a"]), "me"))
    assert entry == {
        "manager": "me",
        "operation": "Update",
        "apiVersion": "v1",
        "time": EARLY,
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:data": {".": {}, "f:a": {}},
            "f:metadata": {"f:finalizers": {".": {}, 'v:"a/a"': {}, 'v:"b/b"': {}}, "f:labels": {".": {}, "f:l": {}}},
        },
    }
    assert list(entry["fieldsV1"]["f:metadata"]["f:finalizers"]) == [".", 'v:"a/a"', 'v:"b/b"']
    assert list(entry) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"]


def test_changed_fields_move_and_removed_fields_leave_everybody() -> None:
    first, second = config_map({"a": "1", "b": "1"}), config_map({"a": "2", "b": "1", "c": "1"})
    one = written((), None, first, "one")
    two = written(one, first, second, "two", LATE)
    assert owned(two) == {"one": {"f:data": {".": {}, "f:b": {}}}, "two": {"f:data": {"f:a": {}, "f:c": {}}}}
    assert [m.time for m in two] == [EARLY, LATE]
    three = written(two, second, config_map({"a": "2"}), "three", LATER)
    assert owned(three) == {"one": {"f:data": {}}, "two": {"f:data": {"f:a": {}}}}
    assert [m.time for m in three] == [EARLY, LATE]
    assert owned(written(three, config_map({"a": "2"}), config_map(), "three", LATER)) == {}


def test_a_write_that_changes_nothing_changes_no_manager() -> None:
    obj = config_map({"a": "1"})
    one = written((), None, obj, "one")
    assert written(one, obj, copy.deepcopy(obj), "two", LATE) is one
    assert written(one, obj, config_map({"a": "1"}, resourceVersion="2", generation=3), "one", LATE) == one


def test_a_manager_keeps_what_it_had_and_gets_the_new_time() -> None:
    first, second = config_map({"a": "1"}), config_map({"a": "1", "b": "2"})
    (only,) = written(written((), None, first, "one"), first, second, "one", LATE)
    assert only == Manager("one", "Update", "", "v1", LATE, {"f:data": {".": {}, "f:a": {}, "f:b": {}}})


def test_subresources_and_versions_are_managers_of_their_own() -> None:
    first, second = config_map({"a": "1"}), config_map({"a": "2"})
    one = written((), None, first, "one")
    two = written(one, first, second, "one", subresource="status")
    assert [(m.name, m.subresource) for m in two] == [("one", ""), ("one", "status")]
    three = updated(two, second, first, CONFIG_MAP, manager="one", api_version="v2", now=EARLY)
    assert [(m.subresource, m.api_version) for m in three] == [("", "v1"), ("", "v2")]


def test_reset_fields_are_not_tracked() -> None:
    old = {"metadata": {"uid": "u"}, "spec": {"replicas": 1}, "status": {"phase": "A"}}
    new = {"metadata": {"uid": "u"}, "spec": {"replicas": 2}, "status": {"phase": "B"}}
    status = {"f:status": {}}
    before = (Manager("s", "Update", "status", "v1", EARLY, {"f:status": {"f:phase": {}}}),)
    after = updated(before, old, new, POD, manager="m", api_version="v1", now=LATE, reset=status)
    assert owned(after) == {"s": {"f:status": {"f:phase": {}}}, "m": {"f:spec": {"f:replicas": {}}}}


def test_an_object_without_managers_stays_without() -> None:
    assert written((), config_map({"a": "1"}), config_map({"a": "2"}), "one") == ()


def test_built_in_kinds_start_with_parts_that_nobody_owns() -> None:
    status = {**mapping(phase={"type": "string"}), "default": {}}
    spec = {**mapping(containers={"type": "array", "items": {"type": "string"}}, node={"type": "string"}), "required": ["containers"]}
    built_in = schema_of(mapping(metadata={**METADATA, "default": {}}, spec={**spec, "default": {}}, status=status))
    custom = schema_of(mapping(metadata=METADATA, spec={**spec, "default": {}}, status=status))
    assert zero_of(built_in) == {"metadata": {}, "spec": {"containers": None}, "status": {}}
    assert zero_of(custom) == {}
    obj = {"metadata": {"name": "n", "labels": {"l": "1"}}, "spec": {"node": "n", "containers": ["c"]}, "status": {}}
    labels = {"f:labels": {".": {}, "f:l": {}}}
    (only,) = updated((), None, obj, built_in, manager="m", api_version="v1", now=EARLY)
    assert only.fields == {"f:metadata": labels, "f:spec": {"f:node": {}, "f:containers": {}}}
    (only,) = updated((), None, obj, custom, manager="m", api_version="v1", now=EARLY)
    assert only.fields == {"f:metadata": labels, "f:spec": {".": {}, "f:node": {}, "f:containers": {}}, "f:status": {}}


def test_items_of_lists() -> None:
    old = {"spec": {"containers": [{"name": "a", "image": "1", "ports": [{"containerPort": 80}]}, {"name": "b"}]}}
    new = {"spec": {"containers": [{"name": "b", "image": "2"}, {"name": "a", "image": "1", "ports": [{"containerPort": 81}]}]}}
    one = updated((), None, old, POD, manager="one", api_version="v1", now=EARLY)
    a, b = 'k:{"name":"a"}', 'k:{"name":"b"}'
    port80, port81 = (f'k:{{"containerPort":{port},"protocol":"TCP"}}' for port in (80, 81))
    names = {".": {}, "f:name": {}}
    ports = {".": {}, port80: {".": {}, "f:containerPort": {}}}
    assert one[0].fields == {"f:spec": {".": {}, "f:containers": {".": {}, a: {**names, "f:image": {}, "f:ports": ports}, b: names}}}
    two = owned(updated(one, old, new, POD, manager="two", api_version="v1", now=LATE))
    assert two["one"] == {"f:spec": {".": {}, "f:containers": {".": {}, a: {**names, "f:image": {}, "f:ports": {}}, b: names}}}
    assert two["two"] == {"f:spec": {"f:containers": {a: {"f:ports": {port81: {".": {}, "f:containerPort": {}}}}, b: {"f:image": {}}}}}


def test_duplicates_are_one_field() -> None:
    once = {"spec": {"containers": [{"name": "a", "env": [{"name": "E", "value": "1"}]}]}}
    twice = {"spec": {"containers": [{"name": "a", "env": [{"name": "E", "value": "1"}, {"name": "E", "value": "2"}]}]}}
    one = updated((), None, twice, POD, manager="one", api_version="v1", now=EARLY)
    item = one[0].fields["f:spec"]["f:containers"]['k:{"name":"a"}']
    assert item["f:env"] == {".": {}, 'k:{"name":"E"}': {}}
    two = updated(one, twice, once, POD, manager="two", api_version="v1", now=LATE)
    item = two[1].fields["f:spec"]["f:containers"]['k:{"name":"a"}']
    assert item["f:env"] == {'k:{"name":"E"}': {".": {}, "f:name": {}, "f:value": {}}}


def test_schemas_that_know_nothing_track_maps_and_take_lists_as_leaves() -> None:
    obj = {"spec": {"a": {"b": [1, {"c": 2}], "e": {}}}}
    (only,) = updated((), None, obj, UNKNOWN, manager="m", api_version="v1", now=EARLY)
    assert only.fields == {"f:spec": {".": {}, "f:a": {".": {}, "f:b": {}, "f:e": {}}}}


def test_at_most_ten_updaters_are_kept() -> None:
    obj, managers = config_map({}), written((), None, config_map({}), "first")
    for at in range(14):
        new = config_map({**obj["data"], f"k{at}": "v"})
        managers = written(managers, obj, new, f"m{at:02}", f"2026-11-30T09:30:{at + 10}Z")
        obj = new
    assert len(managers) == 10
    ancient = next(m for m in managers if m.name == "ancient-changes")
    assert ancient.time == "2026-11-30T09:30:14Z"
    assert ancient.fields == {"f:data": {} | {".": {}} | {f"f:k{at}": {} for at in range(5)}}


@pytest.mark.parametrize("sent", [None, "x", [{"manager": "z"}], [{}, {}], [1], [{"operation": "Update", "apiVersion": "v1"}]], ids=str)
def test_entries_that_are_missing_or_wrong_do_not_count(sent: Any) -> None:
    live = written((), None, config_map({"a": "1"}), "one")
    assert claimed(live, sent, subresource="") is live


def test_clients_may_edit_and_reset_entries() -> None:
    live = written((), None, config_map({"a": "1"}), "one")
    entries = encode(live)
    assert claimed((), entries, subresource="") == live
    assert claimed(live, [], subresource="") == claimed(live, [{}], subresource="") == ()
    assert claimed(live, [], subresource="status") is live


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"operation": "Create"}, "operation must be"),
        ({"operation": "Update"}, "apiVersion must not be empty"),
        ({"operation": "Update", "apiVersion": "v1"}, "missing fieldsType in managed fields entry 0"),
        ({"operation": "Update", "apiVersion": "v1", "fieldsType": "X"}, 'invalid fieldsType "X" in managed fields entry 0'),
        ({"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"a": {}}}, "unknown path element"),
    ],
)
def test_entries_are_checked(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode([entry])


def test_order_of_entries() -> None:
    managers = (
        Manager("b", "Update", "", "v1", EARLY, {"f:a": {}}),
        Manager("c", "Apply", "", "v1", LATE, {"f:a": {}}),
        Manager("a", "Update", "status", "v1", EARLY, {"f:a": {}}),
        Manager("a", "Update", "", "v1", EARLY, {"f:a": {}}),
        Manager("d", "Apply", "", "v1", "", {"f:a": {}}),
        Manager("e", "Apply", "", "v1", EARLY, {"f:a": {}}),
    )
    assert [(e["manager"], e.get("subresource")) for e in encode(managers)] == [
        ("d", None), ("e", None), ("c", None), ("a", None), ("a", "status"), ("b", None)
    ]  # fmt: skip
    assert {m.key for m in decode(encode(managers))} == {m.key for m in managers}


DATA = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)


@given(DATA, st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), DATA), max_size=12))
def test_every_field_has_an_owner_and_ledgers_agree(first: dict[str, str], writes: list[tuple[str, dict[str, str]]]) -> None:
    obj = config_map(first)
    managers = written((), None, obj, "one")
    ledger = Ledger().update(None, obj, CONFIG_MAP, manager="one", api_version="v1", now=EARLY)
    for name, data in writes:
        new = config_map(data)
        managers = written(managers, obj, new, name, LATE)
        ledger = ledger.update(obj, new, CONFIG_MAP, manager=name, api_version="v1", now=LATE)
        obj = new
        fields: dict[str, Any] = {}
        for manager in managers:
            fields = union(fields, manager.fields)
        assert contains(fields, difference(set_of(obj, CONFIG_MAP), STRIPPED))
    assert ledger.managers(CONFIG_MAP) == managers
    assert len(ledger.pending) <= 8
    assert ledger.managers(CONFIG_MAP) is ledger.managers(CONFIG_MAP)
    assert ledger.update(obj, obj, CONFIG_MAP, manager="four", api_version="v1", now=LATE) is ledger
