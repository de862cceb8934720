"""The cluster as tests see it: objects, logs and programs inside pods through kr8s, and kubectl as a person would use it."""

import asyncio
import contextlib
import json
import os
import warnings
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

import kr8s.asyncio
from kr8s import ServerError
from kr8s.asyncio.objects import Pod as Kr8sPod

from api.kinds import Kind

__all__ = ("CRD", "DEPLOYMENT", "NAMESPACES", "REPLICA_SETS", "Kubectl", "Live", "Manifest", "connect", "run")

Manifest = dict[str, Any]

CRD = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
DEPLOYMENT = Kind("apps", "v1", "Deployment", "deployments")
NAMESPACES = Kind("", "v1", "Namespace", "namespaces", namespaced=False)
REPLICA_SETS = Kind("apps", "v1", "ReplicaSet", "replicasets")
KUBECTL_LIMIT_S = 200.0


@contextlib.asynccontextmanager
async def connect(kubeconfig: Path) -> AsyncGenerator["Live"]:
    """A client for the running event loop. The kubeconfig has to name files: see e2e.kind.access."""
    with warnings.catch_warnings():
        # kr8s has not been released for this Kubernetes yet; nothing that is used of it differs.
        warnings.filterwarnings("ignore", "Kubernetes version .* is not supported", UserWarning)
        api = await kr8s.asyncio.api(kubeconfig=str(kubeconfig))
    try:
        yield Live(api)
    finally:
        # kr8s never closes its connections.
        if api._session is not None:
            await api._session.aclose()


class Live:
    """Reads and small writes. Raises what `waiting.UNREACHABLE` lists when the API server is away.

    Plain objects are asked for by path, because kr8s would remember for six hours which kinds there are, and CRDs come and go here.
    """

    def __init__(self, api: kr8s.asyncio.Api) -> None:
        self._api = api

    async def objects(self, kind: Kind, namespace: str = "", selector: str = "") -> list[Manifest]:
        """All objects of a kind in a namespace ("": all of them). A kind that the server does not know has none."""
        params = {"labelSelector": selector} if selector else {}
        try:
            return (await self._get(kind, namespace, "", params))["items"]
        except ServerError as error:
            if _code(error) == HTTPStatus.NOT_FOUND:
                return []
            raise

    async def object(self, kind: Kind, name: str, namespace: str = "") -> Manifest | None:
        """One object, None when there is none."""
        try:
            return await self._get(kind, namespace, name, {})
        except ServerError as error:
            if _code(error) == HTTPStatus.NOT_FOUND:
                return None
            raise

    async def run_in(self, pod: Manifest, *argv: str) -> str:
        """Standard output of a program in the first container of a running pod."""
        done = await Kr8sPod(pod, api=self._api).exec(list(argv), timeout=30)
        return done.stdout.decode()

    async def logs(self, pod: Manifest, *, previous: bool = False) -> str:
        """The log of the first container; of its previous life, if asked for. "" when there is none (yet)."""
        wanted = Kr8sPod(pod, api=self._api)
        try:
            return "\n".join([line async for line in wanted.logs(previous=previous, timeout=30)])
        except ServerError as error:
            if _code(error) in (HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND):
                return ""
            raise

    async def _get(self, kind: Kind, namespace: str, name: str, params: Mapping[str, str]) -> Manifest:
        url = f"{kind.plural}/{name}" if name else kind.plural
        async with self._api.call_api("GET", version=kind.api_version, namespace=namespace or None, url=url, params=dict(params)) as answer:
            return answer.json()


def _code(error: ServerError) -> int:
    return error.response.status_code if error.response is not None else 0


@dataclass(frozen=True, slots=True)
class Kubectl:
    """Runs kubectl with the kubeconfig of the cluster."""

    program: Path
    kubeconfig: Path
    cache: Path

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        """Standard output; AssertionError with all that it said when it fails."""
        code, said = await self.outcome(*arguments, stdin=stdin)
        assert code == 0, f"kubectl {' '.join(arguments)} exited with {code}: {said}"
        return said

    async def outcome(self, *arguments: str, stdin: str = "") -> tuple[int, str]:
        """Exit code, and standard output (after success) or error (after failure)."""
        return await run(str(self.program), *arguments, environment=self.environment, stdin=stdin)

    async def apply(self, *manifests: Manifest, namespace: str = "") -> str:
        """kubectl apply, server-side."""
        where = ("-n", namespace) if namespace else ()
        text = "\n---\n".join(json.dumps(m) for m in manifests)
        return await self("apply", "--server-side", "--force-conflicts", *where, "-f", "-", stdin=text)

    @property
    def environment(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.cache)}


async def run(
    *argv: str, environment: Mapping[str, str] | None = None, stdin: str = "", timeout_s: float = KUBECTL_LIMIT_S
) -> tuple[int, str]:
    """Exit code of a program, and what it wrote: standard output after success, both streams after failure."""
    child = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(environment or {})},
    )
    try:
        out, error = await asyncio.wait_for(child.communicate(stdin.encode()), timeout_s)
    except TimeoutError:
        child.kill()
        await child.wait()
        raise
    return child.returncode or 0, (out if child.returncode == 0 else out + error).decode(errors="replace")
