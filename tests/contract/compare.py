"""Objects without what differs from run to run."""

from typing import Any

from tests.contract.kinds import Obj

__all__ = ("normal", "without_meta")

CHANGING = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "managedFields", "namespace")


def normal(obj: Obj) -> Obj:
    """The object without uid, resourceVersion, timestamps, managedFields and the test's namespace."""
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k not in CHANGING}}


def without_meta(obj: Obj, *fields: str) -> dict[str, Any]:
    """The object without these fields of its metadata."""
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k not in fields}}
