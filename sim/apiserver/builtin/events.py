"""Events, of the core group and of events.k8s.io: the same objects in two forms."""

from collections.abc import Mapping
from typing import Final

from api.fielderrors import FieldError, invalid, required
from sim.apiserver.builtin.base import Builtin
from sim.apiserver.builtin.names import subdomain_name
from sim.apiserver.builtin.parts import part
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context

__all__ = ("EventStrategy", "NewEventStrategy")

_NEW: Final = "events.k8s.io/v1"
_RENAMED: Final = (
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
)
_CORE_ONLY: Final[Mapping[str, object]] = {"reportingComponent": "", "reportingInstance": ""}
_INVOLVED: Final = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


class EventStrategy(Builtin):
    """Events. Stored in the form of the core group."""

    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        if obj.get("apiVersion") == _NEW:
            return
        obj["involvedObject"] = obj.get("involvedObject") or {}
        obj["source"] = obj.get("source") or {}
        for key in ("firstTimestamp", "lastTimestamp", "eventTime"):
            obj.setdefault(key, None)
        for key, empty in _CORE_ONLY.items():
            obj.setdefault(key, empty)

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        namespace = part(obj, "involvedObject").get("namespace", "")
        wanted = obj["metadata"].get("namespace", "")
        if namespace != wanted and not (not namespace and wanted == "default"):
            return [invalid("involvedObject.namespace", namespace, "does not match event.namespace")]
        return []

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        return self.validate_create(ctx, obj)

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        involved = part(obj, "involvedObject")
        out = {f"involvedObject.{key}": involved.get(key, "") for key in _INVOLVED}
        out["reason"] = obj.get("reason", "")
        out["reportingComponent"] = obj.get("reportingComponent", "")
        out["source"] = part(obj, "source").get("component", "") or obj.get("reportingComponent", "")
        out["type"] = obj.get("type", "")
        return out

    def convert(self, obj: Object, api_version: str) -> Object:
        if obj.get("apiVersion") == api_version:
            return obj
        out = {**obj, "apiVersion": api_version}
        for core, new in _RENAMED:
            old_key, new_key = (core, new) if api_version == _NEW else (new, core)
            if old_key in out:
                out[new_key] = out.pop(old_key)
        if api_version == _NEW:
            for key in ("reportingController", "reportingInstance"):
                if not out.get(key):
                    out.pop(key, None)
        else:
            self.fill(out)
        return out


class NewEventStrategy(EventStrategy):
    """Events that come in through events.k8s.io, which asks for more."""

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        out = super().validate_create(ctx, obj)
        if not obj.get("eventTime"):
            out.append(required("eventTime"))
        if obj.get("type") not in ("Normal", "Warning"):
            out.append(invalid("type", obj.get("type", ""), f"has invalid value: {obj.get('type', '')}"))
        return out
