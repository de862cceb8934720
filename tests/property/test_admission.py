"""Admission of arbitrary objects: mistakes become field errors with paths, never exceptions; defaults and hashes hold their promises."""

import copy
import json
from typing import Any

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from api.defaulting import default_podcliqueset
from api.fielderrors import FieldError, aggregate
from api.grove import ClusterTopologyBinding, PodCliqueSet
from api.hashes import generation_hash
from api.operatorconfig import ConfigError, load_operator_configuration
from api.validation import (
    Validation,
    cel_errors,
    errors_from_pydantic,
    validate_clustertopologybinding,
    validate_create,
    validate_update,
)
from api.validation.startup import cycles
from tests.admission import TOPOLOGIES, binding, clique, config, group

CONFIG = config("kai-scheduler", "volcano", mnnvl=True)

GOOD: dict[str, Any] = {
    "apiVersion": "grove.io/v1alpha1",
    "kind": "PodCliqueSet",
    "metadata": {"name": "chat", "namespace": "serving", "labels": {"team": "a"}, "annotations": {"grove.io/mnnvl-group": "none"}},
    "spec": {
        "replicas": 2,
        "updateStrategy": {"type": "OnDelete"},
        "template": {
            "cliqueStartupType": "CliqueStartupTypeExplicit",
            "terminationDelay": "1h",
            "priorityClassName": "gold",
            "headlessServiceConfig": {"publishNotReadyAddresses": True},
            "topologyConstraint": {"topologyName": "grove-topology", "pack": {"required": "block", "preferred": "rack"}},
            "resourceClaimTemplates": [{"name": "gpu", "templateSpec": {"spec": {"devices": {"requests": [{"name": "g"}]}}}}],
            "resourceSharing": [
                {"name": "gpu", "scope": "PerReplica", "filter": {"childCliqueNames": ["router"], "childScalingGroupNames": ["g"]}}
            ],
            "cliques": [
                clique(
                    "router",
                    pod={"schedulerName": "default-scheduler", "initContainers": [{"name": "i", "env": [{"name": "A", "value": "b"}]}]},
                    spec={"autoScalingConfig": {"maxReplicas": 4, "metrics": [{"type": "Resource"}]}},
                    labels={"tier": "front"},
                ),
                clique("leader", spec={"startsAfter": ["router"], "minAvailable": 1}, topologyConstraint={"pack": {"required": "host"}}),
                clique("worker", spec={"startsAfter": ["leader", "router"]}, resourceSharing=[{"name": "x", "scope": "AllReplicas"}]),
            ],
            "podCliqueScalingGroups": [
                group(
                    "g",
                    "leader",
                    "worker",
                    replicas=3,
                    minAvailable=2,
                    scaleConfig={"maxReplicas": 5},
                    annotations={"note": "x"},
                    resourceSharing=[{"name": "gpu", "scope": "AllReplicas", "filter": {"childCliqueNames": ["leader"]}}],
                    topologyConstraint={"pack": {"required": "rack"}},
                )
            ],
        },
    },
}
BINDING: dict[str, Any] = {
    **binding().to_manifest(),
    "spec": {
        **binding().to_manifest()["spec"],
        "schedulerTopologyBindings": [{"schedulerName": "kai-scheduler", "topologyReference": "t"}],
    },
}
CONFIGURATION: dict[str, Any] = {
    "apiVersion": "operator.config.grove.io/v1alpha1",
    "kind": "OperatorConfiguration",
    "leaderElection": {"enabled": True, "leaseDuration": "15s", "renewDeadline": "10s"},
    "server": {"webhooks": {"port": 9443}, "metrics": {"port": 9445}},
    "controllers": {"podClique": {"concurrentSyncs": 3}},
    "scheduler": {"profiles": [{"name": "kai-scheduler", "config": {}}], "defaultProfileName": "kai-scheduler"},
    "grovekeeper": {"schedulerNames": ["grovekeeper-scheduler"], "token": "projected"},
}

