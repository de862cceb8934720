"""The definitions of custom resources that cases use."""

from pathlib import Path
from typing import Any

import yaml

__all__ = ("WIDGET_CRD", "manifest_crd")

MANIFESTS = Path(__file__).parents[2] / "manifests" / "crds"

_SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 0},
        "colour": {"type": "string", "enum": ["red", "green", "blue"], "default": "red"},
        "note": {"type": "string", "maxLength": 20},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
WIDGET_CRD: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.contract.example.com"},
    "spec": {
        "group": "contract.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList", "shortNames": ["wdg"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "selectableFields": [{"jsonPath": ".spec.colour"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": _SPEC,
                            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                        },
                    },
                },
            }
        ],
    },
}


def manifest_crd(name: str) -> dict[str, Any]:
    """A definition of this project, such as `grove.io_podcliques`."""
    return yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text())
