"""Fetches the schemas of built-in kinds for the embedded API server: `python -m hack.codegen.refresh_server --kubeconfig FILE`.

Everything that the OpenAPI v3 document of a served group version holds is kept but descriptions. One schema per line, so that a refresh
shows up as a readable diff.
"""

import argparse
import json
from pathlib import Path

from hack.codegen.embedded import Schema
from hack.kube.client import Client

__all__ = ("GROUP_VERSIONS", "main", "rendered", "undescribed")

FOLDER = Path(__file__).parents[2] / "sim" / "apiserver" / "openapi"
GROUP_VERSIONS = (
    "v1",
    "admissionregistration.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apps/v1",
    "authentication.k8s.io/v1",
    "authorization.k8s.io/v1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "events.k8s.io/v1",
    "networking.k8s.io/v1",
    "node.k8s.io/v1",
    "policy/v1",
    "rbac.authorization.k8s.io/v1",
    "resource.k8s.io/v1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1",
)
# Named for every group of the server that answered, and the same for all.
SHARED = ("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent")
KINDS = "x-kubernetes-group-version-kind"


def undescribed(node: Schema) -> Schema:
    """A copy of a schema without the descriptions; a property may be called description."""
    out: Schema = {}
    for key, value in node.items():
        if key == "properties":
            out[key] = {name: undescribed(schema) for name, schema in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = undescribed(value)
        elif key in ("allOf", "oneOf", "anyOf"):
            out[key] = [undescribed(branch) for branch in value]
        elif key != "description":
            out[key] = value
    return out


def rendered(schemas: dict[str, Schema], group_version: str, kubernetes: str) -> str:
    """The stored form of the schemas of one group version."""
    group, _, version = group_version.rpartition("/")
    for name in SHARED:
        if name in schemas:
            schemas[name][KINDS] = [k for k in schemas[name][KINDS] if k["version"] == version and k["group"] == group]
    lines = [f"{json.dumps(name)}:{json.dumps(schemas[name], sort_keys=True, separators=(',', ':'))}" for name in sorted(schemas)]
    return f'{{"kubernetes":{json.dumps(kubernetes)},"schemas":{{\n' + ",\n".join(lines) + "\n}}\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="hack.codegen.refresh_server", description=__doc__)
    parser.add_argument("--kubeconfig", required=True, type=Path, help="kubeconfig of the API server")
    args = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    with Client(args.kubeconfig, timeout_s=60) as client:
        kubernetes = client.request("GET", "/version")["gitVersion"]
        for group_version in GROUP_VERSIONS:
            path = f"apis/{group_version}" if "/" in group_version else f"api/{group_version}"
            document = client.request("GET", f"/openapi/v3/{path}")
            schemas = {name: undescribed(schema) for name, schema in document["components"]["schemas"].items()}
            file = FOLDER / f"{group_version.replace('/', '_')}.json"
            file.write_text(rendered(schemas, group_version, kubernetes))
            print(f"{file.name}: {len(schemas)} schemas of {kubernetes}")


if __name__ == "__main__":
    main()
