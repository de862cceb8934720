"""The ClusterRoles of the base allow what the code does, no more and no less: reads follow from watches, writes from requests of plans."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.core import Secret
from api.grove import PodCliqueSet
from api.operatorconfig import LeaderElection, OperatorConfiguration
from api.plan import Emit, Key, Op
from api.settings import settings_of
from cli.configuration import SHIPPED, load_configuration
from cli.main import parser
from cli.process import lease_of
from cli.world import World
from controllers.podclique.controller import podclique_controller
from controllers.podcliquescalinggroup.controller import podcliquescalinggroup_controller
from controllers.podcliqueset.controller import podcliqueset_controller
from controllers.podgang.controller import podgang_controller
from controllers.runtime.requests import request_for
from scheduler.binder import binder_watches
from tests.unit.binderworld import running
from tests.unit.worlds import carry_out, change, clique, named, plans, podcliqueset, start_pods

BASE = Path(__file__).parents[2] / "manifests" / "base"
CONFIG = load_configuration(str(SHIPPED))
Rights = set[tuple[str, str]]
"""(verb, resource as Kind.resource names it, with /subresource)."""

EVENTS: Rights = {("create", "events"), ("patch", "events")}
WAITER: Rights = {(verb, resource) for verb in ("get", "list", "watch") for resource in ("pods", "pods/status")}
"""Who grants has to have: the Role of startup waiters."""
PATH = re.compile(
    r"/apis?/(?:(?P<group>[^/]+\.[^/]+|autoscaling)/)?[^/]+(?:/namespaces/[^/]+)?"
    r"/(?P<plural>[a-z]+)(?:/[^/]+(?P<sub>/[a-z]+)?)?"
)
METHODS = {"POST": "create", "PATCH": "patch", "DELETE": "delete", "PUT": "update", "GET": "get"}

CLAIMED = {"name": "gpu", "templateSpec": {"spec": {"devices": {"requests": [{"name": "gpu"}]}}}}
SHARED = {"name": "gpu", "scope": "PerReplica"}
GROUP = {
    "name": "g",
    "cliqueNames": ["w"],
    "replicas": 2,
    "minAvailable": 1,
    "scaleConfig": {"minReplicas": 1, "maxReplicas": 3, "metrics": []},
    "resourceSharing": [SHARED],
}


def right(method: str, path: str) -> tuple[str, str]:
    """What a request needs."""
    found = PATH.fullmatch(path)
    assert found, path
    group, sub = found["group"], found["sub"] or ""
    return METHODS[method], found["plural"] + (f".{group}" if group else "") + sub


def granted(component: str) -> Rights:
    """What the ClusterRole of a component allows."""
    documents = yaml.safe_load_all((BASE / f"{component}-rbac.yaml").read_text())
    (role,) = [d for d in documents if d["kind"] == "ClusterRole"]
    return {
        (verb, re.sub(r"^([^/]+)(.*)$", rf"\1.{group}\2", resource) if group else resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def needed(watched: Iterable[Any], written: Rights) -> Rights:
    """list and watch of what is watched, the writes, and get where a write may have to be settled: on what is watched and written."""
    resources = {model.KIND.resource for model in watched}
    settled = {resource.partition("/")[0] for _, resource in written} | {r.replace("/status", "") for _, r in written if "/status." in r}
    reads = {(verb, r) for r in resources for verb in ("list", "watch")}
    return reads | {("get", r) for r in resources & settled} | written


def watched_by_controllers(config: OperatorConfiguration) -> set[Any]:
    view, settings = World(config), settings_of(config)
    specs = (
        podcliqueset_controller(view, config),
        podcliquescalinggroup_controller(view, 1),
        podclique_controller(view, settings, 1),
        podgang_controller(view, settings, 1),
    )
    return {watch.model for spec in specs for watch in spec.watches}


def life_of_a_set() -> Rights:
    """Everything that the controllers send while a set with all features comes, changes, shrinks and goes."""
    world = World(CONFIG)
    sent: list[Op] = []

    def converge() -> None:
        for _ in range(40):
            writes = [op for _, plan in plans(world) for op in plan.ops if not isinstance(op, Emit) and not carry_out(world, op)]
            sent.extend(writes)
            start_pods(world)
            if not writes:
                return
        raise AssertionError("the plans do not converge")

    scaled = {"minReplicas": 1, "maxReplicas": 3}
    manifest = podcliqueset(
        clique("router", 2, minAvailable=1, autoScalingConfig=scaled),
        clique("w", 2),
        replicas=2,
        podCliqueScalingGroups=[GROUP],
        resourceClaimTemplates=[CLAIMED],
        resourceSharing=[SHARED],
        cliqueStartupType="CliqueStartupTypeInOrder",
    )
    world.put(manifest)
    converge()
    template = named(world, PodCliqueSet, "chat")["spec"]["template"]
    group = {**GROUP, "annotations": {"grove.io/note": "x"}, "scaleConfig": {**scaled, "maxReplicas": 4}}
    changed = {**template, "podCliqueScalingGroups": [group], "headlessServiceConfig": {"publishNotReadyAddresses": False}}
    change(world, PodCliqueSet, "chat", spec={"template": changed})
    converge()
    change(world, PodCliqueSet, "chat", spec={"replicas": 1})
    converge()
    for model_name in ("podclique", "podcliquescalinggroup", "podcliqueset"):
        for (kind, key), live in list(world.manifests.items()):
            if kind.kind.lower() == model_name and (kind, key) in world.manifests:
                world.put({**live, "metadata": {**live["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})
        converge()
    requests = [request_for(op, "test") for op in sent]
    return {right(r.method, r.path) for r in requests}


def test_the_controllers_may_do_what_they_do_and_nothing_else() -> None:
    assert granted("controllers") == needed(watched_by_controllers(CONFIG), life_of_a_set()) | EVENTS | WAITER


def test_secrets_are_watched_only_where_the_waiter_uses_them() -> None:
    assert Secret in watched_by_controllers(OperatorConfiguration())
    assert Secret not in watched_by_controllers(CONFIG)
    assert not [r for component in ("controllers", "scheduler") for r in granted(component) if r[1] == "secrets"]


async def test_the_scheduler_may_do_what_it_does_and_nothing_else() -> None:
    async with running(2) as scene:
        scene.gang("fits", 2)
        scene.gang("waits", 1)
        await scene.round()
        await scene.round()
        written = {right(c.method, c.path) for c in scene.transport.calls if c.method != "GET"}
        watched = {watch.model for watch in binder_watches(scene.binder)}
    assert granted("scheduler") == needed(watched, written) | EVENTS


@pytest.mark.parametrize(("component", "lease"), [("controllers", LeaderElection().resource_name), ("scheduler", "grovekeeper-scheduler")])
def test_each_process_may_keep_its_own_lease_in_its_own_namespace(component: str, lease: str) -> None:
    options = parser([component]).parse_args([component])
    assert lease_of(options, CONFIG, "grovekeeper-system") == Key("grovekeeper-system", lease)
    (role,) = [d for d in yaml.safe_load_all((BASE / f"{component}-rbac.yaml").read_text()) if d["kind"] == "Role"]
    group = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert role["rules"] == [{**group, "verbs": ["create"]}, {**group, "resourceNames": [lease], "verbs": ["get", "update"]}]
