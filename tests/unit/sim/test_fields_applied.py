"""Server-side apply; objects, entries and messages as observed on kube-apiserver 1.36."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.apiserver.fields import Manager, Managers, applied, settled, updated
from sim.apiserver.fields.applying import LAST_APPLIED
from sim.apiserver.objects import Object
from sim.apiserver.status import StatusError
from tests.unit.sim.fieldschemas import CONFIG_MAP, POD

EARLY, LATE = "2026-11-30T09:30:02Z", "2026-11-30T09:30:03Z"


def cm(data: Any = None, **metadata: Any) -> Object:
    out: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **metadata}}
    return out if data is None else {**out, "data": data}


def apply(managers: Managers, live: Object | None, config: Object, manager: str, **more: Any) -> tuple[Object, Managers]:
    before = copy.deepcopy((live, config))
    arguments: dict[str, Any] = {"force": False, "api_version": "v1", "now": EARLY, "schema": CONFIG_MAP, **more}
    out = applied(managers, live, config, manager=manager, **arguments)
    assert (live, config) == before
    return out


def owned(managers: Managers) -> dict[str, Any]:
    return {m.name: m.fields for m in managers}


def refused(managers: Managers, live: Object | None, config: Object, manager: str, **more: Any) -> StatusError:
    with pytest.raises(StatusError) as error:
        apply(managers, live, config, manager, **more)
    return error.value


def test_the_first_apply_creates_and_owns_what_it_states() -> None:
    obj, managers = apply((), None, cm({"a": "1"}), "m1")
    assert obj == cm({"a": "1"})
    assert managers == (Manager("m1", "Apply", "", "v1", EARLY, {"f:data": {"f:a": {}}}),)


def test_a_second_applier_of_the_same_shares_and_has_no_time() -> None:
    obj, one = apply((), None, cm({"a": "1"}), "m1")
    same, two = apply(one, obj, cm({"a": "1"}), "m2", now=LATE)
    assert same is obj
    assert [(m.name, m.time) for m in two] == [("m1", EARLY), ("m2", "")]
    again, three = apply(two, obj, cm({"a": "1"}), "m1", now=LATE)
    assert again is obj
    assert three is two


def test_what_is_no_longer_applied_goes_unless_shared() -> None:
    obj, managers = apply((), None, cm({"a": "1", "b": "1"}), "m1")
    obj, managers = apply(managers, obj, cm({"b": "1", "c": "1"}), "m2")
    obj, managers = apply(managers, obj, cm({"c": "1"}), "m1")
    assert obj["data"] == {"b": "1", "c": "1"}
    obj, managers = apply(managers, obj, cm(), "m2")
    assert obj["data"] == {"c": "1"}
    assert owned(managers) == {"m1": {"f:data": {"f:c": {}}}}
    obj, managers = apply(managers, obj, cm(), "m1")
    assert "data" not in obj
    assert managers == ()


def test_updaters_keep_what_they_wrote() -> None:
    first, managers = apply((), None, cm({"a": "1"}, uid="u"), "m1")
    obj = {**first, "data": {"a": "2", "b": "2"}}
    managers = updated(managers, first, obj, CONFIG_MAP, manager="u1", api_version="v1", now=EARLY)
    assert owned(managers) == {"u1": {"f:data": {"f:a": {}, "f:b": {}}}}
    after, _ = apply(managers, obj, cm(), "m1")
    assert after is obj


def test_conflicts_name_every_manager_and_field() -> None:
    managers = (
        Manager("m3", "Apply", "", "v1", EARLY, {"f:data": {"f:a": {}}}),
        Manager("u1", "Update", "", "v1", EARLY, {"f:data": {"f:b": {}, "f:z": {}}}),
    )
    live = cm({"a": "2", "b": "4", "z": "1"})
    error = refused(managers, live, cm({"a": "9", "b": "9", "z": "9"}), "m1")
    assert (error.code, error.reason) == (409, "Conflict")
    assert error.message == (
        'Apply failed with 3 conflicts: conflicts with "m3":\n- .data.a\nconflicts with "u1" using v1:\n- .data.b\n- .data.z'
    )
    assert error.details["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "m3"', "field": ".data.a"},
        {"reason": "FieldManagerConflict", "message": 'conflict with "u1" using v1', "field": ".data.b"},
        {"reason": "FieldManagerConflict", "message": 'conflict with "u1" using v1', "field": ".data.z"},
    ]
    obj, after = apply(managers, live, cm({"a": "9", "b": "9"}), "m1", force=True)
    assert obj["data"] == {"a": "9", "b": "9", "z": "1"}
    assert owned(after) == {"u1": {"f:data": {"f:z": {}}}, "m1": {"f:data": {"f:a": {}, "f:b": {}}}}


@pytest.mark.parametrize(
    ("manager", "who"),
    [
        (Manager("st", "Update", "status", "v1"), '"st" with subresource "status" using v1'),
        (Manager("sa", "Apply", "status", "v1"), '"sa" with subresource "status"'),
    ],
)
def test_one_conflict_below_an_item(manager: Manager, who: str) -> None:
    fields = {"f:status": {"f:conditions": {'k:{"type":"A"}': {"f:status": {}}}}}
    taken = Manager(manager.name, manager.operation, manager.subresource, "v1", EARLY, fields)
    live = {"status": {"conditions": [{"type": "A", "status": "True"}]}}
    config = {"status": {"conditions": [{"type": "A", "status": "False"}]}}
    error = refused((taken,), live, config, "sb", schema=POD, subresource="status")
    assert error.message == f'Apply failed with 1 conflict: conflict with {who}: .status.conditions[type="A"].status'


def test_items_keep_their_order_and_new_ones_follow_the_configuration() -> None:
    def gates(*names: str) -> Object:
        return {"spec": {"schedulingGates": [{"name": name} for name in names]}}

    for live, config, after in [
        ("abc", "b", "abc"),
        ("abc", "cxa", "bcxa"),
        ("abc", "xb", "axbc"),
        ("ab", "ba", "ba"),
        ("", "ba", "ba"),
        ("abcd", "dxb", "acdxb"),
    ]:
        obj, _ = apply((), gates(*live), gates(*config), "m", schema=POD, force=True)
        assert "".join(g["name"] for g in obj["spec"]["schedulingGates"]) == after, (live, config)


def test_nested_items_are_pruned_and_atomic_values_replaced() -> None:
    def pod(**container: Any) -> Object:
        return {"spec": {"containers": [{"name": "a", **container}], "nodeSelector": {"n": "1"}}}

    first = pod(command=["x", "y"], env=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}], resources={"limits": {"cpu": "1"}})
    obj, managers = apply((), None, first, "m", schema=POD)
    second = pod(command=["z"], env=[{"name": "B", "value": "2"}])
    second["spec"]["nodeSelector"] = {"o": "1"}
    after, managers = apply(managers, obj, second, "m", schema=POD, now=LATE)
    assert after == second
    assert managers[0].time == LATE
    item = managers[0].fields["f:spec"]["f:containers"]['k:{"name":"a"}']
    assert item == {".": {}, "f:name": {}, "f:command": {}, "f:env": {'k:{"name":"B"}': {".": {}, "f:name": {}, "f:value": {}}}}


def test_nulls() -> None:
    live = cm({"a": "1"})
    kept, managers = apply((Manager("o", "Apply", "", "v1"),), live, {**cm(), "data": None}, "m")
    assert kept is live
    assert owned(managers)["m"] == {"f:data": {}}
    obj, _ = apply((), live, cm({"q": None}), "m")
    assert obj["data"] == {"a": "1", "q": None}


def test_containers_that_pruning_empties_become_null() -> None:
    obj, managers = apply((), None, cm({"a": "1"}), "m1")
    obj, managers = apply(managers, obj, cm({}), "m2")
    obj, managers = apply(managers, obj, cm(), "m1")
    assert obj == {**cm(), "data": None}


def test_before_the_first_apply() -> None:
    live = cm({"z": "1"}, uid="u", labels={"l": "2"})
    _, managers = apply((), live, cm({"a": "2"}), "m5")
    (before, mine) = managers
    assert (before.name, before.operation, before.time) == ("before-first-apply", "Update", EARLY)
    assert before.fields == {"f:data": {".": {}, "f:z": {}}, "f:metadata": {"f:labels": {".": {}, "f:l": {}}}}
    assert mine.fields == {"f:data": {"f:a": {}}}


def test_kubectl_takes_over_what_it_applied_on_the_client_side() -> None:
    last = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "1", "b": "1"}})
    live = cm({"a": "1", "b": "2"}, annotations={LAST_APPLIED: last})
    theirs = {"f:data": {"f:a": {}, "f:b": {}}, "f:metadata": {"f:annotations": {f"f:{LAST_APPLIED}": {}}}}
    managers = (Manager("kubectl-client-side-apply", "Update", "", "v1", EARLY, theirs),)
    assert "conflicts" in refused(managers, live, cm({"a": "9", "b": "9"}), "other").message
    only = refused(managers, live, cm({"a": "9", "b": "9"}), "kubectl").message
    assert only == 'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.b'
    obj, _ = apply(managers, live, cm({"a": "9"}), "kubectl")
    assert obj["data"] == {"a": "9", "b": "2"}
    text = '{"apiVersion":"v1","data":{"a":"9"},"kind":"ConfigMap","metadata":{"name":"x"}}\n'
    assert obj["metadata"]["annotations"] == {LAST_APPLIED: text}


def test_reset_fields_are_neither_owned_nor_in_conflict() -> None:
    managers = (Manager("s", "Update", "status", "v1", EARLY, {"f:status": {"f:phase": {}}}),)
    config = {"spec": {"nodeName": "n"}, "status": {"phase": "B"}}
    obj, after = apply(managers, {"status": {"phase": "A"}}, config, "m", schema=POD, reset={"f:status": {}})
    assert obj["status"] == {"phase": "B"}
    assert owned(after) == {"s": {"f:status": {"f:phase": {}}}, "m": {"f:spec": {"f:nodeName": {}}}}


WRONG = "failed to create typed patch object (/x; /v1, Kind=ConfigMap): "


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({**cm(), "nope": 1}, ".nope: field not declared in schema"),
        (cm({"a": 1}), ".data.a: expected string, got &value.valueUnstructured{Value:1}"),
        (cm({"a": {"x": 1}}), '.data.a: expected string, got &value.valueUnstructured{Value:map[string]interface {}{"x":1}}'),
        (cm([1]), ".data: expected map, got &{[1]}"),
        (cm("x"), ".data: expected map, got &{x}"),
        ({**cm(), "immutable": "x"}, ".immutable: expected boolean, got &{x}"),
        (cm(generation="x"), ".metadata.generation: expected numeric (int or float), got string"),
        (cm(finalizers=["a/b", "a/b"]), '.metadata.finalizers: duplicate entries for key [="a/b"]'),
        (cm(finalizers=[None]), ".metadata.finalizers: element 0: associative list without keys has an element that's an explicit null"),
        (cm(finalizers=[{}]), ".metadata.finalizers: element 0: associative list without keys has an element that's a map type"),
        (cm(finalizers=[["a"]]), ".metadata.finalizers: element 0: not supported: associative list with lists as elements"),
        (cm(finalizers="a"), ".metadata.finalizers: expected list, got &{a}"),
        (cm({"a": 1, "b": 2}), "errors:\n  .data.a: expected string, got &value.valueUnstructured{Value:1}\n"
         "  .data.b: expected string, got &value.valueUnstructured{Value:2}"),
        (cm(ownerReferences=[1]), ".metadata.ownerReferences: element 0: associative list with keys may not have non-map elements"),
        (cm(ownerReferences=[None]), ".metadata.ownerReferences: element 0: associative list with keys may not have a null element"),
        (cm(ownerReferences=[{"name": "n"}]), ".metadata.ownerReferences: element 0: associative list with keys has an element that omits "
         'all key fields ["uid"] (and doesn\'t have default values for any key fields)'),
    ],
    ids=str,
)  # fmt: skip
def test_configurations_that_do_not_fit(config: Object, problem: str) -> None:
    error = refused((), cm(), config, "m")
    assert (error.code, error.reason, error.message) == (500, "", WRONG + problem)


def test_paths_of_problems_below_items() -> None:
    config: Object = {"apiVersion": "apps/v1", "kind": "K", "metadata": {"name": "n", "namespace": "d"}}
    config["spec"] = {"containers": [{"name": "a", "ports": [{"containerPort": 1}, {"containerPort": 1}]}]}
    message = refused((), None, config, "m", schema=POD).message
    where = '.spec.containers[name="a"].ports: duplicate entries for key [containerPort=1,protocol="TCP"]'
    assert message == f"failed to create typed patch object (d/n; apps/v1, Kind=K): {where}"


@pytest.mark.parametrize("entries", [[], [{}]])
def test_configurations_may_not_hold_managers(entries: Any) -> None:
    error = refused((), cm(), cm(managedFields=entries), "m")
    assert (error.code, error.message) == (400, "metadata.managedFields must be nil")
    apply((), cm(), {"apiVersion": "v1", "metadata": {"managedFields": None}}, "m")


def test_settled() -> None:
    a, b = (Manager(name, "Apply", "", "v1", EARLY, {"f:data": {}}) for name in "ab")
    later = Manager("b", "Apply", "", "v1", LATE, {"f:data": {}})
    assert settled(before := (a, b), (a, later)) is before
    assert settled(before, (a,)) == (a,)
    assert settled(before, changed := (a, Manager("b", "Apply", "", "v1", LATE, {"f:x": {}}))) is changed


DATA = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), min_size=1, max_size=3)


@given(st.lists(st.tuples(st.sampled_from(["m1", "m2", "m3"]), DATA), min_size=1, max_size=8))
def test_applying_twice_changes_nothing_and_results_hold_what_was_applied(steps: list[tuple[str, dict[str, str]]]) -> None:
    live: Object | None = None
    managers: Managers = ()
    for name, data in steps:
        live, managers = apply(managers, live, cm(data), name, force=True)
        assert data.items() <= live["data"].items()
        again, same = apply(managers, live, cm(data), name, now=LATE)
        assert again is live
        assert same is managers
        claimed = {key for m in managers for key in m.fields.get("f:data", {})}
        assert {f"f:{key}" for key in live["data"]} <= claimed
