"""JSON patch and merge patch; what is expected was observed on kube-apiserver 1.36."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.apiserver.patches import json_patch, merge_patch
from sim.apiserver.patches.merging import without_nulls
from sim.apiserver.status import StatusError

DOCUMENT = {"data": {"a": "1", "b": "2"}, "metadata": {"finalizers": ["a/a", "b/b"]}, "n": 1}
LEAVES = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y", ""])
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc/~"), inner, max_size=3), max_leaves=8
)
MAPS = st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)


def op(kind: str, path: str, *value: Any, source: str | None = None) -> dict[str, Any]:
    out: dict[str, Any] = {"op": kind, "path": path}
    if value:
        out["value"] = value[0]
    return out if source is None else {**out, "from": source}


@pytest.mark.parametrize(
    ("operation", "path", "after"),
    [
        (op("add", "/data/c", "3"), ("data",), {"a": "1", "b": "2", "c": "3"}),
        (op("add", "/data/x~1y", "3"), ("data",), {"a": "1", "b": "2", "x/y": "3"}),
        (op("add", "/data/x~01", "3"), ("data",), {"a": "1", "b": "2", "x~1": "3"}),
        (op("add", "/data/n"), ("data",), {"a": "1", "b": "2", "n": None}),
        (op("add", "/metadata/finalizers/-", "z/z"), ("metadata", "finalizers"), ["a/a", "b/b", "z/z"]),
        (op("add", "/metadata/finalizers/-1", "z/z"), ("metadata", "finalizers"), ["a/a", "b/b", "z/z"]),
        (op("add", "/metadata/finalizers/0", "z/z"), ("metadata", "finalizers"), ["z/z", "a/a", "b/b"]),
        (op("replace", "/data/zz", "2"), ("data",), {"a": "1", "b": "2", "zz": "2"}),
        (op("replace", "/metadata/finalizers/-1", "x/y"), ("metadata", "finalizers"), ["a/a", "x/y"]),
        (op("replace", "", {"data": {}}), (), {"data": {}}),
        (op("remove", "/data/a"), ("data",), {"b": "2"}),
        (op("remove", "/metadata/finalizers/0"), ("metadata", "finalizers"), ["b/b"]),
        (op("move", "/data/c", source="/data/a"), ("data",), {"b": "2", "c": "1"}),
        (op("move", "/metadata/finalizers/1", source="/metadata/finalizers/0"), ("metadata", "finalizers"), ["b/b", "a/a"]),
        (op("copy", "/data/c", source="/data/a"), ("data",), {"a": "1", "b": "2", "c": "1"}),
        (op("copy", "/data/c", source="/data/zz"), ("data",), {"a": "1", "b": "2", "c": None}),
        (op("test", "/data/zz", None), (), DOCUMENT),
        (op("test", "/data/zz"), (), DOCUMENT),
        (op("test", "/data", {"b": "2", "a": "1"}), (), DOCUMENT),
        (op("test", "", DOCUMENT), (), DOCUMENT),
    ],
    ids=str,
)
def test_operations(operation: dict[str, Any], path: tuple[str, ...], after: Any) -> None:
    before = copy.deepcopy(DOCUMENT)
    got = json_patch(DOCUMENT, [operation])
    assert before == DOCUMENT
    for key in path:
        got = got[key]
    assert got == after


@pytest.mark.parametrize(
    "operation",
    [
        op("test", "/data/a", "2"),
        op("test", "/data/a"),
        op("test", "/nope/zz", None),
        op("test", "/n", True),
        op("test", "/n", 1.0),
        op("test", "/metadata/finalizers/5", "x"),
        op("test", "/metadata/finalizers/x", "x"),
        op("test", "", "x"),
        op("replace", "/nope/zz", "2"),
        op("replace", "/metadata/finalizers/5", "x"),
        op("replace", "/metadata/finalizers/x", "x"),
        op("replace", "", "x"),
        op("remove", "/data/q"),
        op("remove", "/nope/q"),
        op("remove", "nope"),
        op("remove", ""),
        op("remove", "/metadata/finalizers/-"),
        op("remove", "/metadata/finalizers/-7"),
        op("remove", "/metadata/finalizers/2"),
        op("add", "/nope/q", "1"),
        op("add", "/data/a/b", "1"),
        op("add", "", "x"),
        op("add", "/metadata/finalizers/3", "x"),
        op("add", "/metadata/finalizers/-8", "x"),
        op("add", "/metadata/finalizers/x", "x"),
        op("move", "/data/c", source="/data/zz"),
        op("move", "/no/c", source="/data/a"),
        op("move", "/data/c"),
        op("copy", "/no/c", source="/data/a"),
        op("copy", "/data/c", source="/no/zz"),
        op("copy", "/data/c"),
        op("foo", "/data/a"),
        {"path": "/data/a"},
        {"op": "remove"},
        None,
    ],
    ids=str,
)
def test_operations_that_fail_say_nothing_about_why(operation: Any) -> None:
    with pytest.raises(StatusError) as refused:
        json_patch(DOCUMENT, [operation])
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert refused.value.message == "the server rejected our request due to an error in our request"


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ({"op": "x"}, "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        ([1], "cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
        (["x"], "cannot unmarshal string into Go value of type handlers.jsonPatchOp"),
        ([{"op": 5, "path": "/a"}], "cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
        ([{"op": "remove", "path": [5]}], "cannot unmarshal array into Go struct field jsonPatchOp.path of type string"),
    ],
    ids=str,
)
def test_malformed_operations(operations: Any, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        json_patch(DOCUMENT, operations)
    assert (refused.value.code, refused.value.reason) == (400, "BadRequest")
    assert refused.value.message == f"error decoding patch: json: {message}"


def test_too_many_operations() -> None:
    with pytest.raises(StatusError) as refused:
        json_patch(DOCUMENT, [op("add", "/data/n", "q")] * 10_001)
    assert (refused.value.code, refused.value.reason) == (413, "RequestEntityTooLarge")
    assert refused.value.message == "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    assert json_patch(DOCUMENT, [op("add", "/data/n", "q")] * 10_000)["data"]["n"] == "q"


def test_copies_of_copies_end_before_they_fill_the_memory() -> None:
    copies = [op("copy", f"/data/z{i}", source="/data") for i in range(40)]
    with pytest.raises(StatusError) as refused:
        json_patch(DOCUMENT, copies)
    assert (refused.value.code, refused.value.reason) == (422, "Invalid")
    assert json_patch(DOCUMENT, copies[:2])["data"]["z1"]["z0"] == {"a": "1", "b": "2"}


@given(MAPS, st.sampled_from("abcd"), JSON)
def test_what_add_puts_test_finds_and_remove_takes_away(doc: dict[str, Any], key: str, value: Any) -> None:
    before = copy.deepcopy(doc)
    after = json_patch(doc, [op("add", f"/{key}", value), op("test", f"/{key}", value), op("remove", f"/{key}")])
    assert doc == before
    assert after == {k: v for k, v in doc.items() if k != key}


@pytest.mark.parametrize(
    ("obj", "patch", "after"),
    [
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None, "d": {"x": None, "y": 1}}}, {"a": {"c": 2, "d": {"y": 1}}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": None}}, {"a": {}}),
        ({"a": {"b": 1}}, {"a": None, "z": None}, {}),
        ({"a": {"b": 1}}, {"a": [{"c": None}]}, {"a": [{"c": None}]}),
        ({}, {"a": [{"c": None}, None]}, {"a": [{}, None]}),
    ],
    ids=str,
)
def test_merge_patch(obj: dict[str, Any], patch: dict[str, Any], after: dict[str, Any]) -> None:
    before = copy.deepcopy((obj, patch))
    assert merge_patch(obj, patch) == after
    assert (obj, patch) == before


@pytest.mark.parametrize(("patch", "kind"), [([1], "array"), ("x", "string"), (1, "number"), (True, "bool")])
def test_merge_patch_must_be_a_map(patch: Any, kind: str) -> None:
    with pytest.raises(StatusError) as refused:
        merge_patch({}, patch)
    assert refused.value.code == 400
    assert refused.value.message == f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"


@given(MAPS, MAPS)
def test_merge_patch_settles_and_shares_what_stays(obj: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch(obj, patch)
    twice = merge_patch(once, patch)
    # A list that took the place of a map loses the nulls of its maps only in the second round.
    assert without_nulls(once) == without_nulls(twice)
    assert merge_patch(twice, patch) == twice
    assert all(once[k] is v for k, v in obj.items() if k not in patch)
