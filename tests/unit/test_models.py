"""Models of custom resources: round trips, strictness, unknown fields, readable error paths."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import yaml
from pydantic import ValidationError

from api.custom import Condition, Resource
from api.gangplacement import GangPlacement
from api.grove import ClusterTopologyBinding, PodClique, PodCliqueScalingGroup, PodCliqueSet, UpdateStrategy
from api.podgang import PodGang
from api.registry import GROVE_KINDS, MODELS, crd_name, model_for

CASES = Path(os.environ.get("GROVEKEEPER_SHARED") or Path(__file__).parents[3] / "shared") / "cases" / "grove"
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason=f"recorded cases are not at {CASES}; set GROVEKEEPER_SHARED")

POD_SPEC = {"containers": [{"name": "main", "image": "x"}], "terminationGracePeriodSeconds": 30}


def pcs(**template: Any) -> dict[str, Any]:
    clique = {"name": "worker", "spec": {"podSpec": POD_SPEC}}
    spec = {"template": {"cliques": [clique], **template}}
    return {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "chat"}, "spec": spec}


def put(document: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """A copy with `value` at a dotted path; numbers are list indices."""
    copy: dict[str, Any] = json.loads(json.dumps(document))
    *parents, last = path.split(".")
    node: Any = copy
    for part in parents:
        node = node[int(part)] if part.isdigit() else node.setdefault(part, {})
    node[last] = value
    return copy


def without_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [without_nulls(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in cast("dict[str, Any]", value).items() if v is not None}
    return value


def errors(model: type[Resource], document: dict[str, Any]) -> list[tuple[str, str]]:
    """(path, type) of every error; the same for JSON and for Python input."""
    found: list[list[tuple[str, str]]] = []
    for read in (
        lambda: model.model_validate(document, extra="forbid"),
        lambda: model.model_validate_json(json.dumps(document), extra="forbid"),
    ):
        try:
            read()
            found.append([])
        except ValidationError as error:
            found.append([(".".join(str(part) for part in e["loc"]), e["type"]) for e in error.errors()])
    assert found[0] == found[1]
    return found[0]


def recorded() -> Iterator[dict[str, Any]]:
    """Every recorded object of our kinds, and every manifest."""
    for path in sorted((CASES / "expected").glob("*.json")):
        waiting: list[Any] = [json.loads(path.read_bytes()).get("objects", [])]
        while waiting:
            item = waiting.pop()
            if isinstance(item, list):
                waiting += item
            elif model_for(item["apiVersion"], item["kind"]) is not None:
                yield item
    for path in sorted((CASES / "manifests").glob("*.yaml")):
        yield from yaml.safe_load_all(path.read_text())


@needs_cases
def test_recorded_objects_survive_a_round_trip() -> None:
    seen: set[str] = set()
    for document in recorded():
        model = model_for(document["apiVersion"], document["kind"])
        assert model is not None
        seen.add(document["kind"])
        read = model.model_validate(document, extra="forbid")
        assert read == model.decode(msgspec.json.encode(document))
        assert read.to_manifest() == without_nulls(document)
    assert seen == {"PodCliqueSet", "PodClique", "PodCliqueScalingGroup", "PodGang"}


def test_absent_fields_stay_absent_and_have_the_defaults_of_the_crd() -> None:
    document = pcs(podCliqueScalingGroups=[{"name": "sg", "cliqueNames": ["worker"]}])
    read = PodCliqueSet.model_validate(document)
    groups = read.spec.template.pod_clique_scaling_groups
    assert groups is not None
    (group,) = groups
    clique = read.spec.template.cliques[0].spec
    assert (read.spec.replicas, group.replicas, group.min_available) == (0, 1, 1)
    assert read.spec.template.clique_startup_type == "CliqueStartupTypeAnyOrder"
    assert (clique.replicas, clique.role_name, clique.min_available) == (0, "", None)
    assert read.spec.template.termination_delay is None
    assert read.to_manifest() == document


def test_a_changed_copy_writes_what_was_changed() -> None:
    read = PodCliqueSet.model_validate(pcs())
    spec = read.spec.model_copy(update={"replicas": 0, "update_strategy": UpdateStrategy(type="OnDelete")})
    written = read.model_copy(update={"spec": spec}).to_manifest()
    assert written == put(put(pcs(), "spec.replicas", 0), "spec.updateStrategy", {"type": "OnDelete"})


@pytest.mark.parametrize(
    ("path", "attribute"),
    [("spec.replicas", 0), ("spec.template.cliqueStartupType", "CliqueStartupTypeAnyOrder")],
)
def test_null_means_the_default(path: str, attribute: object) -> None:
    document = put(pcs(), path, None)
    assert errors(PodCliqueSet, document) == []
    assert PodCliqueSet.model_validate(document) == PodCliqueSet.model_validate(put(pcs(), path, attribute))


@pytest.mark.parametrize(
    "path", ["status", "spec.updateStrategy", "spec.template.podCliqueScalingGroups", "spec.template.cliques.0.spec.minAvailable"]
)
def test_null_means_absent(path: str) -> None:
    assert errors(PodCliqueSet, put(pcs(), path, None)) == []
    assert PodCliqueSet.model_validate(put(pcs(), path, None)).to_manifest() == without_nulls(put(pcs(), path, None))


def test_pod_specs_are_carried_unaltered() -> None:
    odd: dict[str, Any] = {"containers": [], "newField": {"x": [1, 2.5, None, "1Gi", True]}, "nodeName": None}
    read = PodCliqueSet.model_validate(put(pcs(), "spec.template.cliques.0.spec.podSpec", odd), extra="forbid")
    assert read.to_manifest()["spec"]["template"]["cliques"][0]["spec"]["podSpec"] == odd


@pytest.mark.parametrize("value", ["3", 3.0, True, [], {}])
def test_an_integer_is_nothing_else(value: object) -> None:
    assert errors(PodCliqueSet, put(pcs(), "spec.replicas", value)) == [("spec.replicas", "int_type")]


@pytest.mark.parametrize(("value", "good"), [(2**31 - 1, True), (2**31, False), (-(2**31), True), (-(2**31) - 1, False)])
def test_replicas_are_32_bits_wide(value: int, good: bool) -> None:
    assert (errors(PodCliqueSet, put(pcs(), "spec.replicas", value)) == []) is good


@pytest.mark.parametrize(
    ("path", "value", "below", "kind"),
    [
        ("spec.template.cliques.0.name", 1, "", "string_type"),
        ("spec.template.cliques", {}, "", "tuple_type"),
        ("spec.template.cliques", "ab", "", "tuple_type"),
        ("spec.template", None, "", "model_type"),
        ("spec.template.cliques.0.spec.podSpec", [], "", "dict_type"),
        ("spec.template.cliques.0.labels", {"a": 1}, ".a", "string_type"),
        ("spec.template.cliques.0.topologyConstraint", {"packDomain": "Rack"}, ".packDomain", "string_pattern_mismatch"),
        ("spec.template.cliqueStartupType", "Any", "", "literal_error"),
        ("spec.template.headlessServiceConfig", {"publishNotReadyAddresses": "yes"}, ".publishNotReadyAddresses", "bool_type"),
        ("spec.template.resourceSharing", [{"name": "a", "scope": "Some"}], ".0.scope", "literal_error"),
        ("kind", "PodClique", "", "value_error"),
        ("apiVersion", "grove.io/v1", "", "value_error"),
    ],
)
def test_errors_name_the_field_as_manifests_do(path: str, value: object, below: str, kind: str) -> None:
    assert errors(PodCliqueSet, put(pcs(), path, value)) == [(f"{path}{below}", kind)]


def test_errors_in_metadata_name_the_field_in_their_text() -> None:
    with pytest.raises(ValidationError, match=r"\$\.name"):
        PodCliqueSet.model_validate(put(pcs(), "metadata.name", 7))


@pytest.mark.parametrize("path", ["spec.relpicas", "spec.template.cliques.0.spec.repliacs", "status.bogus"])
def test_unknown_fields_are_refused_from_users_and_ignored_from_the_api_server(path: str) -> None:
    document = put(pcs(), path, 1)
    assert errors(PodCliqueSet, document) == [(path, "extra_forbidden")]
    assert PodCliqueSet.decode(msgspec.json.encode(document)).metadata.name == "chat"


def test_filters_of_a_scaling_group_know_no_groups() -> None:
    sharing = [{"name": "a", "scope": "PerReplica", "filter": {"childScalingGroupNames": ["sg"]}}]
    assert errors(PodCliqueSet, pcs(resourceSharing=sharing)) == []
    group = {"name": "sg", "cliqueNames": ["worker"], "resourceSharing": sharing}
    path = "spec.template.podCliqueScalingGroups.0.resourceSharing.0.filter.childScalingGroupNames"
    assert errors(PodCliqueSet, pcs(podCliqueScalingGroups=[group])) == [(path, "extra_forbidden")]


def condition(moment: object) -> dict[str, Any]:
    return {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": moment}


def test_times_are_written_in_utc_with_whole_seconds() -> None:
    moment = datetime(2026, 3, 1, 12, 0, 0, 700_000, tzinfo=timezone(timedelta(hours=2)))
    assert Condition(type="Ready", status="True", last_transition_time=moment).to_manifest()["lastTransitionTime"] == "2026-03-01T10:00:00Z"
    for text in ("2026-03-01T10:00:00Z", "2026-03-01T12:00:00+02:00"):
        for read in (Condition.model_validate(condition(text)), Condition.model_validate_json(json.dumps(condition(text)))):
            assert read.last_transition_time == datetime(2026, 3, 1, 10, tzinfo=UTC)
            assert read.to_manifest() == condition("2026-03-01T10:00:00Z")


@pytest.mark.parametrize("moment", ["yesterday", "2026-03-01", "2026-03-01T10:00:00", 1_700_000_000, True])
def test_times_that_are_none_are_errors(moment: object) -> None:
    document = put(pcs(), "status.conditions", [condition(moment)])
    assert [path for path, _ in errors(PodCliqueSet, document)] == ["status.conditions.0.lastTransitionTime"]


def test_objects_cannot_be_changed() -> None:
    read = PodCliqueSet.model_validate(pcs())
    with pytest.raises(ValidationError):
        read.spec.replicas = 3  # pyright: ignore[reportAttributeAccessIssue]
    assert isinstance(read.spec.template.cliques, tuple)


def test_placement_uses_the_wire_name_of_its_decision() -> None:
    pods = [{"name": "a", "uid": "u", "node": "n", "group": "g"}]
    spec = {"decisionID": "d-1", "epoch": 2**40, "pods": pods, "deadline": "2026-03-01T10:00:00Z"}
    document = {"apiVersion": "scheduling.grovekeeper.io/v1alpha1", "kind": "GangPlacement", "metadata": {"name": "a"}, "spec": spec}
    read = GangPlacement.decode(msgspec.json.encode(document))
    assert (read.spec.decision_id, read.spec.epoch, read.spec.pods[0].uid) == ("d-1", 2**40, "u")
    assert read.to_manifest() == document


def test_a_written_object_names_its_kind() -> None:
    group = PodCliqueScalingGroup.model_validate({"metadata": {"name": "a"}, "spec": {"cliqueNames": ["x"]}})
    assert group.to_manifest() == {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueScalingGroup",
        "metadata": {"name": "a"},
        "spec": {"cliqueNames": ["x"]},
    }


def test_a_topology_needs_a_level() -> None:
    document: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"levels": []}}
    assert errors(ClusterTopologyBinding, document) == [("spec.levels", "too_short")]


def test_registry() -> None:
    assert model_for("grove.io/v1alpha1", "PodClique") is PodClique
    assert model_for("scheduler.grove.io/v1alpha1", "PodGang") is PodGang
    assert model_for("v1", "Pod") is None
    assert crd_name(GangPlacement) == "gangplacements.scheduling.grovekeeper.io"
    assert [k.kind for k in GROVE_KINDS] == [m.KIND.kind for m in MODELS if m is not GangPlacement]
