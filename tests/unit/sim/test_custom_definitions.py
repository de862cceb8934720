"""Definitions of custom resources: what is refused, which names are accepted, what they make."""

import json
from pathlib import Path
from typing import cast

import pytest
import yaml

from api.fielderrors import aggregate
from sim.apiserver.custom import DefinitionStrategy, accepted, is_established, resource_of, validate_crd
from sim.apiserver.objects import copied
from sim.apiserver.resources import Context  # noqa: TC001 - named in a cast
from sim.apiserver.schema.builtin import schema_of
from sim.apiserver.schema.check import prune

DEFINITIONS = json.loads((Path(__file__).parent / "schema_answers.json").read_text())["definitions"]
MANIFESTS = sorted((Path(__file__).parents[3] / "manifests" / "crds").glob("*.yaml"))
# Known difference: the parser expects other tokens.
INEXACT = ("Syntax error: mismatched",)

CONTEXT = cast("Context", None)


def prepared(crd):
    obj = copied(crd)
    prune(obj, schema_of("apiextensions.k8s.io", "v1", "CustomResourceDefinition"))
    strategy = DefinitionStrategy()
    strategy.default(obj)
    strategy.prepare_create(CONTEXT, obj)
    return obj


@pytest.mark.parametrize("row", [pytest.param(r, id=str(i)) for i, r in enumerate(DEFINITIONS)])
def test_answers(row):
    errors = validate_crd(prepared(row["crd"]), None)
    if row["code"] == 201:
        assert errors == []
        return
    assert errors
    if not any(part in row["message"] for part in INEXACT):
        assert aggregate(errors) == row["message"]


@pytest.mark.parametrize("file", MANIFESTS, ids=lambda f: f.stem)
def test_manifests(file):
    crd = prepared(yaml.safe_load(file.read_text()))
    assert validate_crd(crd, None) == []
    settled = accepted(crd, [], "2026-01-01T00:00:00Z")
    assert is_established(settled)
    assert accepted(settled, [], "2027-01-01T00:00:00Z") is settled
    resource = resource_of(settled)
    assert f"{resource.plural}.{resource.group}" == crd["metadata"]["name"]


def test_conflict():
    first = accepted(prepared(DEFINITIONS[0]["crd"]), [], "t")
    second = prepared(DEFINITIONS[0]["crd"])
    second["metadata"]["name"] = "others.probe.io"
    second["spec"]["names"]["plural"] = "others"
    settled = accepted(second, [first], "t")
    assert not is_established(settled)
    assert settled["status"]["acceptedNames"] == {"plural": "others", "kind": ""}
    names, established = settled["status"]["conditions"]
    assert (names["reason"], names["message"]) == ("ListKindConflict", '"WidgetList" is already in use')
    assert (established["status"], established["reason"], established["message"]) == ("False", "NotAccepted", "not all names are accepted")


def test_immutable():
    old = prepared(DEFINITIONS[0]["crd"])
    new = copied(old)
    new["spec"]["scope"] = "Cluster"
    assert aggregate(validate_crd(new, old)) == 'spec.scope: Invalid value: "Cluster": field is immutable'
