"""`grovekeeper initc`: waits inside a pod until its parents are ready. Standard library only: it runs in every pod with a startup order.

The namespace and the gang come from files of the downward API, the credentials from the mounted service account. One list and one watch
of the gang's pods; a broken connection is resumed, a watch that is too old (410) lists again, refusals are told and tried again, because
the permission may only be on its way.
"""

import http.client
import json
import os
import random
import signal
import ssl
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Protocol
from urllib.parse import urlencode

from api.labels import PODGANG
from controllers.initc.wait import ArgumentError, Waiter, parse_parents

__all__ = ("INVALID", "STOPPED", "UNUSABLE", "InCluster", "Places", "follow", "main")

INVALID, UNUSABLE, STOPPED = 2, 5, 143
USAGE = "usage: grovekeeper initc --podcliques NAME:MINIMUM [--podcliques ...]\n"
HELP = USAGE + (
    "\nWaits until every PodClique NAME has at least MINIMUM ready pods in this pod's own PodGang, then ends with exit code 0.\n"
    "Runs as the init container grove-initc, which the controllers add to pods of PodCliques with startsAfter.\n"
    "Exit codes: 0 all parents are ready, 2 wrong arguments, 5 files or environment of the pod are missing, 143 stopped.\n"
)
WATCH_S = 300
"""Length that is asked of a watch."""
IDLE_S = 90.0
"""A connection without a byte for that long is given up; servers send a bookmark about once a minute."""
CONNECT_S = 10.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 30.0
PAGE = 500


class _Stopped(Exception):
    """SIGTERM or SIGINT arrived."""


class _Unusable(Exception):
    """What every pod of ours has is missing here."""


class _Refused(Exception):
    """The API server answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Places:
    """Where a pod finds things."""

    pod_info: Path = Path("/var/grove/pod-info")
    account: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)


def main(arguments: Sequence[str] | None = None, places: Places | None = None) -> int:
    """Runs the waiter and returns its exit code; see HELP."""
    try:
        values = _values(sys.argv[1:] if arguments is None else arguments)
        if values is None:
            sys.stdout.write(HELP)
            return 0
        parents = parse_parents(values)
    except ArgumentError as error:
        sys.stderr.write(f"error: {error}\n{USAGE}")
        return INVALID
    before = {number: signal.signal(number, _stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        if parents:
            found = places or Places()
            gang = _read(found.pod_info / "podgangname", "the name of the PodGang")
            namespace = _read(found.pod_info / "namespace", "the namespace")
            follow(Waiter(gang, parents), namespace, InCluster(found), _say, time.sleep)
    except _Unusable as error:
        sys.stderr.write(f"error: {error}\n")
        return UNUSABLE
    except _Stopped:
        _say("stopped before all parents were ready")
        return STOPPED
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    _say("all parents are ready")
    return 0


def _values(arguments: Sequence[str]) -> list[str] | None:
    """The values of --podcliques; None: help was asked for. Raises ArgumentError."""
    out: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        if argument in ("-h", "--help"):
            return None
        if name not in ("--podcliques", "-p"):
            raise ArgumentError(f"unknown argument {argument!r}")
        if not equals:
            value = next(rest, "")
            if not value:
                raise ArgumentError(f"{name} needs a value")
        out.append(value)
    return out


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stopped


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _read(path: Path, what: str) -> str:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _Unusable(f"{path}: cannot read {what}: {error}") from error
    if not text:
        raise _Unusable(f"{path}: holds nothing, but should hold {what}")
    return text


class InCluster:
    """The API server as a pod sees it. A new connection for each request, with the token as it is then: tokens rotate."""

    def __init__(self, places: Places) -> None:
        host = places.environment.get("KUBERNETES_SERVICE_HOST", "")
        if not host:
            raise _Unusable("KUBERNETES_SERVICE_HOST is not set: this program runs inside a pod")
        port = places.environment.get("KUBERNETES_SERVICE_PORT", "443")
        if not (port.isascii() and port.isdigit()):
            raise _Unusable(f"KUBERNETES_SERVICE_PORT is {port!r}, which is no port")
        self._host, self._port = host.strip("[]"), int(port)
        self._account = places.account

    def get(self, path: str, query: Mapping[str, str]) -> http.client.HTTPResponse:
        """A 200 answer, not read yet; closing it closes the connection. Raises _Refused, OSError, HTTPException."""
        token = _read(self._account / "token", "the service account's token")
        authority = self._account / "ca.crt"
        try:
            context = ssl.create_default_context(cafile=str(authority))
        except OSError as error:
            raise _Unusable(f"{authority}: cannot be used as the certificate authority: {error}") from error
        connection = http.client.HTTPSConnection(self._host, self._port, timeout=CONNECT_S, context=context)
        try:
            headers = {"Authorization": f"Bearer {token}", "Accept": "application/json", "User-Agent": "grovekeeper-initc"}
            connection.request("GET", f"{path}?{urlencode(query)}", headers=headers | {"Connection": "close"})
            if connection.sock is not None:
                connection.sock.settimeout(IDLE_S)
            answer = connection.getresponse()
            if answer.status != http.client.OK:
                raise _Refused(answer.status, _message(answer))
        except BaseException:
            connection.close()
            raise
        return answer


def _message(answer: http.client.HTTPResponse) -> str:
    """The server's own words where it sent a Status."""
    try:
        return str(json.loads(answer.read())["message"])
    except (ValueError, KeyError, TypeError):
        return answer.reason


