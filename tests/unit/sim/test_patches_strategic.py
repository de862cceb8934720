"""Strategic merge patch; tables observed on kube-apiserver 1.36 with a pod like the one here."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.apiserver.objects import dig
from sim.apiserver.patches import strategic_patch
from sim.apiserver.status import StatusError
from tests.unit.sim.fieldschemas import POD

BOTH = ["a", "b"]
LIVE: dict[str, Any] = {
    "metadata": {"name": "s", "finalizers": ["a/a", "b/b", "c/c"], "labels": {"x": "1", "y": "2"}},
    "spec": {
        "nodeSelector": {"a": "1"},
        "containers": [
            {"name": n, "image": n, "ports": [{"containerPort": 80}, {"containerPort": 81}], "env": [{"name": "A"}, {"name": "B"}]}
            for n in BOTH
        ],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "hostPath": {"path": "/x"}}],
        "tolerations": [{"key": "k"}],
        "schedulingGates": [{"name": "g1"}, {"name": "g2"}, {"name": "g3"}],
    },
}


def names(*values: str) -> list[dict[str, str]]:
    return [{"name": value} for value in values]


def patched(*path: str, patch: dict[str, Any]) -> Any:
    before = copy.deepcopy((LIVE, patch))
    out = strategic_patch(LIVE, patch, POD)
    assert (LIVE, patch) == before
    return dig(out, *path)


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        ({"finalizers": ["d/d", "b/b"]}, ["d/d", "a/a", "b/b", "c/c"]),
        ({"$deleteFromPrimitiveList/finalizers": ["a/a", "q/q"]}, ["b/b", "c/c"]),
        ({"$deleteFromPrimitiveList/finalizers": ["a/a"], "finalizers": ["e/e"]}, ["e/e", "b/b", "c/c"]),
        ({"$setElementOrder/finalizers": ["c/c", "d/d", "a/a"], "finalizers": ["d/d"]}, ["b/b", "c/c", "d/d", "a/a"]),
        ({"$setElementOrder/finalizers": ["c/c", "a/a"]}, ["b/b", "c/c", "a/a"]),
        ({"finalizers": None}, None),
        ({"finalizers": "x"}, "x"),
        ({"$retainKeys": ["name"]}, None),
    ],
    ids=str,
)
def test_lists_of_primitives(patch: dict[str, Any], after: Any) -> None:
    assert patched("metadata", "finalizers", patch={"metadata": patch}) == after


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        ({"z": "3", "x": None}, {"y": "2", "z": "3"}),
        ({"$patch": "replace", "z": "9"}, {"z": "9"}),
        ({"$patch": "delete"}, {}),
        ({"$retainKeys": ["x"]}, {"x": "1"}),
        ({"$retainKeys": ["z"], "z": "1"}, {"z": "1"}),
    ],
    ids=str,
)
def test_maps(patch: dict[str, Any], after: Any) -> None:
    assert patched("metadata", "labels", patch={"metadata": {"labels": patch}}) == after


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        ({"schedulingGates": [{"name": "g2", "$patch": "delete"}]}, names("g1", "g3")),
        ({"schedulingGates": [{"name": "q", "$patch": "delete"}]}, names("g1", "g2", "g3")),
        ({"schedulingGates": [{"$patch": "replace"}]}, []),
        ({"schedulingGates": [{"$patch": "replace"}, {"name": "g3"}]}, names("g3")),
        ({"schedulingGates": names("g0")}, names("g0", "g1", "g2", "g3")),
        ({"$setElementOrder/schedulingGates": names("g3", "g1")}, names("g2", "g3", "g1")),
        (
            {"$setElementOrder/schedulingGates": names("g3", "g1"), "schedulingGates": [{"name": "g2", "$patch": "delete"}]},
            names("g3", "g1"),
        ),
        (
            {
                "$setElementOrder/schedulingGates": names("g3"),
                "schedulingGates": [{"name": "g2", "$patch": "delete"}, {"name": "g1", "$patch": "delete"}],
            },
            names("g3"),
        ),
    ],
    ids=str,
)
def test_lists_of_maps(patch: dict[str, Any], after: Any) -> None:
    assert patched("spec", "schedulingGates", patch={"spec": patch}) == after


def test_new_items_take_the_place_of_deleted_ones() -> None:
    live = {"spec": {"schedulingGates": names("s1", "s2")}}
    changes = [{"name": "s3"}, {"name": "s1", "$patch": "delete"}]
    patch = {"spec": {"schedulingGates": changes, "$setElementOrder/schedulingGates": names("s3", "s1")}}
    assert strategic_patch(live, patch, POD)["spec"]["schedulingGates"] == names("s2", "s3")


def test_items_merge_by_key_and_nested_lists_by_theirs() -> None:
    env = [{"name": "B", "$patch": "delete"}, {"name": "C", "value": "3", "valueFrom": None}]
    patch = {"spec": {"containers": [{"name": "b", "image": "new", "ports": [{"containerPort": 81, "$patch": "delete"}], "env": env}]}}
    first, second = patched("spec", "containers", patch=patch)
    assert first is LIVE["spec"]["containers"][0]
    assert second == {"name": "b", "image": "new", "ports": [{"containerPort": 80}], "env": [{"name": "C", "value": "3"}, {"name": "A"}]}


def test_retain_keys_of_a_volume_drops_the_other_source() -> None:
    patch = {"spec": {"volumes": [{"name": "w", "$retainKeys": ["name", "emptyDir"], "emptyDir": {}}]}}
    assert patched("spec", "volumes", patch=patch)[1] == {"name": "w", "emptyDir": {}}


def test_new_items_come_without_nulls_and_directives() -> None:
    volume = {"name": "n", "$retainKeys": ["name", "emptyDir"], "emptyDir": {"medium": None}}
    assert patched("spec", "volumes", patch={"spec": {"volumes": [volume]}})[0] == {"name": "n", "emptyDir": {}}


def test_lists_without_strategy_are_replaced() -> None:
    assert patched("spec", "tolerations", patch={"spec": {"tolerations": [{"key": "z"}]}}) == [{"key": "z"}]


def test_new_maps_come_without_nulls() -> None:
    assert patched("metadata", "annotations", patch={"metadata": {"annotations": {"a": None, "b": "1"}}}) == {"b": "1"}
    assert patched("metadata", "annotations", patch={"metadata": {"annotations": {"$patch": "replace", "b": "1"}}}) is None


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ({"metadata": {"$deleteFromPrimitiveList": ["a/a"]}}, 400, "invalid patch format of primitive list"),
        ({"metadata": {"$setElementOrder": ["a/a"]}}, 400, "invalid patch format of setElementOrder list"),
        ({"metadata": {"labels": {"$retainKeys": ["z"], "q": "1"}}}, 400, "invalid patch format of retainKeys"),
        ({"metadata": {"labels": {"$retainKeys": "z", "q": "1"}}}, 400, "invalid patch format of retainKeys"),
        (
            {"metadata": {"$setElementOrder/finalizers": ["c/c", "a/a"], "finalizers": ["d/d"]}},
            500,
            "The order in patch list:\n[d/d]\n doesn't match $setElementOrder list:\n[c/c a/a]\n",
        ),
        ({"metadata": {"$setElementOrder/finalizers": "x"}}, 500, "expected a []interface {}, but received a string"),
        ({"metadata": {"finalizers": [1]}}, 500, "list element types are not identical: [[a/a b/b c/c] [1]]"),
        ({"metadata": {"finalizers": [["x"]]}}, 500, "list element types are not identical: [[a/a b/b c/c] [[x]]]"),
        ({"metadata": {"labels": {"$patch": "merge", "z": "1"}}}, 500, "unknown patch type: merge in map: map[$patch:merge z:1]"),
        (
            {"spec": {"schedulingGates": [{"$patch": "delete"}]}},
            500,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        ({"spec": {"schedulingGates": [{"$patch": "merge"}]}}, 500, "merging lists cannot yet be specified in the patch"),
        ({"spec": {"schedulingGates": [{"$patch": "bar", "name": "g1"}]}}, 500, "unknown patch type: bar in map: map[$patch:bar name:g1]"),
        ({"spec": {"schedulingGates": [{"nam": "g1"}]}}, 500, "map: map[nam:g1] does not contain declared merge key: name"),
        (
            {"spec": {"schedulingGates": ["x"]}},
            500,
            "list element types are not identical: [[map[name:g1] map[name:g2] map[name:g3]] [x]]",
        ),
        (
            {"spec": {"$setElementOrder/schedulingGates": [{"x": "g3"}, {"name": "g1"}]}},
            500,
            "map: map[x:g3] does not contain declared merge key: name",
        ),
        ({"spec": {"$setElementOrder/schedulingGates": ["g3"]}}, 500, "value for key 0 is not a map"),
        ({"$patch": "x"}, 500, "unknown patch type: x in map: map[$patch:x]"),
        ([1], 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
    ],
    ids=str,
)
def test_refusals(patch: Any, code: int, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        strategic_patch(LIVE, patch, POD)
    assert (refused.value.code, refused.value.message) == (code, message)


ENTRIES = st.dictionaries(st.sampled_from("abcde"), st.sampled_from("123"), max_size=5)


@given(ENTRIES, ENTRIES, st.sets(st.sampled_from("abcde")))
def test_keyed_lists_merge_as_the_maps_they_stand_for(old: dict[str, str], new: dict[str, str], gone: set[str]) -> None:
    def listed(entries: dict[str, str]) -> list[dict[str, str]]:
        return [{"name": k, "value": v} for k, v in entries.items()]

    live = {"spec": {"containers": [{"name": "x", "env": listed(old)}]}}
    patch = listed({k: v for k, v in new.items() if k not in gone}) + [{"name": k, "$patch": "delete"} for k in sorted(gone)]
    after = strategic_patch(live, {"spec": {"containers": [{"name": "x", "env": patch}]}}, POD)
    env = after["spec"]["containers"][0].get("env", []) if old else None
    expected = {k: v for k, v in {**old, **new}.items() if k not in gone}
    if env is not None:
        assert {e["name"]: e["value"] for e in env} == expected
        assert len(env) == len(expected)
