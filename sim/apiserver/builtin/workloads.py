"""Workloads: deployments, replica sets, stateful sets, daemon sets, replication controllers, revisions, pod templates."""

from collections.abc import Mapping
from typing import Any, Final

from api.fielderrors import FieldError, forbidden, invalid, not_supported, required
from sim.apiserver.builtin.base import Builtin, Generational
from sim.apiserver.builtin.names import subdomain_name
from sim.apiserver.builtin.numbers import int_or_percent_errors, negative_errors
from sim.apiserver.builtin.parts import items, part
from sim.apiserver.builtin.pod_defaults import default_pod_spec
from sim.apiserver.builtin.pod_validation import template_errors
from sim.apiserver.builtin.scheduling_validation import label_selector_errors
from sim.apiserver.builtin.volume_defaults import default_claim_spec
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context
from sim.apiserver.selectors import matches, selector_of

__all__ = (
    "ControllerStrategy",
    "DaemonSetStrategy",
    "DeploymentStrategy",
    "PodTemplateStrategy",
    "ReplicaSetStrategy",
    "RevisionStrategy",
    "StatefulSetStrategy",
    "Workload",
    "default_template",
)

_IMMUTABLE = "field is immutable"
_NO_MATCH = "`selector` does not match template `labels`"
_SET_FROZEN = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_SET_FREE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_CLAIM: Final = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def default_template(template: Object) -> Object:
    """A pod template with its defaults."""
    spec = {**part(template, "spec")}
    default_pod_spec(spec)
    return {**template, "metadata": template.get("metadata") or {}, "spec": spec}


class Workload(Generational):
    """What they share. `what`: in messages; `empty_status`: what is printed of a status that nobody wrote."""

    name_check = staticmethod(subdomain_name)
    what = ""
    empty_status: Mapping[str, Any] = {}
    is_selector_fixed = True

    def fill(self, obj: Object) -> None:
        spec: Object = {**(obj.get("spec") or {})}
        obj["spec"] = spec
        spec["template"] = default_template(spec.get("template") or {})
        self.fill_spec(spec)
        if (status := obj.get("status")) is not None:
            obj["status"] = {**self.empty_status, **status}

    def fill_spec(self, spec: Object) -> None:
        """The rest of spec."""
        spec.setdefault("replicas", 1)

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = dict(self.empty_status)

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            obj["spec"] = old["spec"]
        else:
            obj["status"] = old["status"]

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec: Object = obj["spec"]
        out = negative_errors("spec", spec, ("replicas", "minReadySeconds"))
        out += self.selector_errors(spec)
        out += self.strategy_errors(spec)
        return out + self.template_errors(spec)

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        if subresource == "status":
            return _status_errors(part(obj, "status"))
        if obj["spec"] == old["spec"]:
            return []
        out = self.validate_create(ctx, obj)
        if self.is_selector_fixed and obj["spec"].get("selector") != old["spec"].get("selector"):
            out.append(invalid("spec.selector", obj["spec"].get("selector"), _IMMUTABLE))
        return out

    def selector_errors(self, spec: Object) -> list[FieldError]:
        """Of the selector, and whether it selects the template."""
        selector, labels = spec.get("selector"), part(part(spec, "template"), "metadata").get("labels")
        out: list[FieldError] = []
        if selector is None:
            return [required("spec.selector"), invalid("spec.template.metadata.labels", labels, _NO_MATCH)]
        bad = list(label_selector_errors("spec.selector", selector))
        out += bad
        if not selector.get("matchLabels") and not selector.get("matchExpressions"):
            out.append(invalid("spec.selector", selector, f"empty selector is invalid for {self.what}"))
        elif bad:
            out.append(invalid("spec.selector", selector, "invalid label selector"))
        elif not matches(selector_of(selector), labels or {}):
            out.append(invalid("spec.template.metadata.labels", labels, _NO_MATCH))
        return out

    def strategy_errors(self, spec: Object) -> list[FieldError]:
        """Of how updates are rolled out."""
        return []

    def template_errors(self, spec: Object) -> list[FieldError]:
        """Of the template: pods of workloads are restarted for ever."""
        template: Object = spec["template"]
        out = template_errors("spec.template", template)
        policy = template["spec"]["restartPolicy"]
        if policy != "Always" and part(template, "spec").get("containers"):
            out = [e for e in out if e.path != "spec.template.spec.restartPolicy"]
            out.append(not_supported("spec.template.spec.restartPolicy", policy, ("Always",)))
        if template["spec"].get("activeDeadlineSeconds") is not None:
            out.append(
                forbidden("spec.template.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {self._pods_of()} is not Supported")
            )
        return out

    def _pods_of(self) -> str:
        return {"statefulset": "StatefulSet", "daemonset": "DaemonSet"}.get(self.what, "ReplicaSet")


