"""POST to subresources of pods: binding and eviction."""

from typing import Any, Final

from sim.apiserver.builtin.parts import items, part
from sim.apiserver.builtin.pod_status import scheduled_condition, with_condition
from sim.apiserver.metadata import timestamp
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context, Effect
from sim.apiserver.selectors import matches, selector_of
from sim.apiserver.status import StatusError, bad_request, conflict

__all__ = ("bind", "evict")

_SUCCESS: Final[Object] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_BUDGET: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL: Final = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_WAIT_S: Final = 10


def bind(ctx: Context, pod: Object, binding: Object) -> Effect:
    """Assigns a pod to a node. Raises StatusError."""
    given, metadata = part(binding, "metadata"), pod["metadata"]
    name: str = metadata["name"]
    if given.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = part(binding, "target")
    if target.get("kind") not in (None, "", "Node"):
        raise StatusError(500, "", f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        raise StatusError(500, "", "target.name: Required value")
    _check_preconditions(given, metadata)
    spec: Object = pod["spec"]
    if why := _why_not(pod, name):
        raise conflict("", "pods/binding", name, why)
    status = with_condition(pod["status"], scheduled_condition(ctx.now))
    status.pop("nominatedNodeName", None)
    changed: Object = {**pod, "spec": {**spec, "nodeName": target["name"]}, "status": status}
    for key in ("labels", "annotations"):
        if more := given.get(key):
            changed["metadata"] = {**changed["metadata"], key: {**part(metadata, key), **more}}
    return Effect(dict(_SUCCESS), changed=changed)


def evict(ctx: Context, pod: Object, eviction: Object) -> Effect:
    """Deletes a pod, marked as disrupted, where its disruption budget allows it. Raises StatusError."""
    metadata: Object = pod["metadata"]
    if part(eviction, "metadata").get("name") != metadata["name"]:
        raise bad_request("name in URL does not match name in Eviction object")
    options: Object = {**part(eviction, "deleteOptions")}
    condition: Object = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(ctx.now),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    marked: Object = {**pod, "status": with_condition(pod["status"], condition)}
    if metadata.get("deletionTimestamp") or pod["status"].get("phase") in ("Succeeded", "Failed", "Pending"):
        return Effect(dict(_SUCCESS), changed=marked, delete_options=options)
    budgets = _budgets(ctx, metadata)
    if len(budgets) > 1:
        raise StatusError(500, "", _SEVERAL)
    spent: tuple[tuple[str, str, Object], ...] = ()
    if budgets and not _is_free(pod, budgets[0]):
        spent = (("policy", "poddisruptionbudgets", _spend(ctx, budgets[0], metadata["name"])),)
    return Effect(dict(_SUCCESS), changed=marked, delete_options=options, others=spent)


def _check_preconditions(given: Object, metadata: Object) -> None:
    for key, what in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        if (wanted := given.get(key)) and wanted != metadata[key]:
            where = f"/registry/pods/{metadata['namespace']}/{metadata['name']}"
            text = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {metadata[key]}"
            why = f"StorageError: invalid object, Code: 4, Key: {where}, ResourceVersion: 0, AdditionalErrorMsg: {text}"
            raise conflict("", "pods", metadata["name"], why)


def _why_not(pod: Object, name: str) -> str:
    spec: Object = pod["spec"]
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node := spec.get("nodeName"):
        return f'pod {name} is already assigned to node "{node}"'
    return f"pod {name} has non-empty .spec.schedulingGates" if spec.get("schedulingGates") else ""


def _budgets(ctx: Context, metadata: Object) -> list[Object]:
    """Disruption budgets that select a pod; an empty selector selects all, an absent one none."""
    labels = part(metadata, "labels")
    found = ctx.lookup.list("policy", "poddisruptionbudgets", metadata["namespace"])
    return [b for b in found if (s := b["spec"].get("selector")) is not None and matches(selector_of(s), labels)]


def _is_free(pod: Object, budget: Object) -> bool:
    """Whether an unhealthy pod may go without asking the budget."""
    conditions = items(pod["status"], "conditions")
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = part(budget, "status")
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return bool(desired > 0 and healthy >= desired)


def _spend(ctx: Context, budget: Object, pod: str) -> Object:
    """The budget with one disruption less."""
    metadata, status = budget["metadata"], part(budget, "status")
    name, generation = metadata["name"], metadata.get("generation", 0)
    if status.get("observedGeneration", 0) < generation:
        raise _refused(f"The disruption budget {name} is still being processed by the server.", _WAIT_S)
    allowed: int = status.get("disruptionsAllowed", 0)
    if allowed <= 0:
        desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        raise _refused(f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently", 0)
    changed = {**status, "disruptionsAllowed": allowed - 1}
    changed["disruptedPods"] = {**part(status, "disruptedPods"), pod: timestamp(ctx.now)}
    if allowed == 1:
        condition: Object = {
            "type": "DisruptionAllowed",
            "status": "False",
            "observedGeneration": status.get("observedGeneration", 0),
            "lastTransitionTime": timestamp(ctx.now),
            "reason": "InsufficientPods",
            "message": "",
        }
        changed = with_condition(changed, condition)
    return {**budget, "status": changed}


def _refused(message: str, retry_after_s: int) -> StatusError:
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    return StatusError(429, "TooManyRequests", _BUDGET, details, retry_after_s)
