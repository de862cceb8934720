"""Behaviour of custom resources, and of their definitions."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

from collections.abc import Mapping
from typing import Any

from api.fielderrors import FieldError
from sim.apiserver.custom.replicas import scale_errors
from sim.apiserver.custom.validation import validate_crd
from sim.apiserver.objects import Object, dig
from sim.apiserver.resources import Context, Strategy, Version
from sim.apiserver.schema.check import validate, validate_status
from sim.apiserver.schema.fields import drop_nulls
from sim.apiserver.schema.model import ABSENT, Schema

__all__ = ("CustomStrategy", "DefinitionStrategy")


class CustomStrategy(Strategy):
    """Validates objects against the schema of the version they are in. `versions`: all of the resource."""

    def __init__(self, group: str, versions: tuple[Version, ...]) -> None:
        self._versions = {f"{group}/{v.name}": v for v in versions}

    def _schema(self, obj: Object) -> Schema | None:
        version = self._versions.get(obj.get("apiVersion", ""))
        return version.schema if version is not None else None

    def default(self, obj: Object) -> None:
        """Nulls that are not allowed are taken for missing, once defaults are in."""
        schema = self._schema(obj)
        if schema is not None:
            drop_nulls(obj, schema)

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        """Status is written by itself where it is a subresource."""
        version = self._versions.get(obj.get("apiVersion", ""))
        if version is not None and version.has_status:
            obj.pop("status", None)

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        version = self._versions.get(obj.get("apiVersion", ""))
        return [] if version is None else [*validate(obj, version.schema), *scale_errors(obj, version.scale)]

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        version = self._versions.get(obj.get("apiVersion", ""))
        if version is None:
            return []
        before: Any = old if old.get("apiVersion") == obj.get("apiVersion") else ABSENT
        if subresource == "status":
            return [*validate_status(obj, version.schema, before), *scale_errors(obj, version.scale, status_only=True)]
        return [*validate(obj, version.schema, before), *scale_errors(obj, version.scale)]

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        version = self._versions.get(obj.get("apiVersion", ""))
        paths = version.selectable if version is not None else ()
        return {path.removeprefix("."): _text(dig(obj, *path.removeprefix(".").split("."))) for path in paths}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


class DefinitionStrategy(Strategy):
    """CustomResourceDefinitions: names and conversion have defaults, status is the server's own."""

    def default(self, obj: Object) -> None:
        spec: Object | None = dig(obj, "spec")
        if spec is None:
            return
        spec.setdefault("conversion", {"strategy": "None"})
        names: Object | None = dig(spec, "names")
        if names is not None and names.get("kind"):
            names["singular"] = names.get("singular") or str(names["kind"]).lower()
            names["listKind"] = names.get("listKind") or f"{names['kind']}List"
        service = dig(spec, "conversion", "webhook", "clientConfig", "service")
        if isinstance(service, dict):
            service.setdefault("port", 443)

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {"acceptedNames": {"kind": "", "plural": ""}, "conditions": None, "storedVersions": _stored(obj, [])}

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if not subresource:
            status: Object = dict(old.get("status") or {})
            obj["status"] = status
            status["storedVersions"] = _stored(obj, status.get("storedVersions") or [])

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        return validate_crd(obj, None)

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        return [] if subresource else validate_crd(obj, old)


def _stored(crd: Object, before: list[str]) -> list[str]:
    versions: list[Object] = dig(crd, "spec", "versions") or []
    storage = next((v["name"] for v in versions if v.get("storage")), None)
    return before if storage is None or storage in before else [*before, storage]
