"""The algebra of field sets against sets of paths, and their form in FieldsV1."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.apiserver.fields import FieldSet, from_v1, set_of, to_v1
from sim.apiserver.fields.fieldset import contains, difference, exclude, intersection, json_text, path_text, paths, union
from tests.unit.sim.fieldschemas import POD

ELEMENTS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"', "i:1"])
PATHS = st.sets(st.lists(ELEMENTS, min_size=1, max_size=3).map(tuple), max_size=8)


def made(members: set[tuple[str, ...]], *, reverse: bool = False) -> FieldSet:
    """A set of these paths, built through the wire format."""
    out: dict[str, Any] = {}
    for path in sorted(members, reverse=reverse):
        here = out
        for element in path:
            here = here.setdefault(element, {})
        here["."] = {}
    return from_v1(out)


def listed(fields: FieldSet) -> set[tuple[str, ...]]:
    found = list(paths(fields))
    assert len(found) == len(set(found))
    return set(found)


@given(PATHS, PATHS)
def test_algebra(a: set[tuple[str, ...]], b: set[tuple[str, ...]]) -> None:
    one, two = made(a), made(b)
    before = json.dumps([one, two])
    assert listed(one) == a
    assert listed(union(one, two)) == a | b
    assert listed(difference(one, two)) == a - b
    assert listed(intersection(one, two)) == a & b
    assert listed(exclude(one, two)) == {p for p in a if not any(p[: n + 1] in b for n in range(len(p)))}
    assert contains(one, two) == (b <= a)
    assert json.dumps([one, two]) == before
    for result in (union(one, two), difference(one, two), intersection(one, two), exclude(one, two)):
        assert result == made(listed(result))


@given(PATHS)
def test_wire_form_is_canonical(a: set[tuple[str, ...]]) -> None:
    fields = made(a)
    wire = to_v1(fields)
    assert from_v1(wire) == fields
    assert json.dumps(to_v1(made(a, reverse=True))) == json.dumps(wire)


def test_order_is_that_of_the_server() -> None:
    ports = {'k:{"port":80}': {}, 'k:{"port":9}': {}, 'k:{"name":"a","port":80}': {}}
    assert list(to_v1({"f:b": {}, "f:a": {}, ".": {}, "f:B": {}})) == [".", "f:B", "f:a", "f:b"]
    assert list(to_v1(ports)) == ['k:{"name":"a","port":80}', 'k:{"port":9}', 'k:{"port":80}']
    assert list(to_v1({'v:"b"': {}, "v:true": {}, "v:10": {}, "v:9": {}, "f:z": {}, "i:10": {}, "i:9": {}})) == [
        "f:z", "v:9", "v:10", 'v:"b"', "v:true", "i:9", "i:10"
    ]  # fmt: skip


def test_members_come_before_what_is_below_them() -> None:
    fields = {"f:a": {".": {}, "f:b": {}}, "f:c": {}}
    assert list(paths(fields)) == [("f:a",), ("f:c",), ("f:a", "f:b")]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("f:spec", "f:replicas"), ".spec.replicas"),
        (("f:spec", 'k:{"port":80,"protocol":"TCP"}', "f:name"), '.spec[port=80,protocol="TCP"].name'),
        (("f:finalizers", 'v:"a/b"'), '.finalizers[="a/b"]'),
        (("v:true", "i:3"), "[=true][3]"),
    ],
)
def test_paths_in_messages(path: tuple[str, ...], text: str) -> None:
    assert path_text(path) == text


@pytest.mark.parametrize(
    ("value", "text"), [("a b", '"a b"'), ("<é&\n", '"\\u003cé\\u0026\\n"'), (80, "80"), (True, "true"), (1.5, "1.5"), (None, "null")]
)
def test_values_in_elements(value: Any, text: str) -> None:
    assert json_text(value) == text


def test_elements_are_made_canonical() -> None:
    assert from_v1({'k:{"protocol": "TCP", "port": 80}': {".": {}}}) == {'k:{"port":80,"protocol":"TCP"}': {}}


@pytest.mark.parametrize("wrong", [{"a": {}}, {"f:a": 1}, {"k:[]": {}}, {"k:{": {}}, {"i:x": {}}, {"v:": {}}], ids=str)
def test_what_is_no_field_set(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_v1(wrong)


def test_fields_that_a_configuration_states() -> None:
    config = {
        "metadata": {"labels": {"a": "1"}, "annotations": {}, "finalizers": ["x/y"]},
        "spec": {
            "nodeSelector": {"a": "b"},
            "containers": [{"name": "c", "command": ["x"], "resources": {"limits": None}, "env": [], "ports": [{"containerPort": 1}]}],
            "anything": {"k": [1], "m": {"n": None}},
        },
    }
    assert set_of(config, POD) == {
        "f:metadata": {"f:labels": {"f:a": {}}, "f:annotations": {}, "f:finalizers": {'v:"x/y"': {}}},
        "f:spec": {
            "f:nodeSelector": {},
            "f:containers": {
                'k:{"name":"c"}': {
                    ".": {},
                    "f:name": {},
                    "f:command": {},
                    "f:resources": {"f:limits": {}},
                    "f:ports": {'k:{"containerPort":1,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
                }
            },
            "f:anything": {"f:k": {}, "f:m": {".": {}, "f:n": {}}},
        },
    }
