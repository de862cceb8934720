"""Jobs and cron jobs."""

from collections.abc import Mapping
from typing import Final

from api.fielderrors import FieldError, invalid, not_supported, required
from sim.apiserver.builtin.base import Generational
from sim.apiserver.builtin.failures import invalid_whole
from sim.apiserver.builtin.names import subdomain_name
from sim.apiserver.builtin.numbers import negative_errors
from sim.apiserver.builtin.parts import part
from sim.apiserver.builtin.pod_diff import go_spec
from sim.apiserver.builtin.pod_validation import template_errors
from sim.apiserver.builtin.workloads import default_template
from sim.apiserver.objects import Object
from sim.apiserver.resources import Context

__all__ = ("CronJobStrategy", "JobStrategy")

_UID: Final = "batch.kubernetes.io/controller-uid"
_NAME: Final = "batch.kubernetes.io/job-name"
_COUNTS: Final = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_ORPHANED: Final = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)
_POLICIES: Final = ("Allow", "Forbid", "Replace")
_FIXED: Final = ("completions", "selector", "completionMode")
_PLACEMENT: Final = ("affinity", "nodeSelector", "tolerations", "schedulingGates")


class JobStrategy(Generational):
    """Jobs: the server makes their selector."""

    orphans = True
    orphan_warning = _ORPHANED
    unselectable = 'field label "{}" not supported for Job'
    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        spec: Object = {**(obj.get("spec") or {})}
        obj["spec"] = spec
        _default_spec(spec)
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        for key, value in (("parallelism", 1), ("backoffLimit", 6), ("completionMode", "NonIndexed"), ("suspend", False)):
            if spec.get(key) is None:
                spec[key] = value
        spec.setdefault("manualSelector", False)
        if spec.get("podReplacementPolicy") is None:
            spec["podReplacementPolicy"] = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
        metadata, labels = obj["metadata"], part(part(spec["template"], "metadata"), "labels")
        if labels and not metadata.get("labels"):
            metadata["labels"] = dict(labels)

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {}
        spec, metadata = obj["spec"], obj["metadata"]
        if spec["manualSelector"]:
            return
        uid, name = metadata["uid"], metadata.get("name", "")
        added = {_UID: uid, _NAME: name, "controller-uid": uid, "job-name": name}
        template: Object = spec["template"]
        inner = part(template, "metadata")
        spec["template"] = {**template, "metadata": {**inner, "labels": {**part(inner, "labels"), **added}}}
        metadata["labels"] = {**part(metadata, "labels"), **added}
        selector = part(spec, "selector")
        spec["selector"] = {**selector, "matchLabels": {**part(selector, "matchLabels"), _UID: uid}}

    def prepare_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> None:
        if subresource == "status":
            obj["spec"] = old["spec"]
            obj.setdefault("status", {})
        else:
            obj["status"] = old["status"]

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec: Object = obj["spec"]
        out = negative_errors("spec", spec, _COUNTS)
        selector = spec.get("selector")
        if not spec["manualSelector"] and selector != {"matchLabels": {_UID: obj["metadata"]["uid"]}}:
            out.append(invalid("spec.selector", selector, "`selector` not auto-generated"))
        if spec["completionMode"] == "Indexed" and spec.get("completions") is None:
            out.append(required("spec.completions", "when completion mode is Indexed"))
        return out + _template_errors("spec.template", spec["template"])

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        if subresource == "status":
            return []
        spec, was = obj["spec"], old["spec"]
        out = negative_errors("spec", spec, _COUNTS)
        for key in _FIXED:
            if spec.get(key) != was.get(key):
                out.append(invalid(f"spec.{key}", spec.get(key), "field is immutable"))
        if _fixed_part(spec["template"], was) != _fixed_part(was["template"], was):
            out.append(invalid_whole("spec.template.spec", go_spec(spec["template"]["spec"]), "field is immutable"))
        return out

    def selectable_fields(self, obj: Object) -> Mapping[str, str]:
        return {"status.successful": str(part(obj, "status").get("succeeded", 0))}


class CronJobStrategy(Generational):
    """Cron jobs; schedules are not parsed."""

    name_check = staticmethod(subdomain_name)

    def fill(self, obj: Object) -> None:
        spec: Object = {**(obj.get("spec") or {})}
        obj["spec"] = spec
        for key, value in (
            ("concurrencyPolicy", "Allow"),
            ("suspend", False),
            ("successfulJobsHistoryLimit", 3),
            ("failedJobsHistoryLimit", 1),
        ):
            if spec.get(key) is None:
                spec[key] = value
        job = part(spec, "jobTemplate")
        inner = {**part(job, "spec")}
        _default_spec(inner)
        spec["jobTemplate"] = {**job, "metadata": part(job, "metadata"), "spec": inner}

    def prepare_create(self, ctx: Context, obj: Object) -> None:
        obj["status"] = {}

    def validate_create(self, ctx: Context, obj: Object) -> list[FieldError]:
        spec: Object = obj["spec"]
        schedule = spec.get("schedule") or ""
        out: list[FieldError] = []
        if not schedule:
            out.append(required("spec.schedule"))
        elif not schedule.startswith("@") and len(fields := schedule.split()) != 5:
            found = " ".join(fields)
            out.append(invalid("spec.schedule", schedule, f"expected exactly 5 fields, found {len(fields)}: [{found}]"))
        out += negative_errors("spec", spec, ("startingDeadlineSeconds",))
        if spec["concurrencyPolicy"] not in _POLICIES:
            out.append(not_supported("spec.concurrencyPolicy", spec["concurrencyPolicy"], _POLICIES))
        return out + _template_errors("spec.jobTemplate.spec.template", spec["jobTemplate"]["spec"]["template"])

    def validate_update(self, ctx: Context, obj: Object, old: Object, subresource: str) -> list[FieldError]:
        return [] if subresource else self.validate_create(ctx, obj)


def _fixed_part(template: Object, job: Object) -> Object:
    """What may not change of a template: of a suspended job everything but where its pods may run."""
    if not job.get("suspend"):
        return template
    spec = {k: v for k, v in template["spec"].items() if k not in _PLACEMENT}
    return {"spec": spec}


def _default_spec(spec: Object) -> None:
    spec["template"] = default_template(spec.get("template") or {})


def _template_errors(path: str, template: Object) -> list[FieldError]:
    out = template_errors(path, template)
    policy = template["spec"]["restartPolicy"]
    if policy == "Always":
        out.append(required(f"{path}.spec.restartPolicy", 'valid values: "OnFailure", "Never"'))
    return out
