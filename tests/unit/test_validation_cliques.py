"""Clique templates: counts, autoscaling, pod specs; and what belongs to the set as a whole."""

from typing import Any

import pytest

from api.defaulting import default_podcliqueset
from api.grove import PodCliqueSet
from api.validation import validate_create
from tests.admission import CONFIG, CONTAINER, TOPOLOGIES, clique, created, group, kinds, pcs, texts, updated

CLIQUES = "spec.template.cliques"
SPEC = f"{CLIQUES}[0].spec"
POD = f"{SPEC}.podSpec"


def test_a_plain_set_is_accepted_with_upstreams_warning_per_clique() -> None:
    result = validate_create(pcs(clique("a"), clique("b")), CONFIG, TOPOLOGIES)
    assert result.errors == ()
    assert result.warnings == ("restartPolicy will be ignored, it will be set to Always",) * 2


def test_without_cliques_there_is_nothing_to_run() -> None:
    manifest = {"metadata": {"name": "chat"}, "spec": {"template": {"cliques": []}}}
    subject = default_podcliqueset(PodCliqueSet.model_validate(manifest))
    assert kinds(created(subject)) == [(CLIQUES, "Required value")]


def test_replicas_of_the_set_may_be_zero_but_not_negative() -> None:
    assert created(pcs(replicas=0)) == []
    assert kinds(created(pcs(replicas=-1))) == [("spec.replicas", "Invalid value")]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"replicas": 3, "minAvailable": 3}, [], id="minAvailable equal to replicas"),
        pytest.param({"replicas": 3, "minAvailable": 1}, [], id="minAvailable below replicas"),
        pytest.param({"replicas": 1, "minAvailable": 2}, ["minAvailable"], id="minAvailable above replicas"),
        pytest.param({"replicas": 2, "minAvailable": 0}, ["minAvailable"], id="minAvailable zero"),
        pytest.param({"replicas": 2, "minAvailable": -1}, ["minAvailable"], id="minAvailable negative"),
        pytest.param({"replicas": -1, "minAvailable": 1}, ["replicas", "minAvailable"], id="replicas negative"),
        pytest.param({"replicas": 0}, ["minAvailable"], id="replicas zero leaves a minAvailable of zero"),
    ],
)
def test_counts(spec: dict[str, Any], expected: list[str]) -> None:
    assert kinds(created(pcs(clique("a", spec=spec)))) == [(f"{SPEC}.{field}", "Invalid value") for field in expected]


def test_an_absent_minimum_is_named_when_nothing_has_filled_it_in() -> None:
    manifest = {"metadata": {"name": "chat"}, "spec": {"template": {"cliques": [clique("a")]}}}
    result = validate_create(PodCliqueSet.model_validate(manifest), CONFIG, TOPOLOGIES)
    assert kinds(texts(result)) == [(f"{SPEC}.minAvailable", "Required value"), ("spec.template.terminationDelay", "Required value")]


@pytest.mark.parametrize(
    ("scaling", "expected"),
    [
        pytest.param({"maxReplicas": 5}, [], id="the lower bound follows replicas"),
        pytest.param({"minReplicas": 2, "maxReplicas": 4}, [], id="everything given"),
        pytest.param({"minReplicas": 1, "maxReplicas": 4}, ["minReplicas"], id="lower bound below minAvailable"),
        pytest.param({"minReplicas": 5, "maxReplicas": 4}, ["maxReplicas"], id="upper bound below the lower one"),
        pytest.param({"minReplicas": 2, "maxReplicas": 3}, ["maxReplicas"], id="upper bound below replicas"),
    ],
)
def test_autoscaling(scaling: dict[str, Any], expected: list[str]) -> None:
    errors = created(pcs(clique("a", spec={"replicas": 4, "minAvailable": 2, "autoScalingConfig": scaling})))
    assert kinds(errors) == [(f"{SPEC}.autoScalingConfig.{field}", "Invalid value") for field in expected]


def test_autoscaling_without_lower_bound_is_named_when_nothing_has_filled_it_in() -> None:
    template = {"cliques": [clique("a", spec={"minAvailable": 1, "autoScalingConfig": {"maxReplicas": 3}})], "terminationDelay": "1h"}
    subject = PodCliqueSet.model_validate({"metadata": {"name": "chat"}, "spec": {"template": template}})
    assert kinds(created(subject)) == [(f"{SPEC}.autoScalingConfig.minReplicas", "Required value")]


def test_members_of_a_group_do_not_scale_by_themselves() -> None:
    member = clique("a", spec={"autoScalingConfig": {"maxReplicas": 3}})
    errors = created(pcs(member, podCliqueScalingGroups=[group("g", "a")]))
    assert errors == [
        'spec.template.podCliqueScalingGroups: Invalid value: "a": '
        "AutoScalingConfig is not allowed to be defined for PodClique that is part of scaling group"
    ]


