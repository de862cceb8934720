"""CustomResourceDefinitions as data and as YAML files."""

from pathlib import Path
from typing import Any

import yaml

from api.custom import Resource
from api.registry import MODELS, crd_name
from hack.codegen.facts import CATEGORY, FACTS, Column
from hack.codegen.files import ROOT, stale_files
from hack.codegen.structural import structural_schema

__all__ = ("FOLDER", "crd", "files", "stale")

FOLDER = ROOT / "manifests" / "crds"
HEADER = "# Generated from the models in api/ by `python -m hack.codegen`. Too big for client-side apply: use --server-side.\n"


def crd(model: type[Resource]) -> dict[str, Any]:
    """The CustomResourceDefinition of a model."""
    kind = model.KIND
    facts = FACTS[kind.kind]
    subresources: dict[str, Any] = {"status": {}}
    if facts.scale is not None:
        subresources["scale"] = {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": facts.scale.selector,
        }
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_column(c) for c in (*facts.columns, Column("Age", ".metadata.creationTimestamp", "date"))],
        "schema": {"openAPIV3Schema": structural_schema(model)},
        "subresources": subresources,
    }
    names = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
        "shortNames": [facts.short_name],
        "categories": [CATEGORY],
    }
    scope = "Namespaced" if kind.namespaced else "Cluster"
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": crd_name(model)},
        "spec": {"group": kind.group, "names": names, "scope": scope, "versions": [version]},
    }


def _column(column: Column) -> dict[str, Any]:
    out: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return {**out, "priority": 1} if column.wide else out


class _Dumper(yaml.SafeDumper):
    """Writes shared parts out in full: anchors would make the files unreadable."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def files() -> dict[Path, str]:
    """Every generated file and what it should contain."""
    return {FOLDER / f"{m.KIND.group}_{m.KIND.plural}.yaml": HEADER + yaml.dump(crd(m), Dumper=_Dumper, width=140) for m in MODELS}


def stale() -> list[Path]:
    """Files that are missing, differ, or should not be there."""
    return stale_files(FOLDER, "*.yaml", files())
