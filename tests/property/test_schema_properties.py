"""Schemas take any JSON: nothing raises, and preparing twice changes nothing more."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from sim.apiserver.objects import copied
from sim.apiserver.schema import check
from sim.apiserver.schema.structural import compile_structural, with_identity

ANSWERS = json.loads((Path(__file__).parents[1] / "unit" / "sim" / "schema_answers.json").read_text())
SCHEMA = compile_structural(ANSWERS["schema"])
with_identity(SCHEMA)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
KEYS = st.sampled_from([*SCHEMA.properties["spec"].properties, "a", "b", "k", "v", "arr", "metadata", "apiVersion", "kind"])
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=20)


@given(JSON, JSON)
def test_any_json(spec, before):
    obj, old = {"spec": spec}, {"spec": before}
    check.unknown_fields(obj, SCHEMA)
    check.validate(obj, SCHEMA, old)
    check.prune(obj, SCHEMA)
    check.fill_defaults(obj, SCHEMA)
    check.drop_nulls(obj, SCHEMA)
    check.validate(obj, SCHEMA)
    once = copied(obj)
    assert check.prune(obj, SCHEMA) == []
    check.fill_defaults(obj, SCHEMA)
    check.drop_nulls(obj, SCHEMA)
    assert obj == once
