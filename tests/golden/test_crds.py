"""The generated CRDs against the facts of upstream's: same fields, types, defaults, rules, names, columns and subresources.

Whatever differs is listed here with the reason. Embedded core types are checked separately, the facts only name them.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.grove import PodClique, PodCliqueSet
from api.registry import MODELS
from hack.codegen.crd import crd, stale
from hack.codegen.embedded import POD_SPEC, RESOURCE_CLAIM_TEMPLATE_SPEC, embedded

SHARED = Path(os.environ.get("GROVEKEEPER_SHARED") or Path(__file__).parents[3] / "shared")
UPSTREAM = SHARED / "crds" / "grove"

CONDITIONS = {
    "status.conditions:x-kubernetes-list-type": "map",
    "status.conditions:x-kubernetes-list-map-keys": ("type",),
}
TWO_WRITERS = "two writers own conditions of one object, which server-side apply only allows in a keyed list"
OUR_COLUMNS = "wide columns that say how far a gang is and what it waits for"
GANG_STATUS = "status fields behind the wide columns"
NAMELESS_ROLE = "the defaulting webhook makes up for a missing roleName and replicas; upstream accepts such manifests too"

ADDED: dict[str, dict[str, tuple[Any, str]]] = {
    "PodCliqueSet": {
        **{path: (value, TWO_WRITERS) for path, value in CONDITIONS.items()},
        "status.podGangStatuses[].conditions:x-kubernetes-list-type": ("map", TWO_WRITERS),
        "status.podGangStatuses[].conditions:x-kubernetes-list-map-keys": (("type",), TWO_WRITERS),
    },
    "PodClique": {path: (value, TWO_WRITERS) for path, value in CONDITIONS.items()},
    "PodCliqueScalingGroup": {path: (value, TWO_WRITERS) for path, value in CONDITIONS.items()},
    "ClusterTopologyBinding": {path: (value, TWO_WRITERS) for path, value in CONDITIONS.items()},
    "PodGang": {
        **{path: (value, TWO_WRITERS) for path, value in CONDITIONS.items()},
        "column Pods": ((".status.pods", "integer", 1), OUR_COLUMNS),
        "column Bound": ((".status.bound", "integer", 1), OUR_COLUMNS),
        "column Ready": ((".status.ready", "integer", 1), OUR_COLUMNS),
        "column Domain": ((".status.domain", "string", 1), OUR_COLUMNS),
        "column Score": ((".status.placementScore", "number", 1), OUR_COLUMNS),
        "column Blocked": ((".status.blocked", "string", 1), OUR_COLUMNS),
        "column Since": ((".status.blockedSince", "date", 1), OUR_COLUMNS),
        **{f"status.{name}:type": ("integer", GANG_STATUS) for name in ("pods", "bound", "ready")},
        **{f"status.{name}:format": ("int32", GANG_STATUS) for name in ("pods", "bound", "ready")},
        **{f"status.{name}:type": ("string", GANG_STATUS) for name in ("domain", "blocked", "blockedSince")},
        "status.blockedSince:format": ("date-time", GANG_STATUS),
    },
}
CHANGED: dict[str, dict[str, tuple[Any, str]]] = {
    "PodCliqueSet": {"spec.template.cliques[].spec:required": (("podSpec",), NAMELESS_ROLE)},
}


def facts(document: dict[str, Any]) -> dict[str, Any]:
    """A CRD as flat facts: `path:keyword` of the schema, columns by name, names, scope and subresources."""
    spec = document["spec"]
    (version,) = spec["versions"]
    out: dict[str, Any] = {f"name {key}": value for key, value in spec["names"].items() if key != "categories"}
    out |= {f"column {c['name']}": (c["jsonPath"], c["type"], c.get("priority", 0)) for c in version["additionalPrinterColumns"]}
    out["default columns"] = [c["name"] for c in version["additionalPrinterColumns"] if not c.get("priority")]
    out |= {"scope": spec["scope"], "group": spec["group"], "subresources": version["subresources"]}
    out |= {key: version[key] for key in ("name", "served", "storage")}
    return out | dict(schema_facts(version["schema"]["openAPIV3Schema"], ""))


def schema_facts(node: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for key, value in node.items():
        if key == "properties":
            for name, child in value.items():
                yield from schema_facts(child, f"{path}.{name}".removeprefix("."))
        elif key == "items":
            yield from schema_facts(value, f"{path}[]")
        elif key in ("required", "enum", "x-kubernetes-list-map-keys"):
            yield f"{path}:{key}", tuple(sorted(value))
        elif key != "description":
            yield f"{path}:{key}", value


def without_embedded(ours: dict[str, Any], upstream: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """Both without the facts inside embedded types, and the paths of those."""
    whole = [path.removesuffix(":x-full-schema") for path in upstream if path.endswith(":x-full-schema")]

    def kept(path: str) -> bool:
        return not any(path.startswith((f"{w}.", f"{w}[", f"{w}:")) for w in whole)

    return {k: v for k, v in ours.items() if kept(k)}, {k: v for k, v in upstream.items() if kept(k)}, whole


needs_upstream = pytest.mark.skipif(not UPSTREAM.is_dir(), reason=f"upstream's CRD facts are not at {UPSTREAM}; set GROVEKEEPER_SHARED")


@needs_upstream
@pytest.mark.parametrize("model", [m for m in MODELS if m.KIND.kind != "GangPlacement"], ids=lambda m: m.KIND.kind)
def test_same_as_upstream_but_for_what_is_listed(model: Any) -> None:
    kind = model.KIND
    upstream = facts(yaml.safe_load((UPSTREAM / f"{kind.group}_{kind.plural}.yaml").read_text()))
    ours, upstream, whole = without_embedded(facts(crd(model)), upstream)
    added = {path: value for path, value in ours.items() if path not in upstream}
    changed = {path: ours.get(path) for path, value in upstream.items() if ours.get(path) != value}
    assert added == {path: value for path, (value, _) in ADDED.get(kind.kind, {}).items()}
    assert changed == {path: value for path, (value, _) in CHANGED.get(kind.kind, {}).items()}
    for path in whole:
        assert any(known.startswith(f"{path}.") for known in facts(crd(model))), f"{path} is empty"


def test_files_are_up_to_date() -> None:
    assert stale() == []


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.KIND.kind)
def test_every_kind_is_in_the_category_and_described(model: Any) -> None:
    document = crd(model)
    assert document["spec"]["names"]["categories"] == ["grovekeeper"]
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    bare = [path for path, node in own_nodes(schema, "") if "description" not in node]
    assert bare == []


def own_nodes(node: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Fields of our own models: not the standard metadata, and nothing inside embedded types."""
    for name, child in node.get("properties", {}).items():
        at = f"{path}.{name}"
        if at == ".metadata":
            continue
        yield at, child
        if name not in ("podSpec", "templateSpec", "metrics"):
            yield from own_nodes(child.get("items", child), at)


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for child in schema.get("properties", {}).values():
        yield from nodes(child)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key])


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.KIND.kind)
def test_schemas_are_structural(model: Any) -> None:
    for node in nodes(crd(model)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
        assert "type" in node or node.get("x-kubernetes-int-or-string"), node
        assert not {"$ref", "allOf", "oneOf", "title", "$defs"} & node.keys(), node


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.KIND.kind)
def test_keys_of_keyed_lists_are_always_there(model: Any) -> None:
    for node in nodes(crd(model)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
        for key in node.get("x-kubernetes-list-map-keys", ()):
            item = node["items"]
            assert key in item.get("required", ()) or "default" in item["properties"][key], (key, item)


def test_embedded_types_have_the_shapes_that_crds_know() -> None:
    pod = embedded(POD_SPEC)["properties"]
    container = pod["containers"]["items"]["properties"]
    quantity = container["resources"]["properties"]["limits"]["additionalProperties"]
    assert quantity["x-kubernetes-int-or-string"] is True
    assert "[KMGTPE]i" in quantity["pattern"]
    port = container["ports"]["items"]["properties"]
    assert port["protocol"]["default"] == "TCP"
    assert "default" not in port["containerPort"]
    assert container["livenessProbe"]["properties"]["httpGet"]["properties"]["port"]["x-kubernetes-int-or-string"] is True
    assert (
        pod["affinity"]["properties"]["nodeAffinity"]["properties"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "x-kubernetes-map-type"
        ]
        == "atomic"
    )
    claim = pod["volumes"]["items"]["properties"]["ephemeral"]["properties"]["volumeClaimTemplate"]["properties"]
    assert "labels" in claim["metadata"]["properties"]
    parameters = embedded(RESOURCE_CLAIM_TEMPLATE_SPEC)["properties"]["spec"]["properties"]["devices"]["properties"]["config"]["items"]
    assert parameters["properties"]["opaque"]["properties"]["parameters"]["x-kubernetes-preserve-unknown-fields"] is True


def test_embedded_types_bring_no_texts_and_no_enums() -> None:
    for node in nodes(embedded(POD_SPEC)):
        assert not {"description", "enum", "x-kubernetes-patch-strategy"} & node.keys()


def test_scale_and_required_fields() -> None:
    scale = crd(PodClique)["spec"]["versions"][0]["subresources"]["scale"]
    assert scale["labelSelectorPath"] == ".status.hpaPodSelector"
    clique = crd(PodClique)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert clique["required"] == ["podSpec", "replicas", "roleName"]
    template = crd(PodCliqueSet)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["template"]
    assert template["properties"]["cliques"]["items"]["properties"]["spec"]["required"] == ["podSpec"]