class DeploymentStrategy(Workload):
    """Deployments."""

    what = "deployment"

    def fill_spec(self, spec: Object) -> None:
        super().fill_spec(spec)
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        strategy: Object = {**(spec.get("strategy") or {})}
        spec["strategy"] = strategy
        strategy["type"] = strategy.get("type") or "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            strategy["rollingUpdate"] = {"maxUnavailable": "25%", "maxSurge": "25%", **part(strategy, "rollingUpdate")}

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        super().prepare_update(ctx, obj, old, subresource)
        if subresource == "status":
            metadata: Object = obj["metadata"]
            metadata.pop("labels", None)
            if "labels" in old["metadata"]:
                metadata["labels"] = old["metadata"]["labels"]
        if subresource == "status" and (conditions := items(part(obj, "status"), "conditions")):
            filled = [{"lastUpdateTime": None, "lastTransitionTime": None, **c} for c in conditions]
            obj["status"] = {**obj["status"], "conditions": filled}

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec: Object = obj["spec"]
        out = negative_errors("spec", spec, ("replicas",)) + self.selector_errors(spec) + self.template_errors(spec)
        out += self.strategy_errors(spec)
        return out + negative_errors("spec", spec, ("minReadySeconds", "revisionHistoryLimit"))

    def strategy_errors(self, spec: Object) -> list[FieldError]:
        strategy: Object = spec["strategy"]
        kind, rolling = strategy["type"], strategy.get("rollingUpdate")
        if kind == "Recreate":
            text = "may not be specified when strategy `type` is 'Recreate'"
            return [forbidden("spec.strategy.rollingUpdate", text)] if rolling else []
        if kind != "RollingUpdate":
            return [not_supported("spec.strategy", {"Type": kind, "RollingUpdate": rolling}, ("Recreate", "RollingUpdate"))]
        path = "spec.strategy.rollingUpdate"
        assert rolling is not None  # noqa: S101 - a default
        out = [e for key in ("maxUnavailable", "maxSurge") for e in int_or_percent_errors(f"{path}.{key}", rolling[key])]
        if not out and rolling["maxUnavailable"] in (0, "0%") and rolling["maxSurge"] in (0, "0%"):
            out.append(invalid(f"{path}.maxUnavailable", rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0"))
        return out


class ReplicaSetStrategy(Workload):
    """Replica sets."""

    what = "replicaset"
    empty_status: Mapping[str, Any] = {"replicas": 0}

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        return {"status.replicas": str(part(obj, "status").get("replicas", 0))}


class StatefulSetStrategy(Workload):
    """Stateful sets."""

    what = "statefulset"
    empty_status: Mapping[str, Any] = {"replicas": 0, "availableReplicas": 0}
    is_selector_fixed = False

    def fill_spec(self, spec: Object) -> None:
        super().fill_spec(spec)
        spec.setdefault("serviceName", "")
        spec.setdefault("revisionHistoryLimit", 10)
        spec["podManagementPolicy"] = spec.get("podManagementPolicy") or "OrderedReady"
        strategy: Object = {**(spec.get("updateStrategy") or {})}
        spec["updateStrategy"] = strategy
        strategy["type"] = strategy.get("type") or "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            strategy["rollingUpdate"] = {"partition": 0, **part(strategy, "rollingUpdate")}
        retention = part(spec, "persistentVolumeClaimRetentionPolicy")
        spec["persistentVolumeClaimRetentionPolicy"] = {"whenDeleted": "Retain", "whenScaled": "Retain", **retention}
        if claims := items(spec, "volumeClaimTemplates"):
            spec["volumeClaimTemplates"] = [
                {**_CLAIM, **c, "spec": default_claim_spec(part(c, "spec")), "status": {"phase": "Pending"}} for c in claims
            ]

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec: Object = obj["spec"]
        return self.strategy_errors(spec) or super().validate_create(ctx, obj)

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        out = super().validate_update(ctx, obj, old, subresource)
        fixed = [{k: v for k, v in o["spec"].items() if k not in _SET_FREE} for o in (obj, old)]
        return out if subresource == "status" or fixed[0] == fixed[1] else [*out, forbidden("spec", _SET_FROZEN)]

    def strategy_errors(self, spec: Object) -> list[FieldError]:
        out: list[FieldError] = []
        policy, strategy = spec["podManagementPolicy"], spec["updateStrategy"]
        if policy not in ("OrderedReady", "Parallel"):
            out.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
        if strategy["type"] not in ("RollingUpdate", "OnDelete"):
            shown = {"Type": strategy["type"], "RollingUpdate": strategy.get("rollingUpdate")}
            out.append(invalid("spec.updateStrategy", shown, "must be 'RollingUpdate' or 'OnDelete'"))
        return out


class DaemonSetStrategy(Workload):
    """Daemon sets; an annotation counts changes of their template."""

    what = "daemonset"
    empty_status: Mapping[str, Any] = {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }

    def fill_spec(self, spec: Object) -> None:
        spec.setdefault("revisionHistoryLimit", 10)
        strategy: Object = {**(spec.get("updateStrategy") or {})}
        spec["updateStrategy"] = strategy
        strategy["type"] = strategy.get("type") or "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            strategy["rollingUpdate"] = {"maxUnavailable": 1, "maxSurge": 0, **part(strategy, "rollingUpdate")}

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        super().prepare_create(ctx, obj)
        metadata = obj["metadata"]
        metadata["annotations"] = {**part(metadata, "annotations"), _TEMPLATE_GENERATION: "1"}

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        super().prepare_update(ctx, obj, old, subresource)
        count = int(part(old["metadata"], "annotations").get(_TEMPLATE_GENERATION, "1"))
        if obj["spec"]["template"] != old["spec"]["template"]:
            count += 1
        metadata = obj["metadata"]
        metadata["annotations"] = {**part(metadata, "annotations"), _TEMPLATE_GENERATION: str(count)}

    def selector_errors(self, spec: Object) -> list[FieldError]:
        out = super().selector_errors(spec)
        return out[1:] if spec.get("selector") is None else out


class ControllerStrategy(Workload):
    """Replication controllers, whose selector is a plain map that comes from the template where it is absent."""

    empty_status: Mapping[str, Any] = {"replicas": 0}
    is_selector_fixed = False
    orphans = True

    def fill(self, obj: Object) -> None:
        spec: Object = {**(obj.get("spec") or {})}
        obj["spec"] = spec
        spec.setdefault("replicas", 1)
        if not (template := spec.get("template")):
            return
        spec["template"] = default_template(template)
        labels = part(part(template, "metadata"), "labels")
        if labels:
            spec["selector"] = spec.get("selector") or labels
            if not obj["metadata"].get("labels"):
                obj["metadata"]["labels"] = dict(labels)
        if (status := obj.get("status")) is not None:
            obj["status"] = {"replicas": 0, **status}

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec: Object = obj["spec"]
        out = negative_errors("spec", spec, ("replicas", "minReadySeconds"))
        selector, template = part(spec, "selector"), spec.get("template")
        if not selector:
            out.append(required("spec.selector"))
        if not template:
            return [*out, required("spec.template")]
        labels = part(part(template, "metadata"), "labels")
        if any(labels.get(k) != v for k, v in selector.items()):
            out.append(invalid("spec.template.metadata.labels", labels, _NO_MATCH))
        return out + self.template_errors(spec)

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        return {"status.replicas": str(part(obj, "status").get("replicas", 0))}


class PodTemplateStrategy(Generational):
    """Pod templates."""

    def fill(self, obj: Object) -> None:
        obj["template"] = default_template(obj.get("template") or {})

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        return template_errors("template", obj["template"])


class RevisionStrategy(Builtin):
    """Controller revisions, whose data never change."""

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        out = negative_errors("", obj, ("revision",))
        return out if obj.get("data") is not None else [*out, required("data", "data is mandatory")]

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        out = [] if obj.get("data") == old.get("data") else [invalid("data", obj.get("data"), _IMMUTABLE)]
        return out + negative_errors("", obj, ("revision",))


def _status_errors(status: Object) -> list[FieldError]:
    counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas", "fullyLabeledReplicas")
    out = negative_errors("status", status, counts)
    total = status.get("replicas", 0)
    for key in ("updatedReplicas", "readyReplicas", "availableReplicas"):
        if status.get(key, 0) > total:
            out.append(invalid(f"status.{key}", status.get(key, 0), "cannot be greater than status.replicas"))
    return out
