"""What a CRD says beyond the fields and types of its model: names, columns, subresources, rules, and what is required on the wire.

Keys of the tables are class names, or `Kind/Class` where a class is used differently in one kind.
"""

from dataclasses import dataclass
from typing import Any

from hack.codegen.embedded import METRIC_SPEC, POD_SPEC, RESOURCE_CLAIM_TEMPLATE_SPEC, Schema, Source

__all__ = ("CATEGORY", "EMBEDDED", "FACTS", "FIELDS", "LIST_MAPS", "NO_DEFAULT", "REQUIRED", "RULES", "Column", "Facts", "Scale")

CATEGORY = "grovekeeper"
"""`kubectl get grovekeeper` lists objects of all our kinds."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; wide ones are shown with -o wide only."""

    name: str
    path: str
    type: str = "integer"
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """Paths of the scale subresource; that of spec.replicas and status.replicas is always the same."""

    selector: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Short name, columns (Age is added) and scale subresource of a kind."""

    short_name: str
    columns: tuple[Column, ...]
    scale: Scale | None = None


_BREACHED = Column("MinBreached", '.status.conditions[?(@.type=="MinAvailableBreached")].status', "string", wide=True)
_REPLICAS = Column("Replicas", ".spec.replicas")
_MIN_AVAILABLE = Column("MinAvail", ".spec.minAvailable")
_AVAILABLE = Column("Available", ".status.availableReplicas")
_SCHEDULED = Column("Scheduled", ".status.scheduledReplicas")
_UPDATED = Column("Updated", ".status.updatedReplicas")
_PCLQS_UPDATED = Column("PCLQs-Updated", ".status.updateProgress.updatedPodCliquesCount")
_PCLQS_TOTAL = Column("PCLQs-Total", ".status.updateProgress.totalPodCliquesCount")

FACTS: dict[str, Facts] = {
    "PodCliqueSet": Facts(
        "pcs",
        (
            _REPLICAS,
            _AVAILABLE,
            _UPDATED,
            _PCLQS_UPDATED,
            _PCLQS_TOTAL,
            Column("PCSGs-Updated", ".status.updateProgress.updatedPodCliqueScalingGroupsCount"),
            Column("PCSGs-Total", ".status.updateProgress.totalPodCliqueScalingGroupsCount"),
        ),
        Scale(".status.hpaPodSelector"),
    ),
    "PodClique": Facts(
        "pclq",
        (
            _MIN_AVAILABLE,
            _REPLICAS,
            Column("Ready", ".status.readyReplicas"),
            _SCHEDULED,
            _UPDATED,
            Column("Gated", ".status.scheduleGatedReplicas", wide=True),
            _BREACHED,
        ),
        Scale(".status.hpaPodSelector"),
    ),
    "PodCliqueScalingGroup": Facts(
        "pcsg",
        (_MIN_AVAILABLE, _REPLICAS, _AVAILABLE, _SCHEDULED, _UPDATED, _PCLQS_UPDATED, _PCLQS_TOTAL, _BREACHED),
        Scale(".status.selector"),
    ),
    "ClusterTopologyBinding": Facts("ct", (Column("Domains", ".spec.levels[*].domain", "string"),)),
    "PodGang": Facts(
        "pg",
        (
            Column("Phase", ".status.phase", "string"),
            Column("Pods", ".status.pods", wide=True),
            Column("Bound", ".status.bound", wide=True),
            Column("Ready", ".status.ready", wide=True),
            Column("Domain", ".status.domain", "string", wide=True),
            Column("Score", ".status.placementScore", "number", wide=True),
            Column("Blocked", ".status.blocked", "string", wide=True),
            Column("Since", ".status.blockedSince", "date", wide=True),
        ),
    ),
    "GangPlacement": Facts(
        "gpl",
        (
            Column("Phase", ".status.phase", "string"),
            Column("Pods", ".status.pods"),
            Column("Bound", ".status.bound"),
            Column("Domain", ".status.domain", "string"),
            Column("Score", ".status.score", "number"),
            Column("Blocked", ".status.reason", "string"),
        ),
    ),
}

REQUIRED: dict[str, tuple[str, ...]] = {
    "Condition": ("lastTransitionTime", "message", "reason", "status", "type"),
    "LastError": ("code", "description", "observedAt"),
    "HeadlessServiceConfig": ("publishNotReadyAddresses",),
    "PodClique/PodCliqueSpec": ("podSpec", "replicas", "roleName"),
    "PodCliqueScalingGroupSpec": ("cliqueNames", "replicas"),
    "PodCliqueSetStatus": ("availableReplicas", "updatedReplicas"),
    "PodCliqueStatus": ("readyReplicas", "scheduleGatedReplicas", "scheduledReplicas", "updatedReplicas"),
    "PodCliqueScalingGroupStatus": ("availableReplicas", "scheduledReplicas", "updatedReplicas"),
    "PodCliqueScalingGroupUpdateProgress": ("podCliqueSetGenerationHash", "updateStartedAt"),
    "PodGangStatus": ("phase",),
    "GangPlacementStatus": ("phase",),
}
"""Fields that the API server demands although the models can do without them."""

NO_DEFAULT: dict[str, tuple[str, ...]] = {
    "Condition": ("message", "reason"),
    "PodCliqueSpec": ("replicas", "roleName"),
    "PodCliqueSetStatus": ("replicas",),
    "PodCliqueStatus": ("replicas",),
    "PodCliqueScalingGroupStatus": ("replicas",),
    "PodGangStatus": ("phase",),
    "GangPlacementStatus": ("phase",),
}
"""Fields whose default is the model's alone: absent stays absent in the API server."""

