"""Credentials: where they are found, what they send, how they rotate, and what a user reads when they are wrong."""

import asyncio
import base64
import json
import logging
import os
import ssl
import stat
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from controllers.runtime import identity as identity_module
from controllers.runtime.credentials import CredentialsError, from_kubeconfig, in_cluster, load_credentials
from controllers.runtime.identity import Credentials, FileSource, Identity, Proof, Trust
from controllers.runtime.transport import Transport
from controllers.runtime.wire import Outgoing
from tests.unit.fakeapi import FakeApi, Reply, serve


def kubeconfig(path: Path, *, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, name: str = "c") -> Path:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": {"server": "http://127.0.0.1:1", **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": f"space-{name}"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.fixture(autouse=True)
def no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the clock of credentials forward."""
    now = 1000.0
    monkeypatch.setattr(identity_module.anyio, "current_time", lambda: now)

    def advance(seconds: float) -> None:
        nonlocal now
        now += seconds

    return advance


async def header(credentials: Credentials) -> str:
    return (await credentials.identity()).headers.get("Authorization", "")


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"username": "u", "password": "p"}, "Basic dTpw"),
        ({}, ""),
    ],
)
async def test_static_users(tmp_path: Path, user: dict[str, Any], expected: str) -> None:
    credentials = from_kubeconfig((kubeconfig(tmp_path / "k", user=user, cluster={"server": "http://h:1/prefix/"}),))
    assert await header(credentials) == expected
    assert (credentials.server, credentials.namespace) == ("http://h:1/prefix", "space-c")


async def test_token_file_is_relative_and_read_again_after_a_minute(tmp_path: Path, clock: Callable[[float], None]) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    credentials = from_kubeconfig((kubeconfig(tmp_path / "k", user={"token": "ignored", "tokenFile": "token"}),))
    assert await header(credentials) == "Bearer one"
    token.write_text("two\n")
    clock(59.0)
    assert await header(credentials) == "Bearer one"
    clock(2.0)
    assert await header(credentials) == "Bearer two"


async def test_401_reads_the_token_file_at_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    async with serve(FakeApi()) as api:
        api.on("GET", "/x", lambda r: Reply(200 if r.headers["Authorization"] == "Bearer new" else 401))
        credentials = from_kubeconfig((kubeconfig(tmp_path / "k", user={"tokenFile": "token"}, cluster={"server": api.url}),))
        async with Transport(credentials) as transport:
            await credentials.identity()
            token.write_text("new")
            await transport.call("GET", "/x")
    assert len(api.requests) == 2


async def test_file_that_vanishes_for_a_moment_does_no_harm(
    tmp_path: Path, clock: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    token = tmp_path / "token"
    token.write_text("one")
    credentials = from_kubeconfig((kubeconfig(tmp_path / "k", user={"tokenFile": "token"}),))
    await credentials.identity()
    token.unlink()
    clock(61.0)
    with caplog.at_level(logging.WARNING):
        assert await header(credentials) == "Bearer one"
    assert "token" in str(vars(caplog.records[0])["error"])
    token.write_text("two")
    clock(6.0)
    assert await header(credentials) == "Bearer two"


@pytest.mark.parametrize("inline", [True, False])
async def test_client_certificate_by_tls_and_no_key_left_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inline: bool) -> None:
    ca = trustme.CA()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("127.0.0.1").configure_cert(server)
    ca.configure_trust(server)
    server.verify_mode = ssl.CERT_REQUIRED
    client = ca.issue_cert("me@example.org")
    chain, key = b"".join(p.bytes() for p in client.cert_chain_pems), client.private_key_pem.bytes()
    if inline:
        user, trust = (
            {"client-certificate-data": b64(chain), "client-key-data": b64(key)},
            {"certificate-authority-data": b64(ca.cert_pem.bytes())},
        )
    else:
        for name, data in (("crt", chain), ("key", key), ("ca", ca.cert_pem.bytes())):
            (tmp_path / name).write_bytes(data)
        user, trust = {"client-certificate": "crt", "client-key": "key"}, {"certificate-authority": "ca"}
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    modes: list[int] = []
    real = ssl.SSLContext.load_cert_chain

    def spy(self: ssl.SSLContext, certfile: str) -> None:
        modes.append(stat.S_IMODE(Path(certfile).stat().st_mode))
        real(self, certfile)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", spy)
    async with serve(FakeApi(), server) as api:
        api.on("GET", "/x", Reply())
        credentials = from_kubeconfig((kubeconfig(tmp_path / "k", user=user, cluster={"server": api.url, **trust}),))
        async with Transport(credentials) as transport:
            await transport.call("GET", "/x")
    assert modes == [0o600]
    assert list(scratch.iterdir()) == []


async def test_rotated_ca_makes_a_new_context_and_an_unchanged_one_does_not(tmp_path: Path, clock: Callable[[float], None]) -> None:
    path = tmp_path / "ca"
    path.write_bytes(trustme.CA().cert_pem.bytes())
    credentials = Credentials("https://h", FileSource(), Trust(ca_file=path))
    first = (await credentials.identity()).ssl
    clock(61.0)
    assert (await credentials.identity()).ssl is first
    path.write_bytes(trustme.CA().cert_pem.bytes())
    clock(61.0)
    assert (await credentials.identity()).ssl is not first


PLUGIN = """
import json, os, pathlib, sys
count = pathlib.Path(sys.argv[1]); n = int(count.read_text() or 0) if count.exists() else 0
count.write_text(str(n + 1))
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
status = {"token": f"{os.environ['WHO']}-{n}-{info['spec']['cluster']['server']}"}
if len(sys.argv) > 2: status["expirationTimestamp"] = sys.argv[2]
print(json.dumps({"apiVersion": info["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def plugin(tmp_path: Path, *args: str) -> dict[str, Any]:
    (tmp_path / "plugin.py").write_text(PLUGIN)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(tmp_path / "plugin.py"), str(tmp_path / "count"), *args],
            "env": [{"name": "WHO", "value": "me"}],
            "provideClusterInfo": True,
        }
    }


async def test_exec_plugin_runs_once_for_many_and_again_on_refresh(tmp_path: Path) -> None:
    credentials = from_kubeconfig((kubeconfig(tmp_path / "k", user=plugin(tmp_path)),))
    assert set(await asyncio.gather(*(header(credentials) for _ in range(5)))) == {"Bearer me-0-http://127.0.0.1:1"}
    assert await credentials.refresh(0)
    assert await header(credentials) == "Bearer me-1-http://127.0.0.1:1"


async def test_exec_plugin_runs_again_a_minute_before_expiry(tmp_path: Path, clock: Callable[[float], None]) -> None:
    expiry = (datetime.now(UTC) + timedelta(seconds=600)).isoformat()
    credentials = from_kubeconfig((kubeconfig(tmp_path / "k", user=plugin(tmp_path, expiry)),))
    assert "me-0" in await header(credentials)
    for _ in range(8):
        clock(65.0)
        assert "me-0" in await header(credentials)
    clock(65.0)
    assert "me-1" in await header(credentials)


async def test_plugin_that_gives_expired_tokens_is_not_run_for_every_call(tmp_path: Path, clock: Callable[[float], None]) -> None:
    credentials = from_kubeconfig((kubeconfig(tmp_path / "k", user=plugin(tmp_path, "2001-01-01T00:00:00Z")),))
    for _ in range(3):
        assert "me-0" in await header(credentials)
    clock(identity_module.REFRESH_PAUSE_S)
    assert "me-1" in await header(credentials)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["/nonexistent/plugin"], "cannot be started"),
        ([sys.executable, "-c", "import sys; print('s3cr3t'); sys.exit(3)"], "ended with code 3"),
        ([sys.executable, "-c", "print('s3cr3t')"], "printed no ExecCredential"),
    ],
)
async def test_broken_plugin_is_named_and_its_output_is_not(tmp_path: Path, argv: list[str], text: str) -> None:
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": argv[0], "args": argv[1:]}}
    credentials = from_kubeconfig((kubeconfig(tmp_path / "k", user=user),))
    with pytest.raises(CredentialsError, match=text) as caught:
        await credentials.identity()
    assert argv[0] in str(caught.value)
    assert "run it by hand" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)


