"""One PodCliqueSet called chat, planned by its controller alone."""

from datetime import UTC, datetime
from typing import Any

from api.grove import PodCliqueSet
from api.operatorconfig import OperatorConfiguration
from api.plan import Emit, Key, Plan
from cli.world import World
from controllers.podcliqueset.observe import Observed, observe
from controllers.podcliqueset.plan import plan
from tests.unit.worlds import change, chosen, clique, named, podcliqueset, running

NOW = datetime(2026, 1, 1, tzinfo=UTC)
GROUP: dict[str, Any] = {"name": "g", "cliqueNames": ["w"], "replicas": 3, "minAvailable": 1}


def observed(world: World, now: datetime = NOW) -> Observed:
    seen = observe(world, Key("serving", "chat"), now, world.config)
    assert seen is not None
    return seen


def planned(world: World, now: datetime = NOW) -> Plan:
    return plan(observed(world, now))


def fresh(*manifests: dict[str, Any], config: OperatorConfiguration | None = None) -> World:
    """A world in which no controller has run yet."""
    world = World(config or OperatorConfiguration())
    for manifest in manifests:
        world.put(manifest)
    return world


def template(world: World, **changes: Any) -> None:
    """Changes the template of the set."""
    live = named(world, PodCliqueSet, "chat")
    change(world, PodCliqueSet, "chat", spec={"template": {**live["spec"]["template"], **changes}})


def both(**changes: Any) -> World:
    """A running set with a standalone clique and a scaling group."""
    return running(podcliqueset(clique("router", 2), clique("w", 2), podCliqueScalingGroups=[{**GROUP, "replicas": 2}], **changes))


def events(p: Plan) -> list[str]:
    """Reasons of the events of a plan."""
    return [op.reason for op in chosen(p, Emit)]


def status_of(world: World) -> dict[str, Any]:
    """The set's status as stored."""
    return named(world, PodCliqueSet, "chat")["status"]