EMBEDDED: dict[str, dict[str, Source]] = {
    "PodCliqueSpec": {"podSpec": POD_SPEC},
    "AutoScalingConfig": {"metrics": METRIC_SPEC},
    "ResourceClaimTemplateConfig": {"templateSpec": RESOURCE_CLAIM_TEMPLATE_SPEC},
}
"""Fields that hold a Kubernetes type (or a list of it) whole."""

LIST_MAPS: dict[str, dict[str, tuple[str, ...]]] = {
    "PodCliqueSetTemplate": {"cliques": ("name",)},
    **{
        name: {"conditions": ("type",)}
        for name in (
            "ClusterTopologyBindingStatus",
            "GangPlacementStatus",
            "PodCliqueScalingGroupStatus",
            "PodCliqueSetStatus",
            "PodCliqueStatus",
            "PodGangStatus",
            "PodGangSummary",
        )
    },
}
"""Lists whose entries have an identity, so that several writers can own different ones."""

FIELDS: dict[str, dict[str, Schema]] = {
    "Condition": {
        "message": {"maxLength": 32768},
        "observedGeneration": {"minimum": 0},
        "reason": {"maxLength": 1024, "minLength": 1, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
        "type": {
            "maxLength": 316,
            "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        },
    },
}
"""Bounds that only the API server checks: what it has once stored is always readable."""


def _rule(rule: str, message: str, reason: str = "", field: str = "") -> dict[str, Any]:
    return {"rule": rule, "message": message} | ({"reason": reason} if reason else {}) | ({"fieldPath": field} if field else {})


def _no_pack_domain(field: str, absent: str) -> dict[str, Any]:
    message = "packDomain is deprecated and cannot be used on new workloads; use pack.required"
    rule = _rule(f"oldSelf.hasValue() || {absent}", message, "FieldValueForbidden", f".spec.template.{field}")
    return {**rule, "optionalOldSelf": True}


RULES: dict[str, tuple[dict[str, Any], ...]] = {
    "PackConstraint": (
        _rule("has(self.required) || has(self.preferred)", "pack must specify at least one of required or preferred", "FieldValueRequired"),
    ),
    "TopologyConstraint": (
        _rule(
            "has(self.pack) || has(self.packDomain)",
            "topologyConstraint must specify pack or deprecated packDomain",
            "FieldValueRequired",
            ".pack",
        ),
        _rule(
            "!(has(self.packDomain) && has(self.pack) && has(self.pack.required))",
            "must not set both pack.required and deprecated packDomain",
            field=".pack.required",
        ),
    ),
    "PodCliqueSet": (
        _no_pack_domain(
            "topologyConstraint.packDomain",
            "!has(self.spec.template.topologyConstraint) || !has(self.spec.template.topologyConstraint.packDomain)",
        ),
        _no_pack_domain(
            "cliques",
            "!has(self.spec.template.cliques) || "
            "self.spec.template.cliques.all(c, !has(c.topologyConstraint) || !has(c.topologyConstraint.packDomain))",
        ),
        _no_pack_domain(
            "podCliqueScalingGroups",
            "!has(self.spec.template.podCliqueScalingGroups) || "
            "self.spec.template.podCliqueScalingGroups.all(g, !has(g.topologyConstraint) || !has(g.topologyConstraint.packDomain))",
        ),
    ),
}
"""CEL rules; those with optionalOldSelf judge new objects only."""