async def test_slow_plugin_holds_up_nobody_who_has_a_token(clock: Callable[[float], None]) -> None:
    release = asyncio.Event()

    class Slow:
        calls = 0

        async def load(self, *, renew: bool) -> Proof:
            self.calls += 1
            if renew:
                await release.wait()
            return Proof(f"Bearer {self.calls}")

    credentials = Credentials("http://h", Slow(), Trust())
    await credentials.identity()
    refreshing = asyncio.create_task(credentials.refresh(0))
    await asyncio.sleep(0)
    clock(61.0)
    assert await asyncio.wait_for(header(credentials), 0.5) == "Bearer 1"
    release.set()
    assert await refreshing
    assert await header(credentials) == "Bearer 2"


async def test_cancelled_refresh_is_taken_over_by_the_next_caller() -> None:
    class Stuck:
        renewals = 0

        async def load(self, *, renew: bool) -> Proof:
            self.renewals += renew
            if self.renewals == 1:
                await asyncio.Event().wait()
            return Proof(f"Bearer {self.renewals}")

    credentials = Credentials("http://h", Stuck(), Trust())
    await credentials.identity()
    first, second = asyncio.create_task(credentials.refresh(0)), asyncio.create_task(credentials.refresh(0))
    await asyncio.sleep(0)
    first.cancel()
    assert await asyncio.wait_for(second, 0.5)
    assert await header(credentials) == "Bearer 2"


