"""Creates objects of manifests in an embedded server, with what it says about each that it refuses."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import anyio.lowlevel
import msgspec

from api.plan import Manifest
from sim.apiserver.objects import mapping, maps
from sim.apiserver.requests import ADMIN, Answer, Request
from sim.apiserver.server import ApiServer

__all__ = ("Loaded", "create")

DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What became of one manifest: `errors` is empty when it was created. `subject`: kind and name."""

    subject: str
    errors: Sequence[str] = ()


async def create(server: ApiServer, manifests: Iterable[Manifest]) -> list[Loaded]:
    """Creates the objects in order, in namespace default where they name none; a namespace that is missing is made first."""
    out: list[Loaded] = []
    for manifest in manifests:
        out.append(await _create(server, manifest))
        await anyio.lowlevel.checkpoint()  # a large definition takes a while; signals get their turn between two
    return out


async def _create(server: ApiServer, manifest: Manifest) -> Loaded:
    api_version, kind = str(manifest.get("apiVersion")), str(manifest.get("kind"))
    named = mapping(manifest, "metadata")
    name = str(named.get("name") or named.get("generateName") or "")
    found = next((r for r in server.resources if r.kind == kind and any(r.api_version(v.name) == api_version for v in r.versions)), None)
    if found is None:
        return Loaded(f"{kind} {name}", (f"the demo serves no kind {kind} of {api_version}",))
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    subject, path = f"{kind} {name}", f"{root}/{found.plural}"
    if found.is_namespaced:
        namespace = str(named.get("namespace") or DEFAULT_NAMESPACE)
        subject, path = f"{kind} {namespace}/{name}", f"{root}/namespaces/{namespace}/{found.plural}"
        if server.lookup.get("", "namespaces", "", namespace) is None:
            await _post(server, "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    return Loaded(subject, await _post(server, path, manifest))


async def _post(server: ApiServer, path: str, manifest: Manifest) -> Sequence[str]:
    """What is wrong with it."""
    query = {"fieldManager": "grovekeeper-demo", "fieldValidation": "Strict"}
    body = msgspec.json.encode(manifest)
    answer = await server.handle(Request("POST", path, query, body, "application/json", "application/json", "grovekeeper-demo", ADMIN))
    if isinstance(answer, Answer) and answer.status < 300:
        return ()
    status: Manifest = msgspec.json.decode(answer.body) if isinstance(answer, Answer) else {}
    causes = maps(status, "details", "causes")
    if not causes:
        return (str(status.get("message", "refused")),)
    return [f"{c['field']}: {c.get('message')}" if c.get("field") else str(c.get("message")) for c in causes]
