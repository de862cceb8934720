"""How this process proves who it is to one API server, and how that stays fresh while tokens, keys and CAs rotate.

A `Source` reads a proof (bearer token, client certificate) from files or from an exec plugin; `Trust` says which server certificates count;
`Credentials` joins both into an immutable `Identity`, looks at the files again every 60 s and refreshes once when the server says 401.
"""

import asyncio
import json
import logging
import os
import ssl
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import anyio
import msgspec

from controllers.runtime.errors import TransportError

__all__ = ("Credentials", "CredentialsError", "ExecSource", "FileSource", "Identity", "Proof", "Source", "Trust")

log = logging.getLogger(__name__)

CHECK_EVERY_S = 60.0
EXPIRY_MARGIN_S = 60.0
REFRESH_PAUSE_S = 5.0
"""Refreshes that 401 answers ask for are at least this far apart."""
EXEC_TIMEOUT_S = 60.0


class CredentialsError(TransportError):
    """Credentials are missing or unusable. The text names the file or plugin and what to do about it."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What one request carries. `ssl` is None for a plain http server. `generation` counts refreshes."""

    headers: Mapping[str, str] = field(repr=False)
    ssl: ssl.SSLContext | None
    server_hostname: str | None
    generation: int


@dataclass(frozen=True, slots=True)
class Proof:
    """Authorization header and client certificate (PEM, chain and key) of one moment; empty where not used.

    valid_s: seconds until it has to be read again, None where only the usual check applies.
    """

    authorization: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    valid_s: float | None = None


class Source(Protocol):
    """One way to get a proof."""

    async def load(self, *, renew: bool) -> Proof:
        """The current proof; with `renew` one that was not cached. Raises CredentialsError."""
        ...


def read_file(path: Path, what: str) -> bytes:
    """Content of a credentials file; raises CredentialsError that names it."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CredentialsError(f"cannot read {what} {path}: {error.strerror}; restore the file or correct the configuration") from error


@dataclass(frozen=True, slots=True)
class FileSource:
    """Proof from configuration values and files. Where both are set for one purpose, the file is used."""

    authorization: str = field(default="", repr=False)
    token_file: Path | None = None
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)
    certificate_file: Path | None = None
    key_file: Path | None = None

    async def load(self, *, renew: bool) -> Proof:
        del renew  # files are always read anew
        authorization = self.authorization
        if self.token_file is not None:
            authorization = f"Bearer {read_file(self.token_file, 'token file').decode().strip()}"
        certificate = self.certificate if self.certificate_file is None else read_file(self.certificate_file, "client certificate")
        key = self.key if self.key_file is None else read_file(self.key_file, "client key")
        return Proof(authorization, certificate, key)


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct):
    status: _ExecStatus


class ExecSource:
    """Proof from a client-go credential plugin, cached until a minute before it expires.

    The plugin's own output is never logged or quoted: it is where the secrets are.
    """

    def __init__(self, command: str, args: tuple[str, ...], env: Mapping[str, str], info: Mapping[str, Any]) -> None:
        self._argv = (command, *args)
        self._env = {**env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        self._cached: Proof | None = None
        self._renew_at = float("inf")

    async def load(self, *, renew: bool) -> Proof:
        if self._cached is None or renew or anyio.current_time() >= self._renew_at:
            self._cached = await self._run()
        return self._cached

    async def _run(self) -> Proof:
        try:
            async with asyncio.timeout(EXEC_TIMEOUT_S):
                output = await self._output()
        except TimeoutError as error:
            raise self._error(f"gave no answer within {EXEC_TIMEOUT_S:.0f} s") from error
        except OSError as error:
            raise self._error(f"cannot be started ({error.strerror})") from error
        try:
            status = msgspec.json.decode(output, type=_ExecCredential).status
        except (msgspec.DecodeError, ValueError):
            raise self._error("printed no ExecCredential") from None
        valid_s = None
        self._renew_at = float("inf")
        if status.expiration_timestamp is not None:
            left_s = (status.expiration_timestamp - datetime.now(UTC)).total_seconds()
            valid_s = max(left_s - EXPIRY_MARGIN_S, REFRESH_PAUSE_S)
            self._renew_at = anyio.current_time() + valid_s
        authorization = f"Bearer {status.token}" if status.token else ""
        return Proof(authorization, status.client_certificate_data.encode(), status.client_key_data.encode(), valid_s)

    async def _output(self) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *self._argv,
            env={**os.environ, **self._env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            output, _ = await process.communicate()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise
        if process.returncode != 0:
            raise self._error(f"ended with code {process.returncode}")
        return output

    def _error(self, what: str) -> CredentialsError:
        return CredentialsError(f"credential plugin {self._argv[0]!r} {what}; run it by hand to see why")


@dataclass(frozen=True, slots=True)
class Trust:
    """Which server certificates are accepted. Without a CA: the system's. `insecure` accepts any and is warned about."""

    ca: bytes = b""
    ca_file: Path | None = None
    insecure: bool = False
    server_name: str = ""

    def read(self) -> bytes:
        """The CA bundle in PEM; empty means the system's CAs."""
        return read_file(self.ca_file, "certificate authority") if self.ca_file is not None else self.ca

    def context(self, ca: bytes, proof: Proof) -> ssl.SSLContext:
        """A client context for this trust and the client certificate of `proof`; raises CredentialsError for malformed PEM."""
        try:
            context = ssl.create_default_context(cadata=ca.decode() if ca else None)
            if self.insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if proof.certificate:
                _load_chain(context, proof)
        except (ssl.SSLError, ValueError) as error:
            raise CredentialsError(f"cannot use the CA or the client certificate: {type(error).__name__}; check their PEM data") from error
        return context


