"""The startup waiter's program: against a scripted server in memory, and as a process against an HTTPS server."""

import http.client
import io
import json
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme

from controllers.initc.program import INVALID, STOPPED, UNUSABLE, InCluster, Places, _Refused, follow, main
from controllers.initc.wait import Waiter, parse_parents
from tests.unit.test_initc_wait import pod

ROOT = Path(__file__).parents[2]


def page(version: int, *pods: dict[str, Any], rest: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "continue": rest}, "items": list(pods)}


def event(kind: str, version: int, found: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": {**found, "metadata": {**found.get("metadata", {}), "resourceVersion": str(version)}}}


def lines(*events: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(e).encode() + b"\n" for e in events)


class Script:
    """Plays answers in order: bytes are a body, exceptions are raised. Records the queries."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.queries: list[Mapping[str, str]] = []

    def get(self, path: str, query: Mapping[str, str]) -> Any:
        assert path == "/api/v1/namespaces/ns/pods"
        self.queries.append(dict(query))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer if isinstance(answer, bytes) else json.dumps(answer).encode())


def run(script: Script, *parents: str) -> tuple[list[str], list[float]]:
    """What it said and how long it paused; returns only when satisfied."""
    said: list[str] = []
    pauses: list[float] = []
    follow(Waiter("g", parse_parents(parents)), "ns", script, said.append, pauses.append)
    assert not script.answers
    return said, pauses


def test_a_list_can_be_enough() -> None:
    script = Script(page(5, pod("a-0")))
    said, pauses = run(script, "a:1")
    assert said == ["waits in PodGang g", "a: 1/1 ready"]
    assert not pauses
    assert script.queries == [{"labelSelector": "grove.io/podgang=g", "limit": "500"}]


def test_a_long_list_comes_in_pages_of_one_count() -> None:
    script = Script(page(5, pod("a-0"), rest="next"), page(5, pod("a-1")))
    run(script, "a:2")
    assert script.queries[1]["continue"] == "next"


def test_a_watch_goes_on_from_the_list_and_tells_each_change_once() -> None:
    stream = lines(
        event("ADDED", 6, pod("a-0", ready="False")),
        event("BOOKMARK", 7, {}),
        event("MODIFIED", 8, pod("a-0")),
        event("DELETED", 9, pod("a-0")),
        event("ADDED", 10, pod("a-1")),
        event("ADDED", 11, pod("a-2")),
    )
    script = Script(page(5), stream)
    said, _ = run(script, "a:2")
    assert said[1:] == [f"a: {n}/2 ready" for n in (0, 1, 0, 1, 2)]
    assert script.queries[1]["resourceVersion"] == "5"
    assert script.queries[1]["allowWatchBookmarks"] == "true"


def test_an_ended_watch_resumes_where_it_was() -> None:
    script = Script(page(5), lines(event("BOOKMARK", 8, {})), lines(event("ADDED", 9, pod("a-0"))))
    _, pauses = run(script, "a:1")
    assert [q.get("resourceVersion") for q in script.queries] == [None, "5", "8"]
    assert not pauses


def test_a_watch_that_brings_nothing_is_not_asked_for_in_a_hot_loop() -> None:
    script = Script(page(5), b"", b"", b"", lines(event("ADDED", 9, pod("a-0"))))
    _, pauses = run(script, "a:1")
    assert len(pauses) == 3
    assert pauses[0] < pauses[1] < pauses[2]


@pytest.mark.parametrize("form", ["answer", "event"])
def test_a_watch_that_is_too_old_lists_again_and_forgets_what_is_gone(form: str) -> None:
    old = {"type": "ERROR", "object": {"code": 410, "message": "too old resource version"}}
    refused = _Refused(410, "too old resource version") if form == "answer" else lines(old)
    script = Script(page(5, pod("a-0")), refused, page(20, pod("a-1")), lines(event("ADDED", 21, pod("a-2"))))
    said, _ = run(script, "a:2")
    assert [q.get("resourceVersion") for q in script.queries] == [None, "5", None, "20"]
    assert "the watch of PodGang g is too old and starts anew; trying again" in said


def test_forbidden_says_what_is_missing_once_and_is_tried_again() -> None:
    script = Script(*[_Refused(403, "pods is forbidden")] * 3, page(5, pod("a-0")))
    said, pauses = run(script, "a:1")
    told = [line for line in said if "403" in line]
    assert told == [
        "the API server refuses (403): pods is forbidden. The pod's service account has to be allowed to list and watch pods in "
        "namespace ns; trying again"
    ]
    assert len(pauses) == 3


@pytest.mark.parametrize(
    "error", [ConnectionRefusedError(111, "refused"), TimeoutError("idle"), http.client.IncompleteRead(b""), ssl.SSLError("bad")]
)
def test_a_broken_connection_is_tried_again(error: Exception) -> None:
    said, pauses = run(Script(page(5), error, lines(event("ADDED", 9, pod("a-0")))), "a:1")
    assert len(pauses) == 1
    assert any("the connection to the API server failed" in line for line in said)


def test_a_line_that_is_cut_is_tried_again_from_the_last_whole_one() -> None:
    cut = lines(event("ADDED", 6, pod("b-0", "b"))) + b'{"type": "ADD'
    script = Script(page(5), cut, lines(event("ADDED", 9, pod("a-0"))))
    run(script, "a:1")
    assert script.queries[2]["resourceVersion"] == "6"


def test_pauses_grow_to_a_limit() -> None:
    _, pauses = run(Script(*[OSError("down")] * 12, page(5, pod("a-0"))), "a:1")
    assert 0.1 < pauses[0] < 0.3
    assert 20 < pauses[-1] < 40


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--podcliques=a"], INVALID, "expected NAME:MINIMUM"),
        (["--podcliques"], INVALID, "needs a value"),
        (["--nonsense"], INVALID, "unknown argument '--nonsense'"),
        (["-p", "a:1"], UNUSABLE, "podgangname: cannot read the name of the PodGang"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, text: str) -> None:
    assert main(arguments, Places(tmp_path, tmp_path, {})) == code
    assert text in capsys.readouterr().err


def test_no_parents_means_no_waiting(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert main([], Places(tmp_path, tmp_path, {})) == 0
    assert main(["--podcliques="], Places(tmp_path, tmp_path, {})) == 0
    assert signal.getsignal(signal.SIGTERM) is before


def test_missing_credentials_end_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "podgangname").write_text("g")
    (tmp_path / "namespace").write_text("ns")
    places = Places(tmp_path, tmp_path, {"KUBERNETES_SERVICE_HOST": "127.0.0.1"})
    assert main(["-p", "a:1"], places) == UNUSABLE
    assert "token: cannot read the service account's token" in capsys.readouterr().err
    assert main(["-p", "a:1"], Places(tmp_path, tmp_path, {})) == UNUSABLE
    assert "KUBERNETES_SERVICE_HOST" in capsys.readouterr().err
    odd = {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "https"}
    assert main(["-p", "a:1"], Places(tmp_path, tmp_path, odd)) == UNUSABLE
    assert "KUBERNETES_SERVICE_PORT is 'https', which is no port" in capsys.readouterr().err


# Against a server.


@contextmanager
def serving(directory: Path, answers: Callable[[BaseHTTPRequestHandler, Mapping[str, str]], None]) -> Generator[Places]:
    """An HTTPS server, and the files of a pod that trusts it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers(self, {k: v[0] for k, v in parse_qs(urlsplit(self.path).query).items()})

        def log_message(self, format: str, *args: object) -> None: ...

    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    (directory / "podgangname").write_text("g\n")
    (directory / "namespace").write_text("ns")
    (directory / "token").write_text("secret\n")
    authority.cert_pem.write_to_path(str(directory / "ca.crt"))
    try:
        yield Places(
            directory, directory, {"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": str(server.server_address[1])}
        )
    finally:
        server.shutdown()
        server.server_close()


def reply(request: BaseHTTPRequestHandler, code: int, body: bytes) -> None:
    request.send_response(code)
    request.send_header("Content-Type", "application/json")
    request.end_headers()
    request.wfile.write(body)


def test_it_waits_over_https_with_the_mounted_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[tuple[str, str | None]] = []

    def answers(request: BaseHTTPRequestHandler, query: Mapping[str, str]) -> None:
        seen.append((urlsplit(request.path).path, request.headers["Authorization"]))
        body = lines(event("ADDED", 6, pod("a-0"))) if "watch" in query else json.dumps(page(5)).encode()
        reply(request, 200, body)

    with serving(tmp_path, answers) as places:
        assert main(["--podcliques=a:1"], places) == 0
    assert seen == [("/api/v1/namespaces/ns/pods", "Bearer secret")] * 2
    assert capsys.readouterr().out.splitlines() == ["waits in PodGang g", "a: 0/1 ready", "a: 1/1 ready", "all parents are ready"]


def test_a_server_with_another_authority_is_not_trusted(tmp_path: Path) -> None:
    with serving(tmp_path, lambda request, query: reply(request, 200, b"{}")) as places:
        trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.crt"))
        with pytest.raises(ssl.SSLCertVerificationError):
            InCluster(places).get("/api/v1/namespaces/ns/pods", {})


def test_a_refusal_carries_the_servers_words(tmp_path: Path) -> None:
    status = json.dumps({"kind": "Status", "message": "pods is forbidden"}).encode()
    with (
        serving(tmp_path, lambda request, query: reply(request, 403, status)) as places,
        pytest.raises(_Refused, match="pods is forbidden"),
    ):
        InCluster(places).get("/api/v1/namespaces/ns/pods", {})
    with serving(tmp_path, lambda request, query: reply(request, 502, b"<html>")) as places, pytest.raises(_Refused, match="Bad Gateway"):
        InCluster(places).get("/api/v1/namespaces/ns/pods", {})


def test_sigterm_ends_a_silent_watch(tmp_path: Path) -> None:
    silent, watching = threading.Event(), threading.Event()

    def answers(request: BaseHTTPRequestHandler, query: Mapping[str, str]) -> None:
        reply(request, 200, b"" if "watch" in query else json.dumps(page(5)).encode())
        if "watch" in query:
            watching.set()
            silent.wait(10)

    program = "import sys, pathlib; from controllers.initc.program import *; p = pathlib.Path(sys.argv[1]); import os\n"
    program += "sys.exit(main(['-p', 'a:1'], Places(p, p, os.environ)))"
    with serving(tmp_path, answers) as places:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, env=dict(places.environment), stdout=subprocess.PIPE
        )
        try:
            assert watching.wait(10)
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=10)
        finally:
            process.kill()
            silent.set()
    assert process.returncode == STOPPED
    assert b"stopped before all parents were ready" in output


def test_the_command_loads_nothing_but_the_standard_library() -> None:
    roots = {"anyio", "aiohttp", "msgspec", "pydantic", "numpy", "yaml", "ortools", "scheduler", "cryptography"}
    program = "import sys; from cli.main import main; code = main(['--podcliques= ']); "
    program += f"print(code, {roots!r} & {{m.partition('.')[0] for m in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)  # noqa: S603 - our own
    assert done.stdout.splitlines() == ["all parents are ready", "0 set()"]