words = st.sampled_from(
    ["", "router", "worker", "g", "gpu", "rack", "Rack", "ghost", "kai-scheduler", "x" * 70, "4h", "-1s", "a.b", "ü\n\x1b[31m", "{{x}}"]
)
leaves = st.one_of(st.none(), st.booleans(), st.integers(-3, 5), st.just(2**40), st.floats(allow_nan=False), words, st.text(max_size=8))
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.one_of(words, st.sampled_from(["name", "env", "pack", "spec"])), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything inside."""
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [pair for key in keys for pair in ((value, key), *places(value[key]))]


@st.composite
def mutated(draw: st.DrawFn, good: dict[str, Any]) -> dict[str, Any]:
    """A copy of a good document in which up to four things are replaced, removed, repeated or added."""
    document = copy.deepcopy(good)
    for _ in range(draw(st.integers(0, 4))):
        container, key = draw(st.sampled_from(places(document)))
        match draw(st.sampled_from(["replace", "remove", "repeat"])):
            case "replace":
                container[key] = draw(values)
            case "remove":
                del container[key]
            case _ if isinstance(container, list):
                container.append(copy.deepcopy(container[key]))
            case _:
                container[draw(words)] = draw(values)
        if not places(document):
            break
    return document


def check_printable(errors: tuple[FieldError, ...]) -> None:
    """Of a refusal: every error says where, and nothing of it can harm a terminal."""
    assert all(error.path for error in errors)
    assert aggregate(errors).isprintable()


def check(result: Validation) -> None:
    check_printable(result.errors)


@given(mutated(GOOD))
def test_no_podcliqueset_makes_validation_raise(document: dict[str, Any]) -> None:
    good = default_podcliqueset(PodCliqueSet.model_validate(GOOD))
    try:
        given_set = PodCliqueSet.model_validate(document, extra="forbid")
    except ValidationError as error:
        check_printable(errors_from_pydantic(error))
        return
    for subject in (given_set, default_podcliqueset(given_set)):
        check_printable(tuple(cel_errors(subject)))
        check(validate_create(subject, CONFIG, TOPOLOGIES))
        check(validate_create(subject, config(topology=False), {}))
        check(validate_update(good, subject, CONFIG, TOPOLOGIES))
        check(validate_update(subject, good, CONFIG, TOPOLOGIES))
        assert generation_hash(subject)


@given(mutated(GOOD))
def test_defaulting_is_idempotent_and_keeps_what_is_given(document: dict[str, Any]) -> None:
    try:
        subject = PodCliqueSet.model_validate(document, extra="forbid")
    except ValidationError:
        return
    once = default_podcliqueset(subject)
    assert default_podcliqueset(once).to_manifest() == once.to_manifest()
    assert PodCliqueSet.model_validate_json(json.dumps(once.to_manifest())).to_manifest() == once.to_manifest()
    if not validate_create(once, CONFIG, TOPOLOGIES).errors:
        assert validate_update(once, once, CONFIG, TOPOLOGIES).errors == ()


def test_the_good_document_is_good() -> None:
    subject = default_podcliqueset(PodCliqueSet.model_validate(GOOD, extra="forbid"))
    assert validate_create(subject, CONFIG, TOPOLOGIES).errors == ()
    assert list(cel_errors(subject)) == []


@given(mutated(BINDING))
def test_no_binding_makes_validation_raise(document: dict[str, Any]) -> None:
    try:
        subject = ClusterTopologyBinding.model_validate(document, extra="forbid")
    except ValidationError as error:
        check_printable(errors_from_pydantic(error))
        return
    check(validate_clustertopologybinding(subject, CONFIG))


@given(mutated(CONFIGURATION))
def test_a_configuration_is_read_or_refused_by_key(document: dict[str, Any]) -> None:
    try:
        loaded = load_operator_configuration(json.dumps(document))
    except ConfigError as error:
        check_printable(error.errors)
        return
    assert loaded.scheduler.default_profile_name in loaded.scheduler.names


@given(st.text(max_size=40))
def test_no_text_breaks_the_reader_of_configurations(text: str) -> None:
    try:
        load_operator_configuration(text)
    except ConfigError as error:
        check_printable(error.errors)


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: reversed_keys(v) for k, v in reversed(list(value.items()))}
    return [reversed_keys(v) for v in value] if isinstance(value, list) else value


@given(mutated(GOOD["spec"]["template"]["cliques"][0]["spec"]["podSpec"]))
def test_the_order_of_keys_does_not_change_hashes(pod_spec: dict[str, Any]) -> None:
    def hash_of(spec: dict[str, Any]) -> str:
        template = {"cliques": [{"name": "a", "spec": {"podSpec": spec}}]}
        return generation_hash(PodCliqueSet.model_validate({"metadata": {"name": "x"}, "spec": {"template": template}}))

    assert hash_of(pod_spec) == hash_of(reversed_keys(pod_spec))


@given(st.dictionaries(st.integers(0, 8).map(str), st.lists(st.integers(0, 8).map(str), max_size=4), max_size=9))
def test_cycles_are_the_strongly_connected_components(edges: dict[str, list[str]]) -> None:
    known = {name: [p for p in parents if p in edges] for name, parents in edges.items()}
    graph: Any = nx.DiGraph()
    graph.add_nodes_from(known)
    graph.add_edges_from((name, parent) for name, parents in known.items() for parent in parents)
    components: list[set[str]] = list(nx.strongly_connected_components(graph))
    assert {frozenset(c) for c in cycles(known)} == {frozenset(c) for c in components if len(c) > 1}
