"""Names of everything that is made for a PodCliqueSet, and the way back from a name to its parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api import names
from api.labels import index_of
from api.objects.podgang import gang_shape, gang_shapes
from tests.admission import clique, group, pcs

# Names as validation allows them, also with dashes and numbers inside, which look like parts of other names.
WORDS = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
INDICES = st.integers(0, 2000)


def test_names_of_a_replica() -> None:
    assert names.service_name("chat", 1) == "chat-1"
    assert names.headless_address("chat", 1, "serving") == "chat-1.serving.svc.cluster.local"
    assert names.clique_name("chat", 1, "router") == "chat-1-router"
    assert names.scaling_group_name("chat", 1, "g") == "chat-1-g"
    assert names.member_clique_name("chat-1-g", 2, "w") == "chat-1-g-2-w"
    assert names.hostname("chat-1-g-2-w", 3) == "chat-1-g-2-w-3"
    assert names.role_name("chat") == "grove.io:pcs:chat"
    assert names.token_secret_name("chat") == "chat-ic-sat"


@pytest.mark.parametrize(
    ("j", "minimum", "expected"),
    [(0, 1, "chat-0"), (1, 1, "chat-0-g-0"), (2, 1, "chat-0-g-1"), (1, 2, "chat-0"), (2, 2, "chat-0-g-0"), (3, 2, "chat-0-g-1")],
)
def test_the_gang_of_a_group_replica(j: int, minimum: int, expected: str) -> None:
    assert names.gang_name("chat", 0, "chat-0-g", j, minimum) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("chat-0", 0),
        ("chat-12-router", 12),
        ("chat-3-a-b-7", 3),
        ("chat", None),
        ("chat-", None),
        ("chat-x", None),
        ("chat--1", None),
        ("chat-1x", None),
        ("chat-²", None),
        ("other-0", None),
        ("my-chat-0", None),
        ("", None),
    ],
)
def test_the_replica_of_a_name(name: str, expected: int | None) -> None:
    assert names.pcs_replica_of("chat", name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("chat-0-w", "w"), ("chat-0-a-b", "a-b"), ("chat-1-w", None), ("chat-0-", None), ("chat-0", None), ("x-chat-0-w", None)],
)
def test_the_template_of_a_name(name: str, expected: str | None) -> None:
    assert names.template_name_of_standalone("chat", 0, name) == expected
    assert names.template_name_of_member("chat", 0, name) == expected


@pytest.mark.parametrize(("text", "expected"), [("0", 0), ("17", 17), ("-1", None), ("", None), ("1.5", None), ("²", None), ("x", None)])
def test_an_index_in_a_label(text: str, expected: int | None) -> None:
    assert index_of({"index": text}, "index") == expected
    assert index_of({}, "index") is None


@given(WORDS, INDICES, WORDS)
def test_standalone_names_can_be_taken_apart(pcs_name: str, i: int, word: str) -> None:
    name = names.clique_name(pcs_name, i, word)
    assert names.pcs_replica_of(pcs_name, name) == i
    assert names.template_name_of_standalone(pcs_name, i, name) == word


@given(WORDS, INDICES, WORDS, INDICES, WORDS)
def test_member_names_can_be_taken_apart(pcs_name: str, i: int, group_name: str, j: int, word: str) -> None:
    full = names.scaling_group_name(pcs_name, i, group_name)
    name = names.member_clique_name(full, j, word)
    assert names.pcs_replica_of(pcs_name, full) == names.pcs_replica_of(pcs_name, name) == i
    assert names.template_name_of_member(full, j, name) == word


@given(WORDS, st.integers(1, 3), st.lists(WORDS, min_size=1, max_size=3, unique=True), st.integers(1, 3), st.integers(0, 3))
def test_every_gang_is_known_by_its_name(pcs_name: str, replicas: int, groups: list[str], minimum: int, more: int) -> None:
    cliques = [clique(f"c{i}") for i in range(len(groups))]
    configs = [group(g, f"c{i}", minAvailable=minimum, replicas=minimum + more) for i, g in enumerate(groups)]
    subject = pcs(*cliques, name=pcs_name, replicas=replicas, podCliqueScalingGroups=configs)
    shapes = list(gang_shapes(subject, {}))
    assert len({s.name for s in shapes}) == len(shapes) == replicas * (1 + len(groups) * more)
    assert [gang_shape(subject, s.name) for s in shapes] == shapes


def test_a_pod_has_the_same_name_whenever_it_is_made() -> None:
    assert names.pod_name("chat-0-w", "uid-1", 0, 0) == names.pod_name("chat-0-w", "uid-1", 0, 0)
    assert names.pod_name("chat-0-w", "uid-1", 0, 0) == "chat-0-w-hktqt"


@given(WORDS, st.uuids().map(str), INDICES, st.integers(0, 5))
def test_pod_names_look_like_generated_ones_and_fit_their_label(word: str, uid: str, index: int, attempt: int) -> None:
    name = names.pod_name(word, uid, index, attempt)
    prefix, suffix = name.rsplit("-", 1)
    assert prefix == word
    assert len(suffix) == 5
    assert set(suffix) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_every_pod_of_a_large_clique_finds_a_free_name() -> None:
    """A pod whose name is taken by another one of its clique goes on to the next of four."""
    taken: set[str] = set()
    for index in range(1000):
        candidates = [names.pod_name("w", "91a5c9b4-51b5-4e0f-a3a3-6f4d2b0a5a10", index, attempt) for attempt in range(4)]
        taken.add(next(c for c in candidates if c not in taken))
    assert len(taken) == 1000


def test_another_life_of_a_clique_has_other_pods() -> None:
    first, second = ({names.pod_name("w", uid, i, 0) for i in range(8)} for uid in ("uid-1", "uid-2"))
    assert not first & second