@pytest.mark.parametrize(
    ("delay", "error"),
    [
        ("1s", None),
        ("0s", 'Invalid value: "0s": terminationDelay must be greater than 0'),
        ("-1h", 'Invalid value: "-1h0m0s": terminationDelay must be greater than 0'),
        ("soon", "Invalid value: \"soon\": 'soon' is not a duration; write numbers with units, such as 90s, 1h30m or 250ms"),
    ],
)
def test_termination_delay(delay: str, error: str | None) -> None:
    expected = [f"spec.template.terminationDelay: {error}"] if error else []
    assert created(pcs(terminationDelay=delay)) == expected


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        pytest.param({"topologySpreadConstraints": [{"topologyKey": "zone"}]}, "topologySpreadConstraints", id="spread constraints"),
        pytest.param({"nodeName": "node-1"}, "nodeName", id="a node"),
    ],
)
def test_placement_by_hand_is_refused_on_creation_only(pod: dict[str, Any], path: str) -> None:
    subject = pcs(clique("a", pod=pod))
    assert kinds(created(subject)) == [(f"{POD}.spec.{path}", "Forbidden")]
    assert updated(subject, subject) == []


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        pytest.param([], [(f"{POD}.containers", "Required value")], id="none"),
        pytest.param(None, [(f"{POD}.containers", "Required value")], id="null"),
        pytest.param({"name": "x"}, [(f"{POD}.containers", "Invalid value")], id="an object"),
        pytest.param("engine", [(f"{POD}.containers", "Invalid value")], id="text"),
        pytest.param([None], [(f"{POD}.containers[0]", "Invalid value")], id="a null container"),
        pytest.param(["x"], [(f"{POD}.containers[0]", "Invalid value")], id="a text container"),
        pytest.param([{}], [(f"{POD}.containers[0].name", "Required value")], id="no name"),
        pytest.param([{"name": 3}], [(f"{POD}.containers[0].name", "Invalid value")], id="a number as name"),
        pytest.param([{"name": "A b"}], [(f"{POD}.containers[0].name", "Invalid value")], id="a bad name"),
        pytest.param([{"name": "a"}, {"name": "a"}], [(f"{POD}.containers[1]", "Duplicate value")], id="one name twice"),
        pytest.param([{"name": "a", "env": {"A": "b"}}], [(f"{POD}.containers[0].env", "Invalid value")], id="variables as an object"),
    ],
)
def test_containers(containers: object, expected: list[tuple[str, str]]) -> None:
    assert kinds(created(pcs(clique("a", pod={"containers": containers})))) == expected


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param([{"name": "A"}, {"name": "B_1.x-y"}, {"name": "_c"}], [], id="ordinary names"),
        pytest.param([{"name": "1A"}], [(".env[0].name", "Invalid value")], id="a digit first"),
        pytest.param([{"name": "A"}, {"name": "A B"}], [(".env[1].name", "Invalid value")], id="a space"),
        pytest.param([{"name": "A=B"}], [(".env[0].name", "Invalid value")], id="an equals sign"),
        pytest.param([{"name": ".."}], [(".env[0].name", "Invalid value")], id="dots only"),
        pytest.param([{"value": "x"}], [(".env[0].name", "Required value")], id="no name"),
        pytest.param([{"name": "A"}, {"name": "B"}, {"name": "A"}], [(".env", "Duplicate value")], id="one name twice"),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_environment(field: str, env: list[dict[str, Any]], expected: list[tuple[str, str]]) -> None:
    pod = {"containers": [CONTAINER], "initContainers": [{"name": "init"}], field: [{"name": "x"}, {"name": "y", "env": env}]}
    errors = created(pcs(clique("a", pod=pod)))
    assert kinds(errors) == [(f"{POD}.spec.{field}[1]{path}", kind) for path, kind in expected]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param({"requests": {"cpu": "500m", "nvidia.com/gpu": 8}, "limits": {"memory": "1.5Gi"}}, [], id="amounts"),
        pytest.param({"requests": {"cpu": "lots"}}, ["requests.cpu"], id="a word"),
        pytest.param({"limits": {"nvidia.com/gpu": None}}, ["limits[nvidia.com/gpu]"], id="null"),
        pytest.param({"limits": {"memory": ["1Gi"]}, "requests": {"memory": "1GB"}}, ["limits.memory", "requests.memory"], id="both"),
        pytest.param("none", [], id="no object at all"),
    ],
)
def test_resources_are_quantities(resources: object, expected: list[str]) -> None:
    errors = created(pcs(clique("a", pod={"containers": [{"name": "x", "resources": resources}]})))
    assert kinds(errors) == [(f"{POD}.containers[0].resources.{path}", "Invalid value") for path in expected]


def test_two_containers_may_have_the_same_variable() -> None:
    containers = [{"name": "x", "env": [{"name": "A"}]}, {"name": "y", "env": [{"name": "A"}]}]
    assert created(pcs(clique("a", pod={"containers": containers}))) == []


def test_names_with_dots_are_warned_about() -> None:
    result = validate_create(pcs(clique("a.b")), CONFIG, TOPOLOGIES)
    assert result.errors == ()
    assert result.warnings[-1].endswith("nothing will run: a.b")
