"""How far a replica count is taken literally. Scale subresources accept any int32, and one wrong number must not take a process down."""

__all__ = ("MAX_REPLICAS", "bounded", "excess_text")

MAX_REPLICAS = 10_000
"""Of one PodCliqueSet, PodCliqueScalingGroup or PodClique; more than the largest clusters run of one of them."""


def bounded(replicas: int) -> int:
    """The count that is acted on."""
    return max(0, min(replicas, MAX_REPLICAS))


def excess_text(replicas: int) -> str:
    """What to tell the user about a count beyond the limit; "" for any other."""
    if replicas <= MAX_REPLICAS:
        return ""
    return f"spec.replicas is {replicas}, which is beyond the limit of {MAX_REPLICAS}: nothing more is created until it is lower"
