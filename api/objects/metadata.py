"""Pieces of metadata that every built object shares."""

from collections.abc import Mapping

from api.plan import Manifest, Object

__all__ = ("metadata", "owner_reference")


def owner_reference(owner: Object) -> Manifest:
    """Controller reference to `owner`; the owner's deletion waits for the object it is put on when deleted in the foreground."""
    return {
        "apiVersion": owner.KIND.api_version,
        "kind": owner.KIND.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def metadata(
    name: str,
    owner: Object,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
    finalizers: tuple[str, ...] = (),
) -> Manifest:
    """Metadata of an object in the owner's namespace; empty annotations and finalizers are left out."""
    out: Manifest = {
        "name": name,
        "namespace": owner.metadata.namespace,
        "labels": dict(labels),
        "ownerReferences": [owner_reference(owner)],
    }
    if annotations:
        out["annotations"] = dict(annotations)
    if finalizers:
        out["finalizers"] = list(finalizers)
    return out