def _load_chain(context: ssl.SSLContext, proof: Proof) -> None:
    """`load_cert_chain` takes only file names, hence a private file for as long as the call lasts."""
    with tempfile.NamedTemporaryFile(prefix="grovekeeper-", suffix=".pem") as file:
        file.write(proof.certificate.rstrip() + b"\n" + proof.key)
        file.flush()
        context.load_cert_chain(file.name)


class Credentials:
    """The API server's address, the default namespace, and a current Identity. Shared by all transports of a process."""

    def __init__(self, server: str, source: Source, trust: Trust, *, namespace: str = "default") -> None:
        self.server = server.rstrip("/")
        self.namespace = namespace
        self._source = source
        self._trust = trust
        self._lock = asyncio.Lock()
        self._identity: Identity | None = None
        self._material: tuple[bytes, bytes, bytes] | None = None
        self._check_at = self._read_at = 0.0
        self._refreshed_at = float("-inf")
        if trust.insecure:
            log.warning("certificates of the API server are not verified", extra={"server": self.server})

    async def identity(self) -> Identity:
        """What to send now. Re-reads files when due; while somebody else does, the present identity goes on."""
        current = self._identity
        if current is not None and (anyio.current_time() < self._check_at or self._lock.locked()):
            return current
        async with self._lock:
            if self._identity is None or anyio.current_time() >= self._check_at:
                await self._reload()
            assert self._identity is not None  # noqa: S101 - _reload sets it or raises
            return self._identity

    async def refresh(self, generation: int) -> bool:
        """After a 401 to an identity of `generation`: one refresh, however many callers ask. False: refreshed moments ago, no use."""
        async with self._lock:
            if self._identity is not None and self._identity.generation != generation:
                return True
            now = anyio.current_time()
            if now - self._refreshed_at < REFRESH_PAUSE_S:
                return False
            try:
                await self._load(renew=True)
            except CredentialsError:
                self._refreshed_at = now
                raise
            # Not set when this caller was cancelled: then the next one in line tries.
            self._refreshed_at = now
            return True

    def doubt(self) -> None:
        """A server's certificate was refused: files are read again soon, because a CA is replaced as well as a token."""
        self._check_at = min(self._check_at, self._read_at + REFRESH_PAUSE_S)

    async def _reload(self) -> None:
        try:
            await self._load(renew=False)
        except CredentialsError as error:
            if self._identity is None:
                raise
            # Rotation may be under way (a file just being replaced): what we have may still be good for a while.
            self._read_at = anyio.current_time()
            self._check_at = self._read_at + REFRESH_PAUSE_S
            log.warning("cannot re-read credentials", extra={"server": self.server, "error": str(error)})

    async def _load(self, *, renew: bool) -> None:
        proof = await self._source.load(renew=renew)
        old = self._identity
        context = None
        if self.server.startswith("https:"):
            ca = self._trust.read()
            material = (ca, proof.certificate, proof.key)
            # A new context means new connections, so it is made only when keys or CAs really changed.
            context = old.ssl if old is not None and material == self._material else self._trust.context(ca, proof)
            self._material = material
        headers = {"Authorization": proof.authorization} if proof.authorization else {}
        generation = (0 if old is None else old.generation) + (1 if renew else 0)
        self._identity = Identity(headers, context, self._trust.server_name or None, generation)
        self._read_at = anyio.current_time()
        self._check_at = self._read_at + min(CHECK_EVERY_S, proof.valid_s or CHECK_EVERY_S)
