"""What a write to an endpoint can change: status, or everything but status."""

from sim.apiserver.objects import Object, copied
from sim.apiserver.resources import Resource, Version
from sim.apiserver.schema.fields import fill_defaults
from sim.apiserver.schema.model import Schema

__all__ = ("confined", "fill_written")


def confined(obj: Object, before: Object, resource: Resource, version: Version, subresource: str) -> Object:
    """A status write changes status (built-in kinds: and labels and the like), any other write everything but status.

    What a status write cannot change is shared with the stored object: hooks may put something else in its place and no more.
    """
    if subresource == "status":
        kept = {**before, "metadata": obj["metadata"]}
        if resource.is_custom:
            kept["metadata"] = {**before["metadata"], "resourceVersion": obj["metadata"].get("resourceVersion", "")}
        kept.pop("status", None)
        return {**kept, "status": obj["status"]} if "status" in obj else kept
    if subresource or not version.has_status:
        return obj
    out = {k: v for k, v in obj.items() if k != "status"}
    if "status" in before:
        out["status"] = copied(before["status"])
    return out


def fill_written(obj: Object, schema: Schema, subresource: str) -> None:
    """Schema defaults, in place, of what a write may change; everything else has them."""
    status = schema.properties.get("status")
    if subresource != "status" or status is None:
        fill_defaults(obj, schema)
    elif "status" in obj:
        fill_defaults(obj["status"], status)
    elif "status" in schema.defaults:
        obj["status"] = copied(schema.defaults["status"])