async def test_in_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    (tmp_path / "token").write_text("sa")
    (tmp_path / "namespace").write_text("system")
    (tmp_path / "ca.crt").write_bytes(trustme.CA().cert_pem.bytes())
    credentials = in_cluster(tmp_path)
    assert (credentials.server, credentials.namespace) == ("https://[fd00::1]:6443", "system")
    identity = await credentials.identity()
    assert identity.headers == {"Authorization": "Bearer sa"}
    assert identity.ssl is not None
    assert identity.ssl.verify_mode is ssl.CERT_REQUIRED


def test_where_it_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CredentialsError, match="--kubeconfig FILE or set KUBECONFIG"):
        load_credentials()
    home = tmp_path / "home" / ".kube"
    home.mkdir(parents=True)
    kubeconfig(home / "config", name="home")
    assert load_credentials().namespace == "space-home"
    one, two = kubeconfig(tmp_path / "one", name="one"), kubeconfig(tmp_path / "two", name="two")
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(map(str, (tmp_path / "absent", one, two))))
    assert load_credentials().namespace == "space-one"
    assert load_credentials(context="two").namespace == "space-two"
    assert load_credentials(two).namespace == "space-two"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"current-context": ""}, "has no current-context; pass --context, one of: 'c'"),
        ({"current-context": "x"}, "context 'x' is not defined; defined are: 'c'"),
        ({"clusters": []}, "cluster 'c' is not defined; defined are: none defined"),
        ({"users": None}, "user 'c' is not defined"),
        ({"clusters": [{"name": "c", "cluster": {}}]}, "has no http"),
        ({"clusters": [{"name": "c", "cluster": {"server": "https://h", "proxy-url": "http://p"}}]}, "proxy-url is not supported"),
        ({"clusters": [{"name": "c", "cluster": {"server": "https://h", "certificate-authority-data": "%"}}]}, "is not base64"),
        ({"users": [{"name": "c", "user": {"auth-provider": {"name": "gcp"}}}]}, "use an exec plugin"),
        ({"clusters": 5}, "malformed"),
    ],
)
def test_mistakes_are_named_with_file_and_remedy(tmp_path: Path, change: dict[str, Any], text: str) -> None:
    path = kubeconfig(tmp_path / "k")
    path.write_text(json.dumps({**yaml.safe_load(path.read_text()), **change}))
    with pytest.raises(CredentialsError, match=text) as caught:
        from_kubeconfig((path,))
    assert str(path) in str(caught.value)


def test_file_that_is_missing_or_no_yaml(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=r"cannot read kubeconfig .*absent: No such file"):
        load_credentials(tmp_path / "absent")
    (tmp_path / "k").write_text("token: [s3cr3t")
    with pytest.raises(CredentialsError, match="malformed") as caught:
        load_credentials(tmp_path / "k")
    assert "s3cr3t" not in str(caught.value)


async def test_bad_pem_is_an_error_without_the_pem() -> None:
    credentials = Credentials("https://h", FileSource(certificate=b"s3cr3t", key=b"s3cr3t"), Trust())
    with pytest.raises(CredentialsError, match="check their PEM data") as caught:
        await credentials.identity()
    assert "s3cr3t" not in str(caught.value)


def test_secrets_do_not_show_in_representations() -> None:
    shown = repr(FileSource(authorization="s3cr3t", key=b"s3cr3t", certificate=b"s3cr3t")) + repr(Proof("s3cr3t", b"s3cr3t", b"s3cr3t"))
    shown += repr(
        Outgoing("POST", "/x", None, {"Authorization": "s3cr3t"}, Identity({"Authorization": "s3cr3t"}, None, None, 1), b"s3cr3t")
    )
    assert "s3cr3t" not in shown
