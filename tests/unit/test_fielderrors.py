"""Text of field errors, as apimachinery prints them, and the translation of what models refuse."""

from typing import Any

import pytest
from pydantic import ValidationError

from api.fielderrors import (
    FieldError,
    aggregate,
    duplicate,
    forbidden,
    internal,
    invalid,
    not_found,
    not_supported,
    required,
    too_long,
)
from api.grove import ClusterTopologyBinding, PodCliqueSet
from api.schemaerrors import errors_from_pydantic


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (required("spec.x", "must be set"), "spec.x: Required value: must be set"),
        (required("spec.x"), "spec.x: Required value"),
        (invalid("spec.x", "v", "is bad"), 'spec.x: Invalid value: "v": is bad'),
        (invalid("spec.x", 2, "is bad"), "spec.x: Invalid value: 2: is bad"),
        (invalid("spec.x", True, "is bad"), "spec.x: Invalid value: true: is bad"),
        (invalid("spec.x", [["b", "a"]], "is bad"), 'spec.x: Invalid value: [["b","a"]]: is bad'),
        (invalid("spec.x", None, "is bad"), "spec.x: Invalid value: null: is bad"),
        (invalid("spec.x", 'a"\n\x1b[31m\\', "is bad"), 'spec.x: Invalid value: "a\\"\\n\\x1b[31m\\\\": is bad'),
        (duplicate("spec.x", "v"), 'spec.x: Duplicate value: "v"'),
        (duplicate("spec.x", ["v", "w"]), 'spec.x: Duplicate value: ["v","w"]'),
        (not_found("spec.x", "v"), 'spec.x: Not found: "v"'),
        (not_supported("spec.x", "v", ("a", "b")), 'spec.x: Unsupported value: "v": supported values: "a", "b"'),
        (forbidden("spec.x", "not here"), "spec.x: Forbidden: not here"),
        (too_long("spec.x", "may be 3 bytes"), "spec.x: Too long: may be 3 bytes"),
        (internal("spec.x", "lookup failed"), "spec.x: Internal error: lookup failed"),
    ],
)
def test_text(error: FieldError, text: str) -> None:
    assert str(error) == text


def test_control_characters_of_names_in_messages_are_shown_not_sent() -> None:
    assert str(invalid("spec.x", "v", "name 'a\x1b]0;title\x07' is bad")) == "spec.x: Invalid value: \"v\": name 'a\\x1b]0;title\\a' is bad"


def test_aggregate_names_each_error_once() -> None:
    one, two = required("a"), required("b")
    assert aggregate([]) == ""
    assert aggregate([one]) == "a: Required value"
    assert aggregate([one, two, one]) == "[a: Required value, b: Required value]"


def test_aggregate_and_values_are_bounded() -> None:
    text = aggregate(required(f"spec.items[{i}]") for i in range(10_000))
    assert text.endswith(", and 9936 more]")
    assert len(text) < 4000
    assert len(str(invalid("spec.x", "v" * 1_000_000, "is bad"))) < 1200


BASE: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"template": {"cliques": [{"name": "w", "spec": {"podSpec": {}}}]}}}


def refused(model: type[PodCliqueSet] | type[ClusterTopologyBinding], manifest: object) -> list[str]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(manifest, extra="forbid")
    return [str(error) for error in errors_from_pydantic(caught.value)]


def with_clique(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"template": {"cliques": [{"name": "w", "spec": {"podSpec": {}}, **fields}]}}}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        pytest.param(
            {"spec": {"podSpec": {}, "replicas": "2"}},
            'spec.template.cliques[0].spec.replicas: Invalid value: "2": must be an integer',
            id="text for a number",
        ),
        pytest.param(
            {"spec": {"podSpec": {}, "replicas": 2**31}},
            "spec.template.cliques[0].spec.replicas: Invalid value: 2147483648: must be at most 2147483647",
            id="beyond int32",
        ),
        pytest.param({"spec": {}}, "spec.template.cliques[0].spec.podSpec: Required value: must be set", id="no pod spec"),
        pytest.param(
            {"spec": {"podSpec": []}},
            'spec.template.cliques[0].spec.podSpec: Invalid value: "array": must be an object',
            id="a list for an object",
        ),
        pytest.param(
            {"topologyConstraint": {"pack": {"required": "Rack"}}},
            'spec.template.cliques[0].topologyConstraint.pack.required: Invalid value: "Rack": must match ^[a-z][a-z0-9-]*$',
            id="a domain with capitals",
        ),
        pytest.param(
            {"topologyConstraint": {"pack": {"required": "r" * 64}}},
            "spec.template.cliques[0].topologyConstraint.pack.required: Too long: may have at most 63 characters",
            id="a domain too long",
        ),
        pytest.param(
            {"resourceSharing": [{"name": "x", "scope": "Some"}]},
            'spec.template.cliques[0].resourceSharing[0].scope: Unsupported value: "Some": supported values: "AllReplicas", "PerReplica"',
            id="not in the enumeration",
        ),
        pytest.param(
            {"replica": 1},
            "spec.template.cliques[0].replica: Forbidden: unknown field; remove it or check its spelling",
            id="unknown field",
        ),
        pytest.param(
            {"labels": {"example.com/x": 3}},
            "spec.template.cliques[0].labels[example.com/x]: Invalid value: 3: must be a string",
            id="a number as label value",
        ),
    ],
)
def test_models_refuse_with_kubernetes_paths(fields: dict[str, Any], text: str) -> None:
    assert refused(PodCliqueSet, with_clique(**fields)) == [text]


@pytest.mark.parametrize("manifest", [None, [], "text", 3, {}, {"metadata": 3, "spec": 4}, {"spec": None}])
def test_what_is_no_object_at_all_is_refused_too(manifest: object) -> None:
    assert refused(PodCliqueSet, manifest)


def test_no_levels() -> None:
    manifest = {"metadata": {"name": "t"}, "spec": {"levels": []}}
    assert refused(ClusterTopologyBinding, manifest) == ['spec.levels: Invalid value: "array": must have at least 1 items']
