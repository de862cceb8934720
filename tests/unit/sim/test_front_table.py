"""Tables against what kube-apiserver 1.36.3 printed for the same objects (tests/kubectl/record_tables.py)."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sim.apiserver.front.ages import age, human_duration
from sim.apiserver.front.jsonpath import compiled
from sim.apiserver.front.table import table
from sim.apiserver.resources import Column, Resource, Version
from tests.kubectl.table_objects import COLUMNS

RECORDED = json.loads((Path(__file__).parent / "front_tables.json").read_text())
NOW = datetime.fromisoformat(RECORDED["recorded_at"])
PATHS: dict[str, Any] = RECORDED["paths"]


def resource_at(path: str) -> Resource:
    parts = path.split("/")
    group = parts[2] if parts[1] == "apis" else ""
    is_custom = group == "table.grovekeeper.io"
    columns = tuple(Column(*column) for column in COLUMNS) if is_custom else ()
    return Resource(group, parts[-1], "Thing", (Version("v1", columns=columns),), "v1", is_custom=is_custom)


def settled(cells: list[Any], definitions: list[Any]) -> list[Any]:
    """Without the age of the object itself, which was a few seconds while it was recorded."""
    return [None if column["name"] == "Age" else cell for cell, column in zip(cells, definitions, strict=True)]


@pytest.mark.parametrize("path", PATHS)
def test_tables_are_those_of_the_real_server(path: str) -> None:
    recorded, items = PATHS[path]["table"], PATHS[path]["items"]
    # Lists of built-in kinds leave out apiVersion of their items; autoscaling/v1 and v2 differ in it.
    resource = resource_at(path)
    objects = [{"apiVersion": resource.api_version(path.split("/")[-4 if "/namespaces/" in path else -2]), **item} for item in items]
    made = table(resource, resource.versions[0], objects, now=NOW, list_meta=recorded["metadata"])
    definitions = recorded["columnDefinitions"]
    assert made["columnDefinitions"] == definitions
    for mine, real in zip(made["rows"], recorded["rows"], strict=True):
        assert settled(mine["cells"], definitions) == settled(real["cells"], definitions)
        assert {k: v for k, v in mine.items() if k != "cells"} == {k: v for k, v in real.items() if k != "cells"}
    assert {k: made[k] for k in ("kind", "apiVersion", "metadata")} == {k: recorded[k] for k in ("kind", "apiVersion", "metadata")}


THING = Resource("x.io", "things", "Thing", (Version("v1"),), "v1", is_custom=True)
OBJECT = {
    "apiVersion": "x.io/v1",
    "kind": "Thing",
    "metadata": {"name": "a", "creationTimestamp": "2026-11-30T00:00:00Z"},
    "spec": {"b": 1},
}
MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC)


def test_custom_resources_without_columns_show_their_age() -> None:
    made = table(THING, THING.versions[0], [OBJECT], now=MIDNIGHT + timedelta(minutes=5), list_meta={}, api_version="v1beta1")
    assert [c["name"] for c in made["columnDefinitions"]] == ["Name", "Age"]
    assert made["rows"][0]["cells"] == ["a", "5m"]
    assert made["apiVersion"] == made["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


def test_built_in_kinds_without_columns_show_their_creation() -> None:
    roles = Resource("rbac.authorization.k8s.io", "things", "Thing", (Version("v1"),), "v1")
    made = table(roles, roles.versions[0], [OBJECT], now=MIDNIGHT, list_meta={})
    assert [c["name"] for c in made["columnDefinitions"]] == ["Name", "Created At"]
    assert made["rows"][0]["cells"] == ["a", "2026-11-30T00:00:00Z"]


def test_rows_carry_what_was_asked_for() -> None:
    rows = {
        include: table(THING, THING.versions[0], [OBJECT], include=include, now=MIDNIGHT, list_meta={})["rows"]
        for include in ("None", "Metadata", "Object")
    }
    assert rows["None"][0]["object"] is None
    assert rows["Metadata"][0]["object"] == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": OBJECT["metadata"],
    }
    assert rows["Object"][0]["object"] == OBJECT


def test_later_events_of_a_watch_have_no_column_definitions() -> None:
    assert table(THING, THING.versions[0], [], now=MIDNIGHT, list_meta={}, with_columns=False)["columnDefinitions"] is None


def test_bookmarks_have_a_row_too() -> None:
    bookmark = {"metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}
    for path in PATHS:
        made = table(resource_at(path), resource_at(path).versions[0], [bookmark], now=MIDNIGHT, list_meta={"resourceVersion": "9"})
        assert made["rows"][0]["object"]["metadata"] == bookmark["metadata"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (599, "9m59s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (11000, "3h3m"),
        (28800, "8h"),
        (172799, "47h"),
        (172800, "2d"),
        (180000, "2d2h"),
        (691200, "8d"),
        (63071999, "729d"),
        (63072000, "2y"),
        (63158400, "2y1d"),
        (252288000, "8y"),
    ],
)
def test_durations_have_two_units_at_most(seconds: int, text: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == text


def test_ages_of_missing_and_broken_times() -> None:
    assert age(None, MIDNIGHT) == "<unknown>"
    assert age("soon", MIDNIGHT) == "<invalid>"
    assert age("2026-11-30T00:00:00", MIDNIGHT) == "<invalid>"


def test_paths_that_make_no_sense_are_refused() -> None:
    for path in ("spec", ".spec[", ".spec..", ".a[b]"):
        with pytest.raises(ValueError, match=r"."):
            compiled(path)


def test_deep_paths_and_filters_without_value() -> None:
    document = {"a": {"x": 1, "b": [{"x": 2}, {"y": 3}]}}
    assert compiled("..x")(document) == [1, 2]
    assert compiled("{.a.b[?(@.y)]}")(document) == [{"y": 3}]
    assert compiled(".a.b[0,1].x")(document) == [2]
    assert compiled(".a.*")(document) == [[{"x": 2}, {"y": 3}], 1]
