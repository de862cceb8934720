"""Requests that the server's own controllers make, the same way as any client."""

import msgspec

from sim.apiserver.objects import Object
from sim.apiserver.requests import Answer, Handle, Request, User
from sim.apiserver.resources import ObjectKey, Resource

__all__ = ("Client", "path_of")


def path_of(resource: Resource, key: ObjectKey, subresource: str = "") -> str:
    """The path of an object in the version in which it is stored."""
    root = f"/apis/{resource.group}/{resource.storage}" if resource.group else f"/api/{resource.storage}"
    parts = [root]
    if key.namespace:
        parts += ["namespaces", key.namespace]
    return "/".join([*parts, resource.plural, *(part for part in (key.name, subresource) if part)])


class Client:
    """Speaks to a server in the same process as `user`."""

    def __init__(self, handle: Handle, user: str) -> None:
        self._handle = handle
        self._user = User(user, ("system:serviceaccounts", "system:authenticated"))
        self._agent = f"kube-controller-manager/{user}"

    async def send(self, method: str, path: str, body: Object | None = None, content_type: str = "application/json") -> tuple[int, Object]:
        """Status and decoded answer."""
        data = b"" if body is None else msgspec.json.encode(body)
        request = Request(method, path, {}, data, content_type, "application/json", self._agent, self._user)
        answer = await self._handle(request)
        if not isinstance(answer, Answer):
            raise TypeError(f"{path} answered with a stream")
        return answer.status, msgspec.json.decode(answer.body)

    async def merge(self, path: str, patch: Object) -> int:
        """Sends a merge patch."""
        return (await self.send("PATCH", path, patch, "application/merge-patch+json"))[0]
