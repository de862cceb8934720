"""What a checker sees, and helpers to read it."""

from collections.abc import Callable

import msgspec

from api.labels import PODCLIQUE
from sim.apiserver.objects import Object, mapping
from sim.apiserver.resources import Lookup
from sim.apiserver.storage import Change
from sim.cluster.calls import CallRecord

__all__ = ("OURS", "Checker", "Report", "body_of", "clique_of", "is_finished", "is_leaving", "is_ours", "node_of")

OURS = "grovekeeper-"
"""How the user agents of our processes begin."""

Report = Callable[[str, str], None]
"""Takes the name of an invariant and what broke it."""


class Checker:
    """The base does nothing. `now`: virtual seconds; `lookup`: the API server's objects, the change that is told included."""

    def __init__(self, report: Report, lookup: Lookup, now: Callable[[], float]) -> None:
        self.report = report
        self.lookup = lookup
        self.now = now

    def changed(self, change: Change) -> None:
        """The API server has committed a change."""

    def sent(self, record: CallRecord) -> None:
        """A request leaves one of our processes."""

    def done(self, record: CallRecord) -> None:
        """A request was answered, by the server or by a fault."""

    def disturbed(self) -> None:
        """A fault has had an effect."""


def is_ours(change: Change) -> bool:
    """Whether one of our processes made the change."""
    return change.author.user_agent.startswith(OURS)


def is_leaving(obj: Object) -> bool:
    return bool(obj["metadata"].get("deletionTimestamp"))


def is_finished(pod: Object) -> bool:
    """Whether a pod has ended and will not run again."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def node_of(pod: Object | None) -> str:
    return pod["spec"].get("nodeName", "") if pod is not None else ""


def clique_of(pod: Object) -> str:
    """Name of a pod's PodClique, "" for pods that are not ours."""
    return mapping(pod, "metadata", "labels").get(PODCLIQUE, "")


def body_of(record: CallRecord) -> Object:
    """The JSON object that was sent; empty without one."""
    try:
        return msgspec.json.decode(record.body, type=Object) if record.body else {}
    except msgspec.MsgspecError:
        return {}
