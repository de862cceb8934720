"""The startup waiter's rule: which pods count for which parent, and when it is satisfied."""

from typing import Any

import pytest

from controllers.initc.wait import ArgumentError, Parent, Waiter, counted_clique, parse_parents


def pod(name: str, clique: str = "a", gang: str = "g", ready: str = "True", **metadata: Any) -> dict[str, Any]:
    labels = {"grove.io/podgang": gang, "grove.io/podclique": clique}
    status = {"conditions": [{"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": ready}]}
    return {"metadata": {"name": name, "labels": labels, **metadata}, "status": status}


@pytest.mark.parametrize(
    ("values", "parents"),
    [
        ([], ()),
        (["", "  "], ()),
        (["a:1"], (Parent("a", 1),)),
        ([" a : 2 "], (Parent("a", 2),)),
        (["a:1,b:2"], (Parent("a", 1), Parent("b", 2))),
        (["b:1", "a:3"], (Parent("b", 1), Parent("a", 3))),
        (["a:2", "a:1"], (Parent("a", 2),)),
    ],
)
def test_parents_are_read_from_arguments(values: list[str], parents: tuple[Parent, ...]) -> None:
    assert parse_parents(values) == parents


@pytest.mark.parametrize("value", ["a", "a:", ":1", "a:x", "a:0", "a:-1", "a:1:2", "a:1.5", "a:²", " :1"])
def test_malformed_arguments_are_refused_by_name(value: str) -> None:
    with pytest.raises(ArgumentError, match="--podcliques"):
        parse_parents([value])


@pytest.mark.parametrize(
    ("found", "clique"),
    [
        (pod("x"), "a"),
        (pod("x", ready="False"), None),
        (pod("x", ready="Unknown"), None),
        (pod("x", gang="other"), None),
        (pod("x", deletionTimestamp="2026-01-01T00:00:00Z"), None),
        ({"metadata": {"name": "x", "labels": {"grove.io/podgang": "g", "grove.io/podclique": "a"}}}, None),
        ({"metadata": {"name": "x"}, "status": {"conditions": None}}, None),
        ({}, None),
    ],
    ids=["ready", "not ready", "unknown", "of another gang", "being deleted", "no status", "no labels", "nothing"],
)
def test_which_pods_count(found: dict[str, Any], clique: str | None) -> None:
    assert counted_clique(found, "g") == clique


def test_satisfied_when_every_parent_has_its_minimum() -> None:
    waiter = Waiter("g", parse_parents(["a:2", "b:1"]))
    waiter.replace([pod("a-0"), pod("b-0", "b")])
    assert not waiter.is_satisfied
    assert [str(p) for p in waiter.progress()] == ["a: 1/2 ready", "b: 1/1 ready"]
    waiter.see(pod("a-1"))
    assert waiter.is_satisfied


def test_a_pod_that_is_seen_twice_counts_once() -> None:
    waiter = Waiter("g", parse_parents(["a:2"]))
    waiter.see(pod("a-0"))
    waiter.see(pod("a-0"))
    assert not waiter.is_satisfied


def test_names_that_begin_alike_do_not_count() -> None:
    waiter = Waiter("g", parse_parents(["decode:1"]))
    waiter.see(pod("decode-x-0", "decode-x"))
    assert not waiter.is_satisfied


@pytest.mark.parametrize("loss", ["forgotten", "not ready", "not listed"])
def test_a_parent_can_be_lost_while_waiting(loss: str) -> None:
    waiter = Waiter("g", parse_parents(["a:1", "b:1"]))
    waiter.see(pod("a-0"))
    if loss == "forgotten":
        waiter.forget(pod("a-0"))
    elif loss == "not ready":
        waiter.see(pod("a-0", ready="False"))
    else:
        waiter.replace([])
    waiter.see(pod("b-0", "b"))
    assert not waiter.is_satisfied


def test_once_satisfied_it_never_waits_again() -> None:
    waiter = Waiter("g", parse_parents(["a:1"]))
    waiter.see(pod("a-0"))
    waiter.forget(pod("a-0"))
    waiter.replace([])
    assert waiter.is_satisfied


def test_nothing_to_wait_for() -> None:
    assert Waiter("g", ()).is_satisfied
