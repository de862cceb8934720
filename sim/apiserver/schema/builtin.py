"""Schemas of the kinds that are built in, read from the OpenAPI documents beside this package when first asked for."""

from functools import cache
from pathlib import Path

import msgspec

from sim.apiserver.objects import Object
from sim.apiserver.schema.model import Schema
from sim.apiserver.schema.openapi import compile_openapi

__all__ = ("KUBERNETES", "META", "group_versions", "object_meta", "raw_document", "schema_of")

KUBERNETES = "v1.36.3"
"""Version of Kubernetes that the schemas are those of."""
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
"""Prefix of names of schemas that every document has."""

_FOLDER = Path(__file__).parents[1] / "openapi"
_KINDS = "x-kubernetes-group-version-kind"


@cache
def group_versions() -> tuple[str, ...]:
    """All group versions with a document: "v1", "apps/v1"..., sorted."""
    return tuple(sorted(file.stem.replace("_", "/") for file in _FOLDER.glob("*.json")))


@cache
def raw_document(group: str, version: str) -> dict[str, Object]:
    """components.schemas of the document of a group version, without descriptions; not to be changed. KeyError if there is none."""
    file = _FOLDER / (f"{group}_{version}.json" if group else f"{version}.json")
    if not file.is_file():
        raise KeyError(f"{group}/{version}")
    return msgspec.json.decode(file.read_bytes())["schemas"]


@cache
def schema_of(group: str, version: str, kind: str) -> Schema:
    """The schema of a whole object of a built-in kind, also of DeleteOptions and the like, which every group has. KeyError if unknown."""
    return compile_openapi(_names(group, version)[kind], raw_document(group, version), _compiled(group, version))


@cache
def object_meta() -> Schema:
    """The schema of `metadata`, the same for all kinds."""
    return compile_openapi(f"{META}ObjectMeta", raw_document("", "v1"), _compiled("", "v1"))


@cache
def _compiled(group: str, version: str) -> dict[str, Schema]:
    """Grows while schemas of the group are asked for."""
    del group, version
    return {}


@cache
def _names(group: str, version: str) -> dict[str, str]:
    """Kind -> name of its schema. Documents have kinds of other groups too, such as Scale; those of the group itself come first."""
    out: dict[str, str] = {}
    for name, node in raw_document(group, version).items():
        for known in node.get(_KINDS, ()):
            if (known["group"], known["version"]) == (group, version):
                out[known["kind"]] = name
            else:
                out.setdefault(known["kind"], name)
    return out
