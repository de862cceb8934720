"""Columns of workloads and autoscalers."""

from collections.abc import Sequence
from datetime import datetime

from sim.apiserver.front.ages import human_duration, instant
from sim.apiserver.front.cells import (
    AGE,
    NAME,
    NONE,
    column,
    containers,
    images,
    labels_text,
    number,
    selector_text,
    shortened,
    timed,
)
from sim.apiserver.objects import Object, dig, maps
from sim.apiserver.resources import Column

__all__ = ("AUTOSCALER", "DAEMON_SET", "DEPLOYMENT", "JOB", "REPLICA_SET", "STATEFUL_SET")

UNKNOWN = "<unknown>"
CONTAINERS = column("Containers", containers, wide=1)
IMAGES = column("Images", images, wide=1)
SELECTOR = column("Selector", lambda obj: selector_text(dig(obj, "spec", "selector")), wide=1)
# What a job says of itself, the strongest first.
JOB_CONDITIONS = ("Complete", "Failed", "Suspended", "FailureTarget", "SuccessCriteriaMet")


def _ready(obj: Object) -> str:
    return f"{dig(obj, 'status', 'readyReplicas') or 0}/{dig(obj, 'spec', 'replicas') or 0}"


def _job_status(job: Object) -> str:
    true = {one["type"] for one in maps(job, "status", "conditions") if one["status"] == "True"}
    if (found := next((kind for kind in JOB_CONDITIONS[:3] if kind in true), None)) is not None:
        return found
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((kind for kind in JOB_CONDITIONS[3:] if kind in true), "Running")


def _completions(job: Object) -> str:
    succeeded = dig(job, "status", "succeeded") or 0
    if (wanted := dig(job, "spec", "completions")) is not None:
        return f"{succeeded}/{wanted}"
    parallelism = dig(job, "spec", "parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Object, now: datetime) -> str:
    start = instant(dig(job, "status", "startTime"))
    return human_duration((instant(dig(job, "status", "completionTime")) or now) - start) if start else ""


def _metrics(autoscaler: Object) -> str:
    current = maps(autoscaler, "status", "currentMetrics")
    specs = maps(autoscaler, "spec", "metrics")
    return shortened([_metric(spec, current[at] if at < len(current) else {}) for at, spec in enumerate(specs)], 2, separator=", ")


def _metric(spec: Object, status: Object) -> str:
    """current/target of one metric."""
    kind = spec["type"]
    field = kind[:1].lower() + kind[1:]
    of: Object = spec.get(field) or {}
    target: Object = of.get("target") or {}
    now: Object = dig(status, field, "current") or {}
    name = f"{of['name']}: " if kind in ("Resource", "ContainerResource") else ""
    if (average := target.get("averageValue")) is not None:
        suffix = " (avg)" if kind in ("External", "Object") else ""
        return f"{name}{now.get('averageValue') or UNKNOWN}/{average}{suffix}"
    if name:
        return f"{name}{_percent(now, UNKNOWN)}/{_percent(target, '<auto>')}"
    return f"{now.get('value') or UNKNOWN}/{target.get('value', '')}"


def _percent(value: Object, otherwise: str) -> str:
    return f"{value['averageUtilization']}%" if value.get("averageUtilization") is not None else otherwise


def _old_target(autoscaler: Object) -> str:
    """autoscaling/v1 knows the CPU only, beside metrics kept in an annotation."""
    wanted = dig(autoscaler, "spec", "targetCPUUtilizationPercentage")
    if wanted is None:
        return NONE
    current = dig(autoscaler, "status", "currentCPUUtilizationPercentage")
    return f"cpu: {UNKNOWN if current is None else f'{current}%'}/{wanted}%"


def _targets(autoscaler: Object) -> str:
    return _metrics(autoscaler) if autoscaler.get("apiVersion") != "autoscaling/v1" else _old_target(autoscaler)


def _reference(autoscaler: Object) -> str:
    target: Object = autoscaler["spec"]["scaleTargetRef"]
    return f"{target['kind']}/{target['name']}"


def _minimum(autoscaler: Object) -> str:
    least = dig(autoscaler, "spec", "minReplicas")
    return "<unset>" if least is None else str(least)


def _counts(titles: Sequence[tuple[str, tuple[str, str]]]) -> tuple[Column, ...]:
    return tuple(column(title, number(*path), "integer") for title, path in titles)


DEPLOYMENT = (
    NAME,
    column("Ready", _ready),
    column("Up-to-date", number("status", "updatedReplicas")),
    column("Available", number("status", "availableReplicas")),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)
REPLICA_SET = (
    NAME,
    *_counts([("Desired", ("spec", "replicas")), ("Current", ("status", "replicas")), ("Ready", ("status", "readyReplicas"))]),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)
STATEFUL_SET = (NAME, column("Ready", _ready), AGE, CONTAINERS, IMAGES)
DAEMON_SET = (
    NAME,
    *_counts(
        [
            ("Desired", ("status", "desiredNumberScheduled")),
            ("Current", ("status", "currentNumberScheduled")),
            ("Ready", ("status", "numberReady")),
            ("Up-to-date", ("status", "updatedNumberScheduled")),
            ("Available", ("status", "numberAvailable")),
        ]
    ),
    column("Node Selector", lambda obj: labels_text(dig(obj, "spec", "template", "spec", "nodeSelector"))),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)
JOB = (
    NAME,
    column("Status", _job_status),
    column("Completions", _completions),
    timed("Duration", _job_duration),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)
AUTOSCALER = (
    NAME,
    column("Reference", _reference),
    column("Targets", _targets),
    column("MinPods", _minimum),
    column("MaxPods", number("spec", "maxReplicas")),
    column("Replicas", number("status", "currentReplicas")),
    AGE,
)
