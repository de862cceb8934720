"""What is known of one request to the API server: for the faults that may meet it, for those who watch over runs, and for the log."""

from dataclasses import dataclass

from sim.apiserver.routes import Target, target_of

__all__ = ("CallRecord", "verb_of")

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}


@dataclass(slots=True)
class CallRecord:
    """A request of one of our processes. Times are the loop's, in seconds; `status` is 0 until it is answered, and when it never reaches
    the server. `life` counts the starts of the process. `body`: what was sent."""

    process: str
    life: int
    method: str
    path: str
    verb: str
    target: Target
    body: bytes
    sent_at: float
    arrived_at: float = -1.0
    status: int = 0
    is_settled: bool = False
    """The process has got an answer, or has stopped waiting for one that cannot come any more."""

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def is_accepted(self) -> bool:
        """The server has executed it."""
        return 200 <= self.status < 300


def verb_of(method: str, target: Target, *, is_watch: bool = False) -> str:
    """create, update, patch, delete, get, list, watch, or bind."""
    if method == "POST" and target.subresource == "binding":
        return "bind"
    if method == "GET":
        return "watch" if is_watch else "get" if target.name else "list"
    return _VERBS.get(method, method.lower())


def target_for(path: str) -> Target:
    """The object or collection of a path. Raises ValueError where there is none."""
    target = target_of(path)
    if target is None:
        raise ValueError(f"{path} names no resource")
    return target
