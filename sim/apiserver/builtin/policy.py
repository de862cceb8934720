"""Disruption budgets, leases, priority classes."""

from typing import Final

from api.fielderrors import FieldError, forbidden, invalid, not_supported
from sim.apiserver.builtin.base import Builtin, Generational
from sim.apiserver.builtin.names import subdomain_name
from sim.apiserver.builtin.numbers import int_or_percent_errors, negative_errors
from sim.apiserver.builtin.parts import items
from sim.apiserver.builtin.scheduling_validation import label_selector_errors
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context

__all__ = ("BudgetStrategy", "LeaseStrategy", "PriorityStrategy")

_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_SYSTEM: Final = ("system-node-critical", "system-cluster-critical")
_HIGHEST: Final = 1_000_000_000
_POLICIES: Final = ("PreemptLowerPriority", "Never")


class BudgetStrategy(Generational):
    """PodDisruptionBudgets."""

    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        obj["spec"] = obj.get("spec") or {}
        if (status := obj.get("status")) is not None:
            obj["status"] = {**dict.fromkeys(_COUNTS, 0), **status}
            if conditions := items(status, "conditions"):
                filled = [{"lastTransitionTime": None, "reason": "", "message": "", **c} for c in conditions]
                obj["status"]["conditions"] = filled

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = dict.fromkeys(_COUNTS, 0)

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            obj["spec"] = old["spec"]
        else:
            obj["status"] = old["status"]

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec: Object = obj["spec"]
        out: list[FieldError] = []
        low, high, policy = spec.get("minAvailable"), spec.get("maxUnavailable"), spec.get("unhealthyPodEvictionPolicy")
        if low is not None and high is not None:
            shown = {"MinAvailable": low, "Selector": spec.get("selector"), "MaxUnavailable": high, "UnhealthyPodEvictionPolicy": policy}
            out.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
        if low is not None:
            out += int_or_percent_errors("spec.minAvailable", low)
        if high is not None:
            out += int_or_percent_errors("spec.maxUnavailable", high)
        if selector := spec.get("selector"):
            out += label_selector_errors("spec.selector", selector)
        if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
            out.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget")))
        return out

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        if subresource == "status":
            return negative_errors("status", obj["status"], _COUNTS)
        return self.validate_create(ctx, obj)


class LeaseStrategy(Builtin):
    """Leases."""

    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        spec: Object = {**(obj.get("spec") or {})}
        # Behind a feature gate that is off: dropped, as the server does.
        for key in ("preferredHolder", "strategy"):
            spec.pop(key, None)
        obj["spec"] = spec

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec: Object = obj["spec"]
        duration = spec.get("leaseDurationSeconds")
        out = [invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")] if duration is not None and duration <= 0 else []
        return out + negative_errors("spec", spec, ("leaseTransitions",))

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        return self.validate_create(ctx, obj)


class PriorityStrategy(Builtin):
    """PriorityClasses, of which only the description and globalDefault change. Their generation stays 1."""

    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        obj.setdefault("value", 0)
        obj["preemptionPolicy"] = obj.get("preemptionPolicy") or "PreemptLowerPriority"
        if obj.get("globalDefault") is False:
            del obj["globalDefault"]

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj["metadata"]["generation"] = 1

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        name: str = obj["metadata"].get("name", "")
        out: list[FieldError] = []
        if name.startswith("system-"):
            if name not in _SYSTEM:
                text = f"priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known system"
                out.append(forbidden("metadata.name", f"{text} priority class"))
        elif obj["value"] > _HIGHEST:
            out.append(forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}"))
        if obj["preemptionPolicy"] not in _POLICIES:
            out.append(not_supported("preemptionPolicy", obj["preemptionPolicy"], _POLICIES))
        return out

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        out: list[FieldError] = []
        if obj["value"] != old["value"]:
            out.append(forbidden("value", "may not be changed in an update."))
        if obj["preemptionPolicy"] != old["preemptionPolicy"]:
            out.append(invalid("preemptionPolicy", obj["preemptionPolicy"], "field is immutable"))
        return out
