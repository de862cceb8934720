"""The annotation of MNNVL groups on its three levels, on creation and on update."""

from typing import Any

import pytest

from api.grove import PodCliqueSet
from tests.admission import clique, config, created, group, kinds, pcs, updated

KEY = "grove.io/mnnvl-group"
ON = config(mnnvl=True)
OFF = config(mnnvl=False)
LEVELS = {
    "metadata": "metadata",
    "clique": "spec.template.cliques[0]",
    "group": "spec.template.podCliqueScalingGroups[0]",
}


def annotated(level: str, value: str | None) -> PodCliqueSet:
    fields: dict[str, Any] = {} if value is None else {"annotations": {KEY: value, "other": "x"}}
    return pcs(
        clique("a", **(fields if level == "clique" else {})),
        clique("b"),
        metadata=fields if level == "metadata" else {},
        podCliqueScalingGroups=[group("g", "b", **(fields if level == "group" else {}))],
    )


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("value", "enabled", "accepted"),
    [
        pytest.param(None, False, True, id="absent"),
        pytest.param("none", True, True, id="opted out"),
        pytest.param("none", False, True, id="opted out where it is off"),
        pytest.param("train-1", True, True, id="a group"),
        pytest.param("x" * 63, True, True, id="63 characters"),
        pytest.param("train-1", False, False, id="a group where it is off"),
        pytest.param("", True, False, id="empty"),
        pytest.param("", False, False, id="empty where it is off"),
        pytest.param("Train", True, False, id="capitals"),
        pytest.param("a.b", True, False, id="a dot"),
        pytest.param("-a", True, False, id="a dash first"),
        pytest.param("a b", True, False, id="a space"),
        pytest.param("x" * 64, True, False, id="64 characters"),
    ],
)
def test_on_creation(level: str, value: str | None, enabled: bool, accepted: bool) -> None:
    errors = created(annotated(level, value), ON if enabled else OFF)
    assert kinds(errors) == ([] if accepted else [(f"{LEVELS[level]}.annotations[{KEY}]", "Invalid value")])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("before", "after", "accepted"),
    [
        pytest.param(None, None, True, id="absent"),
        pytest.param("train", "train", True, id="unchanged"),
        pytest.param(None, "train", False, id="added"),
        pytest.param("train", None, False, id="removed"),
        pytest.param("train", "infer", False, id="changed"),
        pytest.param("train", "none", False, id="opted out later"),
    ],
)
def test_on_update(level: str, before: str | None, after: str | None, accepted: bool) -> None:
    errors = updated(annotated(level, before), annotated(level, after), ON)
    assert kinds(errors) == ([] if accepted else [(f"{LEVELS[level]}.annotations[{KEY}]", "Forbidden")])
    assert all("immutable" in error for error in errors)


def test_a_set_survives_the_feature_being_turned_off() -> None:
    subject = annotated("clique", "train")
    assert updated(subject, subject, OFF) == []


def test_cliques_are_matched_by_name() -> None:
    a, b = clique("a", annotations={KEY: "train"}), clique("b")
    assert updated(pcs(a, b), pcs(b, a), ON) == []
