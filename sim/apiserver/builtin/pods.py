"""Pods."""

from collections.abc import Mapping

from api.fielderrors import FieldError, forbidden, invalid
from sim.apiserver.builtin.base import Generational
from sim.apiserver.builtin.names import bad_subdomain, subdomain_name
from sim.apiserver.builtin.pod_admission import admit_create, admit_update
from sim.apiserver.builtin.pod_defaults import default_pod
from sim.apiserver.builtin.pod_status import completed_status, initial_status, qos_class
from sim.apiserver.builtin.pod_updates import ephemeral_errors, resize_errors, spec_update_errors
from sim.apiserver.builtin.pod_validation import pod_spec_errors
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context

__all__ = ("PodStrategy",)


class PodStrategy(Generational):
    """Pods: defaults, admission plugins, immutability, grace."""

    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        default_pod(obj)
        if status := obj.get("status"):
            obj["status"] = completed_status(status)

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        spec: Object = obj.setdefault("spec", {})
        if not spec.get("containers") and "dnsPolicy" not in spec:
            default_pod(obj)
            spec = obj["spec"]
        if spec["terminationGracePeriodSeconds"] < 0:
            spec["terminationGracePeriodSeconds"] = 1
        admit_create(ctx, obj["metadata"].get("name", ""), spec)
        obj["status"] = initial_status(spec, ctx.now)

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            obj["spec"] = old["spec"]
            status: Object = obj.setdefault("status", {})
            status.setdefault("qosClass", old["status"].get("qosClass"))
            owners = old["metadata"].get("ownerReferences")
            obj["metadata"].pop("ownerReferences", None)
            if owners:
                obj["metadata"]["ownerReferences"] = owners
            return
        if subresource == "ephemeralcontainers":
            obj["spec"] = {**old["spec"], "ephemeralContainers": obj["spec"].get("ephemeralContainers") or []}
            if not obj["spec"]["ephemeralContainers"]:
                del obj["spec"]["ephemeralContainers"]
        elif subresource != "resize":
            admit_update(obj["spec"], old["spec"])
        obj["status"] = old["status"]

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec: Object = obj["spec"]
        out = pod_spec_errors("spec", spec)
        if spec.get("ephemeralContainers"):
            out.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
        if spec.get("schedulingGates") and spec.get("nodeName"):
            out.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
        return out

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        if subresource == "status":
            return _status_errors(obj["status"], old["status"])
        if obj["spec"] == old["spec"]:
            return []
        # The server checks the spec twice on updates, and so names each cause twice.
        out = pod_spec_errors("spec", obj["spec"]) * 2
        if subresource == "ephemeralcontainers":
            return out + ephemeral_errors(obj["spec"], old["spec"])
        if subresource == "resize":
            out += resize_errors(obj["spec"], old["spec"])
            was, now = qos_class(old["spec"]), qos_class(obj["spec"])
            return out if was == now else [*out, invalid("spec", was, "Pod QOS Class may not change as a result of resizing")]
        return out + spec_update_errors(obj["spec"], old["spec"])

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        spec: Object = obj["spec"]
        status: Object = obj["status"]
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": status.get("podIP", ""),
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }

    def is_graceful(self) -> bool:
        return True

    def grace_s(self, ctx: Context, obj: Object, wanted: int | None) -> int:
        spec: Object = obj["spec"]
        if not spec.get("nodeName") or obj["status"].get("phase") in ("Succeeded", "Failed"):
            return 0
        seconds: int = spec.get("terminationGracePeriodSeconds", 30) if wanted is None else wanted
        return 1 if seconds < 0 else seconds


def _status_errors(status: Object, old: Object) -> list[FieldError]:
    out: list[FieldError] = []
    if name := status.get("nominatedNodeName"):
        out += bad_subdomain("status.nominatedNodeName", name)
    if status.get("qosClass") != old.get("qosClass"):
        out.append(invalid("status.qosClass", status.get("qosClass"), "field is immutable"))
    return out
