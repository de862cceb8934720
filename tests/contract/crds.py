"""The definitions of custom resources that cases use."""

from functools import cache
from pathlib import Path

import yaml

from tests.contract.client import Api
from tests.contract.kinds import CLIQUES, CRDS, WIDGETS, Kind, Obj

__all__ = ("WIDGET_CRD", "install", "manifest_crd", "serve")

MANIFESTS = Path(__file__).parents[2] / "manifests" / "crds"

_SPEC: Obj = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 0},
        "colour": {"type": "string", "enum": ["red", "green", "blue"], "default": "red"},
        "note": {"type": "string", "maxLength": 20},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
WIDGET_CRD: Obj = {
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


def manifest_crd(name: str) -> Obj:
    """A definition of this project, such as `grove.io_podcliques`."""
    return yaml.safe_load((MANIFESTS / f"{name}.yaml").read_text())


async def serve(api: Api, kind: Kind) -> Kind:
    """Make sure that a kind is served: built-in ones are, WIDGETS and CLIQUES are installed once per server."""
    if kind is WIDGETS:
        return await install(api, WIDGET_CRD, kind)
    if kind is CLIQUES:
        return await install(api, _clique_crd(), kind)
    return kind


@cache
def _clique_crd() -> Obj:
    return manifest_crd("grove.io_podcliques")


async def install(api: Api, crd: Obj, kind: Kind) -> Kind:
    """Create a definition if it is not there, and wait until its kind is served."""
    if (await api.list(kind, limit=1)).status == 404:
        assert (await api.create(CRDS, crd)).status in (201, 409)
        await api.poll(lambda: _is_served(api, kind))
    return kind


async def _is_served(api: Api, kind: Kind) -> bool:
    return (await api.list(kind, limit=1)).status == 200
