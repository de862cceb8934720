"""Fetches the schemas of embedded Kubernetes types from a running API server: `python -m hack.codegen.refresh_openapi --kubeconfig FILE`.

Stored are only the schemas that can be reached from the types in `embedded.SOURCES`, without descriptions, so that a refresh shows
up as a readable diff.
"""

import argparse
import json
import subprocess
from typing import Any

from hack.codegen.embedded import FOLDER, SOURCES, Schema

__all__ = ("main", "pruned")

# Texts and hints for other tools, of no use in a CRD.
DROPPED = frozenset({"description", "x-kubernetes-patch-merge-key", "x-kubernetes-patch-strategy", "x-kubernetes-unions"})


def pruned(document: dict[str, Any], root: str) -> dict[str, Schema]:
    """The schemas of an OpenAPI v3 document that `root` leads to, itself included, without what no CRD needs."""
    schemas: dict[str, Schema] = document["components"]["schemas"]
    found: dict[str, Schema] = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _cleaned(schemas[name], waiting)
    return found


def _cleaned(node: Schema, references: list[str]) -> Schema:
    """A copy of `node`; names of referenced schemas are appended to `references`. A property may be called like a dropped keyword."""
    if "$ref" in node:
        references.append(node["$ref"].rpartition("/")[2])
    out: Schema = {}
    for key, value in node.items():
        if key == "properties":
            out[key] = {name: _cleaned(schema, references) for name, schema in value.items()}
        elif key in ("items", "additionalProperties"):
            out[key] = _cleaned(value, references)
        elif key in ("allOf", "oneOf", "anyOf"):
            out[key] = [_cleaned(branch, references) for branch in value]
        elif key not in DROPPED:
            out[key] = value
    return out


def _fetch(args: argparse.Namespace, path: str) -> dict[str, Any]:
    command = [args.kubectl, "get", "--raw", path]
    command += [f"--kubeconfig={args.kubeconfig}"] if args.kubeconfig else []
    command += [f"--server={args.server}"] if args.server else []
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(prog="hack.codegen.refresh_openapi", description=__doc__)
    parser.add_argument("--kubeconfig", default="", help="kubeconfig of the API server; kubectl's own choice without it")
    parser.add_argument("--server", default="", help="URL of the API server, instead of that in the kubeconfig")
    parser.add_argument("--kubectl", default="kubectl", help="the kubectl to use")
    args = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    version = _fetch(args, "/version")["gitVersion"]
    for source in SOURCES:
        schemas = pruned(_fetch(args, f"/openapi/v3/{source.path}"), source.schema)
        document = {"kubernetes": version, "schemas": schemas}
        (FOLDER / source.file).write_text(json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n")
        print(f"{source.file}: {len(schemas)} schemas of {version}")


if __name__ == "__main__":
    main()
