"""In which form objects are asked for."""

__all__ = ("METADATA_ONLY", "accept_for")

METADATA_ONLY = frozenset({"secrets"})
"""Resources of which only metadata is requested, so that their content never enters this process."""


def accept_for(resource: str, form: str = "") -> str:
    """Accept header for a resource; form "" is an object or watch, "List" a list."""
    return f"application/json;as=PartialObjectMetadata{form};g=meta.k8s.io;v=v1" if resource in METADATA_ONLY else "application/json"
