"""What a pod needs so that its scheduler recognises the gang (grove.md §2.8, §2.9)."""

from api import labels
from api.grove import PodCliqueSet
from api.plan import Manifest

__all__ = ("KAI", "prepare_pod", "scheduler_of")

KAI = "kai-scheduler"
VOLCANO = "volcano"


def scheduler_of(pcs: PodCliqueSet, default: str) -> str:
    """The one scheduler of a set; "" in the pod spec means the default profile. Validation makes sure that all cliques agree."""
    return next((str(c.spec.pod_spec["schedulerName"]) for c in pcs.spec.template.cliques if c.spec.pod_spec.get("schedulerName")), default)


def prepare_pod(pod: Manifest, scheduler: str, gang: str, clique: str) -> None:
    """Sets schedulerName and the labels or annotations that this scheduler expects, in place."""
    pod["spec"]["schedulerName"] = scheduler
    metadata = pod["metadata"]
    if scheduler == KAI:
        metadata["labels"] = {**metadata["labels"], labels.KAI_SUBGROUP: clique}
        ours = {labels.ANNOTATION_KAI_SKIP_PODGROUPER: "true", labels.ANNOTATION_KAI_POD_GROUP: gang}
    elif scheduler == VOLCANO:
        ours = {labels.ANNOTATION_VOLCANO_GROUP: gang, labels.ANNOTATION_VOLCANO_GROUP_LEGACY: gang}
    else:
        return
    metadata["annotations"] = {**metadata.get("annotations", {}), **ours}
