"""A small blocking API client for these scripts: verified TLS, bearer token, one kept connection."""

import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import yaml

__all__ = ("Access", "ApiError", "Client", "read_kubeconfig", "write_kubeconfig")

CONTEXT = "grovekeeper"


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach an API server. `ca` is None for plain HTTP."""

    server: str
    ca: Path | None
    token: str


class ApiError(Exception):
    """The API server answered with a status of 400 or above."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Client:
    """Reads a kubeconfig as `write_kubeconfig` makes it. Not safe for use from several threads.

    A lost connection raises OSError or http.client.HTTPException; the next request opens a new one.
    """

    def __init__(self, kubeconfig: Path, *, timeout_s: float = 10.0) -> None:
        access = read_kubeconfig(kubeconfig)
        self._token = access.token
        server = urlsplit(access.server)
        host, port = server.hostname or "", server.port
        if server.scheme == "https":
            context = ssl.create_default_context(cafile=access.ca)
            self._connection = http.client.HTTPSConnection(host, port, context=context, timeout=timeout_s)
        else:
            self._connection = http.client.HTTPConnection(host, port, timeout=timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def raw(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> tuple[int, bytes]:
        """Status and body of one request; `body` is sent as JSON."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type, "Accept": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        try:
            self._connection.request(method, path, body=data, headers=headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise

    def request(self, method: str, path: str, body: object = None, content_type: str = "application/json") -> dict[str, Any]:
        """The decoded object; raises ApiError for a status of 400 or above."""
        status, data = self.raw(method, path, body, content_type)
        if status >= 400:
            raise ApiError(status, data.decode(errors="replace")[:2000])
        return json.loads(data)


def read_kubeconfig(path: Path) -> Access:
    """The first cluster and user of a kubeconfig that `write_kubeconfig` made."""
    config = yaml.safe_load(path.read_text())
    cluster = config["clusters"][0]["cluster"]
    ca = cluster.get("certificate-authority")
    return Access(str(cluster["server"]), Path(ca) if ca else None, str(config["users"][0]["user"]["token"]))


def write_kubeconfig(path: Path, access: Access) -> None:
    """One cluster, user and context named `grovekeeper`; readable by the owner only."""
    cluster = {"server": access.server, **({"certificate-authority": str(access.ca.resolve())} if access.ca else {})}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CONTEXT, "cluster": cluster}],
        "users": [{"name": CONTEXT, "user": {"token": access.token}}],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": "default"}}],
        "current-context": CONTEXT,
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
