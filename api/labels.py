"""Labels, annotations, finalizers and the scheduling gate that Grove's objects carry (grove.md §1.11)."""

from collections.abc import Mapping

__all__ = (
    "ANNOTATION_KAI_POD_GROUP",
    "ANNOTATION_KAI_SKIP_PODGROUPER",
    "ANNOTATION_MNNVL_GROUP",
    "ANNOTATION_TOPOLOGY_NAME",
    "ANNOTATION_VOLCANO_GROUP",
    "ANNOTATION_VOLCANO_GROUP_LEGACY",
    "BASE_PODGANG",
    "COMPONENT",
    "FINALIZER_PODCLIQUE",
    "FINALIZER_PODCLIQUESCALINGGROUP",
    "FINALIZER_PODCLIQUESET",
    "GATE",
    "GROVE_PREFIX",
    "KAI_SUBGROUP",
    "MANAGED_BY",
    "MANAGED_BY_VALUE",
    "MANAGED_SELECTOR",
    "NAME",
    "PART_OF",
    "PCSG",
    "PCSG_REPLICA_INDEX",
    "PCS_REPLICA_INDEX",
    "PODCLIQUE",
    "PODGANG",
    "POD_INDEX",
    "POD_TEMPLATE_HASH",
    "SCHEDULER_NAME",
    "default_labels",
    "index_of",
    "selector_text",
)

GROVE_PREFIX = "grove.io/"

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY_VALUE = "grove-operator"
PART_OF = "app.kubernetes.io/part-of"
NAME = "app.kubernetes.io/name"
COMPONENT = "app.kubernetes.io/component"
MANAGED_SELECTOR = f"{MANAGED_BY}={MANAGED_BY_VALUE}"

PCS_REPLICA_INDEX = "grove.io/podcliqueset-replica-index"
PODGANG = "grove.io/podgang"
BASE_PODGANG = "grove.io/base-podgang"
PODCLIQUE = "grove.io/podclique"
POD_INDEX = "grove.io/podclique-pod-index"
PCSG = "grove.io/podcliquescalinggroup"
PCSG_REPLICA_INDEX = "grove.io/podcliquescalinggroup-replica-index"
POD_TEMPLATE_HASH = "grove.io/pod-template-hash"
SCHEDULER_NAME = "grove.io/scheduler-name"
KAI_SUBGROUP = "kai.scheduler/subgroup-name"

ANNOTATION_TOPOLOGY_NAME = "grove.io/topology-name"
ANNOTATION_MNNVL_GROUP = "grove.io/mnnvl-group"
ANNOTATION_KAI_SKIP_PODGROUPER = "kai.scheduler/skip-podgrouper"
ANNOTATION_KAI_POD_GROUP = "pod-group-name"
ANNOTATION_VOLCANO_GROUP = "scheduling.volcano.sh/group-name"
ANNOTATION_VOLCANO_GROUP_LEGACY = "scheduling.k8s.io/group-name"

FINALIZER_PODCLIQUESET = "grove.io/podcliqueset.grove.io"
FINALIZER_PODCLIQUE = "grove.io/podclique.grove.io"
FINALIZER_PODCLIQUESCALINGGROUP = "grove.io/podcliquescalinggroup.grove.io"

GATE = "grove.io/podgang-pending-creation"


def default_labels(pcs_name: str) -> dict[str, str]:
    """The two labels that everything made for a PodCliqueSet carries."""
    return {MANAGED_BY: MANAGED_BY_VALUE, PART_OF: pcs_name}


def selector_text(pcs_name: str, extra: Mapping[str, str] | None = None) -> str:
    """Label selector as text, as the scale subresources publish it: default labels, then `extra` (label keys of this module)."""
    pairs = [f"{MANAGED_BY}={MANAGED_BY_VALUE}", f"{PART_OF}={pcs_name}"]
    return ",".join(pairs + [f"{key}={value}" for key, value in (extra or {}).items()])


def index_of(labels: Mapping[str, str], label: str) -> int | None:
    """The non-negative integer that `label` holds; None when it is absent or not such a number (a user may have edited it)."""
    text = labels.get(label, "")
    return int(text) if text.isascii() and text.isdigit() else None
