"""The forms in which lists and watches come: as little of each as a reflector has to understand before a model reads the rest."""

import msgspec

__all__ = ("EVENTS", "INITIAL_END", "LISTS", "PARTIALS", "UNDECODABLE", "Event", "List", "Meta", "Partial", "describe_decode_error")

INITIAL_END = "k8s.io/initial-events-end"
UNDECODABLE = (msgspec.MsgspecError, ValueError, RecursionError)
"""What decoding malformed input raises; pydantic's ValidationError is a ValueError."""


class Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


class ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    next: str = msgspec.field(default="", name="continue")


class List(msgspec.Struct):
    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class Meta(msgspec.Struct, rename="camel"):
    """As little as identifies an object whose model does not fit."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class Partial(msgspec.Struct):
    metadata: Meta


EVENTS = msgspec.json.Decoder(Event)
LISTS = msgspec.json.Decoder(List)
PARTIALS = msgspec.json.Decoder(Partial)


def describe_decode_error(error: Exception) -> str:
    """Where decoding failed, without any value of the object (custom resources may carry secrets in env)."""
    details = getattr(error, "errors", None)
    if callable(details):
        found = msgspec.convert(details(include_input=False, include_url=False, include_context=False), list[dict[str, object]])
        return "; ".join(f"{'.'.join(map(str, msgspec.convert(e['loc'], list[object])))}: {e['type']}" for e in found[:5])
    return str(error) if isinstance(error, msgspec.MsgspecError) else type(error).__name__
