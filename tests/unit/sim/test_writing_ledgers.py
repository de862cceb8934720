"""Ledgers: ownership is worked out when asked for, and then as if it had been all along."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.apiserver.fields import lazy
from sim.apiserver.fields.lazy import NOBODY, Ledger
from sim.apiserver.fields.managed import Managers, updated
from tests.unit.sim.fieldschemas import CONFIG_MAP

NOW = "2026-11-30T09:30:02Z"


def config_map(data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "d", "uid": "u"}, "data": data}


def noted(ledger: Ledger, old: Any, new: Any, manager: str = "m") -> Ledger:
    return ledger.update(old, new, CONFIG_MAP, manager=manager, api_version="v1", now=NOW)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Managers of the writes that were worked out."""
    done: list[str] = []

    def count(managers: Managers, old: Any, new: Any, schema: Any, *, manager: str, **more: Any) -> Managers:
        done.append(manager)
        return updated(managers, old, new, schema, manager=manager, **more)

    monkeypatch.setattr(lazy, "updated", count)
    return done


def test_nothing_is_worked_out_before_somebody_asks(counted: list[str]):
    objects = [config_map({"a": str(i)}) for i in range(4)]
    ledger = noted(NOBODY, None, objects[0], "m0")
    for i in (1, 2, 3):
        ledger = noted(ledger, objects[i - 1], objects[i], f"m{i}")
    assert counted == []
    ledger.managers(CONFIG_MAP)
    assert counted == ["m0", "m1", "m2", "m3"]
    ledger.managers(CONFIG_MAP)
    assert len(counted) == 4


def test_what_is_known_is_not_worked_out_again(counted: list[str]):
    first = noted(NOBODY, None, config_map({"a": "1"}), "one")
    first.managers(CONFIG_MAP)
    second = noted(first, config_map({"a": "1"}), config_map({"a": "2"}), "two")
    second.managers(CONFIG_MAP)
    assert counted == ["one", "two"]


def test_few_old_objects_are_kept(counted: list[str]):
    ledger = NOBODY
    old: Any = None
    for i in range(100):
        new = config_map({"a": str(i)})
        ledger = noted(ledger, old, new, f"m{i}")
        old = new
        assert len(ledger.pending) <= lazy.MAX_PENDING
    ledger.managers(CONFIG_MAP)
    assert len(counted) == 100


def test_a_write_that_changes_nothing_is_none():
    obj = config_map({"a": "1"})
    ledger = noted(NOBODY, None, obj)
    assert noted(ledger, obj, obj) is ledger


def test_ledgers_of_one_past_do_not_see_each_other():
    start = config_map({"a": "1"})
    base = noted(NOBODY, None, start, "base")
    left = noted(base, start, config_map({"a": "2"}), "left")
    right = noted(base, start, config_map({"a": "1", "b": "1"}), "right")
    assert {m.name for m in left.managers(CONFIG_MAP)} == {"base", "left"}
    assert {m.name for m in right.managers(CONFIG_MAP)} == {"base", "right"}
    assert {m.name for m in base.managers(CONFIG_MAP)} == {"base"}
    assert NOBODY.managers(CONFIG_MAP) == ()


Write = tuple[str, dict[str, str], bool]
WRITES = st.lists(
    st.tuples(st.sampled_from("pqr"), st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3), st.booleans()),
    max_size=24,
)


@given(WRITES)
def test_late_is_as_good_as_early(writes: Sequence[Write]):
    """The third part of a write is whether somebody asks after it."""
    ledger, managers = NOBODY, ()
    old: Any = None
    for name, data, is_asked in writes:
        new = config_map(data)
        ledger = noted(ledger, old, new, name)
        managers = updated(managers, old, new, CONFIG_MAP, manager=name, api_version="v1", now=NOW)
        old = new
        if is_asked:
            assert ledger.managers(CONFIG_MAP) == managers
    assert ledger.managers(CONFIG_MAP) == managers
