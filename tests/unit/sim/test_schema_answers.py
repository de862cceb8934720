"""Schemas and objects against the answers that kube-apiserver 1.36.3 gave to the same (schema_answers.json)."""

import json
from pathlib import Path

import pytest

from api.fielderrors import aggregate
from sim.apiserver.objects import copied
from sim.apiserver.schema import check
from sim.apiserver.schema.structural import compile_structural, with_identity
from sim.apiserver.status import CAUSES

ANSWERS = json.loads((Path(__file__).parent / "schema_answers.json").read_text())
SCHEMA = compile_structural(ANSWERS["schema"])
with_identity(SCHEMA)


def whole(part):
    return {"apiVersion": "probe.io/v1", "kind": "Main", "metadata": {"name": "x"}, **copied(part)}


def prepared(obj):
    check.prune(obj, SCHEMA)
    check.fill_defaults(obj, SCHEMA)
    check.drop_nulls(obj, SCHEMA)
    return obj


def parts(message):
    return sorted(message.strip("[]").split(", "))


def rows(verb):
    return [pytest.param(r, id=f"{i}-{json.dumps(r['object'])[:60]}") for i, r in enumerate(ANSWERS["objects"]) if r["verb"] == verb]


def same(errors, row, got):
    if row["code"] != 422:
        assert errors == []
        assert got["spec"] == row["spec"]
        return
    assert parts(aggregate(errors)) == parts(row["message"])
    assert sorted([CAUSES[e.kind], e.path] for e in errors) == sorted(row["causes"])


@pytest.mark.parametrize("row", rows("create"))
def test_created(row):
    obj = whole(row["object"])
    problem = check.type_errors(obj, SCHEMA, "Main", "probe.io/v1")
    if row["code"] == 400:
        assert problem == row["message"]
        return
    assert problem == ""
    obj.pop("status", None)
    same(check.validate(prepared(obj), SCHEMA), row, obj)


@pytest.mark.parametrize("row", rows("update"))
def test_updated(row):
    old, new = (prepared(whole({"spec": spec})) for spec in row["object"])
    same(check.validate(new, SCHEMA, old), row, new)


@pytest.mark.parametrize("row", rows("strict"))
def test_strict(row):
    obj = whole(row["object"])
    problem = check.type_errors(obj, SCHEMA, "Main", "probe.io/v1")
    text = 'Main in version "v1" cannot be handled as a Main: ' + check.strict_text(check.unknown_fields(obj, SCHEMA))
    assert (problem or text) == row["message"]