class Server(Protocol):
    """What `follow` needs of an API server; see InCluster."""

    def get(self, path: str, query: Mapping[str, str]) -> Any: ...


def follow(waiter: Waiter, namespace: str, server: Server, say: Callable[[str], None], sleep: Callable[[float], None]) -> None:
    """Returns when the waiter is satisfied. Tells progress and trouble whenever they change. Raises _Stopped and _Unusable."""
    pods = _Pods(waiter, server, f"/api/v1/namespaces/{namespace}/pods", _News(waiter, say))
    say(f"waits in PodGang {waiter.gang}")
    pause_s = FIRST_PAUSE_S
    while not waiter.is_satisfied:
        try:
            if pods.follow():
                pause_s = FIRST_PAUSE_S
                continue
        except _Refused as error:
            pods.news.trouble(_advice(error, namespace, waiter.gang))
        except (OSError, http.client.HTTPException, ValueError) as error:
            pods.news.trouble(f"the connection to the API server failed: {type(error).__name__}: {error}")
        sleep(pause_s * random.uniform(0.8, 1.2))  # noqa: S311 - spreads retries, no secret
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


class _News:
    """Says what is new and nothing twice in a row."""

    def __init__(self, waiter: Waiter, say: Callable[[str], None]) -> None:
        self._waiter, self._say, self._told = waiter, say, ""

    def tell(self) -> None:
        self._once(", ".join(str(p) for p in self._waiter.progress()))

    def trouble(self, text: str) -> None:
        self._once(f"{text}; trying again")

    def _once(self, text: str) -> None:
        if text != self._told:
            self._say(text)
            self._told = text


@dataclass(slots=True)
class _Pods:
    """List and watch of the gang's pods. `version`: where the watch goes on; "": list first."""

    waiter: Waiter
    server: Server
    path: str
    news: _News
    version: str = ""

    def follow(self) -> bool:
        """One list if needed, then one watch until it ends or the waiter is satisfied. Returns whether that brought anything."""
        if not self.version:
            self._list()
        try:
            return self.waiter.is_satisfied or self._watch()
        except _Refused as error:
            if error.code == http.client.GONE:
                self.version = ""
            raise

    def _list(self) -> None:
        found: list[Any] = []
        query = {"labelSelector": f"{PODGANG}={self.waiter.gang}", "limit": str(PAGE)}
        while True:
            with closing(self.server.get(self.path, query)) as answer:
                page = json.loads(answer.read())
            found += page.get("items") or ()
            if not page["metadata"].get("continue"):
                break
            query["continue"] = page["metadata"]["continue"]
        self.waiter.replace(found)
        self.version = str(page["metadata"]["resourceVersion"])
        self.news.tell()

    def _watch(self) -> bool:
        query = {"labelSelector": f"{PODGANG}={self.waiter.gang}", "watch": "true", "allowWatchBookmarks": "true"}
        query |= {"resourceVersion": self.version, "timeoutSeconds": str(WATCH_S)}
        is_news = False
        with closing(self.server.get(self.path, query)) as answer:
            for line in answer:
                event = json.loads(line)
                kind, obj = event["type"], event["object"]
                if kind == "ERROR":
                    raise _Refused(int(obj.get("code") or 0), str(obj.get("message", "")))
                if kind == "DELETED":
                    self.waiter.forget(obj)
                elif kind != "BOOKMARK":
                    self.waiter.see(obj)
                self.version = str(obj["metadata"]["resourceVersion"])
                is_news = True
                self.news.tell()
                if self.waiter.is_satisfied:
                    break
        return is_news


def _advice(error: _Refused, namespace: str, gang: str) -> str:
    """The refusal with what helps."""
    text = f"the API server refuses ({error.code}): {error}"
    if error.code == http.client.FORBIDDEN:
        text += f". The pod's service account has to be allowed to list and watch pods in namespace {namespace}"
    elif error.code == http.client.UNAUTHORIZED:
        text += ". The mounted token is not valid (any more)"
    elif error.code == http.client.GONE:
        text = f"the watch of PodGang {gang} is too old and starts anew"
    return text


if __name__ == "__main__":
    sys.exit(main())
