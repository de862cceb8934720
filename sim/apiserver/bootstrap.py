"""What is there in a new cluster before anybody asks for anything."""

from sim.apiserver.care.client import Client
from sim.apiserver.care.namespaces import FIRST_NAMESPACES
from sim.apiserver.objects import Object
from sim.apiserver.server import ApiServer

__all__ = ("bootstrap",)

PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


async def bootstrap(server: ApiServer) -> None:
    """Creates namespaces, the system's priority classes and the service of the API server; what exists stays."""
    client = Client(server.handle, "system:apiserver")
    for name in FIRST_NAMESPACES:
        await _create(client, "/api/v1/namespaces", _object("v1", "Namespace", name))
    for name, value in PRIORITIES.items():
        body = {**_object("scheduling.k8s.io/v1", "PriorityClass", name), "value": value}
        await _create(client, "/apis/scheduling.k8s.io/v1/priorityclasses", body)
    service = _object("v1", "Service", "kubernetes")
    service["metadata"] |= {"namespace": "default", "labels": {"component": "apiserver", "provider": "kubernetes"}}
    service["spec"] = {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]}
    await _create(client, "/api/v1/namespaces/default/services", service)


async def _create(client: Client, path: str, body: Object) -> None:
    status, answer = await client.send("POST", path, body)
    if status not in (201, 409):
        raise RuntimeError(f"{path} {body['metadata']['name']}: {answer.get('message')}")


def _object(api_version: str, kind: str, name: str) -> Object:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
