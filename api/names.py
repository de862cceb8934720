"""Names of everything that is made for a PodCliqueSet (grove.md §1.12), and the way back from a name to its parts.

Ways back never guess by suffix: they strip a known parent prefix, so cliques `b` and `ab` cannot be confused.
"""

from api.hashes import safe_suffix, stable_hash

__all__ = (
    "base_gang_name",
    "clique_name",
    "gang_name",
    "headless_address",
    "hostname",
    "member_clique_name",
    "pcs_replica_of",
    "pod_name",
    "role_name",
    "scaled_gang_name",
    "scaling_group_name",
    "service_name",
    "template_name_of_member",
    "template_name_of_standalone",
    "token_secret_name",
)


def service_name(pcs: str, replica: int) -> str:
    """Headless service of one PodCliqueSet replica; also the subdomain of its pods."""
    return f"{pcs}-{replica}"


def headless_address(pcs: str, replica: int, namespace: str) -> str:
    """Cluster DNS name of the headless service."""
    return f"{service_name(pcs, replica)}.{namespace}.svc.cluster.local"


def clique_name(pcs: str, replica: int, clique: str) -> str:
    """Standalone PodClique."""
    return f"{pcs}-{replica}-{clique}"


def scaling_group_name(pcs: str, replica: int, group: str) -> str:
    """PodCliqueScalingGroup."""
    return f"{pcs}-{replica}-{group}"


def member_clique_name(group: str, replica: int, clique: str) -> str:
    """PodClique of replica `replica` of the scaling group whose full name is `group`."""
    return f"{group}-{replica}-{clique}"


def base_gang_name(pcs: str, replica: int) -> str:
    """Anchor gang of one PodCliqueSet replica."""
    return f"{pcs}-{replica}"


def scaled_gang_name(group: str, k: int) -> str:
    """Tail gang number `k` (from 0) of the scaling group whose full name is `group`."""
    return f"{group}-{k}"


def gang_name(pcs: str, pcs_replica: int, group: str, group_replica: int, min_available: int) -> str:
    """Gang of a scaling group replica: the anchor below minAvailable, else tail gang number (replica - minAvailable)."""
    if group_replica < min_available:
        return base_gang_name(pcs, pcs_replica)
    return scaled_gang_name(group, group_replica - min_available)


def hostname(clique: str, pod_index: int) -> str:
    """Hostname of a pod; unique and stable inside its service."""
    return f"{clique}-{pod_index}"


def pod_name(clique: str, clique_uid: str, pod_index: int, attempt: int) -> str:
    """`<clique>-<5 characters>`: the characters are a hash of clique uid, index and attempt, so a repeated create meets its own name."""
    return f"{clique}-{safe_suffix(stable_hash(f'{clique_uid}/{pod_index}/{attempt}'.encode()))}"


def role_name(pcs: str) -> str:
    """Role and RoleBinding of the startup waiter."""
    return f"grove.io:pcs:{pcs}"


def token_secret_name(pcs: str) -> str:
    """Service account token secret of the startup waiter."""
    return f"{pcs}-ic-sat"


def pcs_replica_of(pcs: str, full_name: str) -> int | None:
    """Replica index of `<pcs>-<i>` or `<pcs>-<i>-<rest>`; None when the name has another shape."""
    rest = full_name.removeprefix(f"{pcs}-")
    head = rest.split("-", 1)[0]
    return int(head) if rest != full_name and head.isascii() and head.isdigit() else None


def template_name_of_standalone(pcs: str, replica: int, full_name: str) -> str | None:
    """Clique template name of a standalone PodClique; None when the name has another shape."""
    prefix = f"{pcs}-{replica}-"
    return full_name[len(prefix) :] or None if full_name.startswith(prefix) else None


def template_name_of_member(group: str, replica: int, full_name: str) -> str | None:
    """Clique template name of a member PodClique of scaling group `group` (full name); None when the name has another shape."""
    prefix = f"{group}-{replica}-"
    return full_name[len(prefix) :] or None if full_name.startswith(prefix) else None
