"""Typed access to parts of objects that may be absent."""

from sim.apiserver.objects import Object

__all__ = ("items", "part", "selects")


def part(obj: Object | None, key: str) -> Object:
    """A map in a map; empty where it or the outer one is absent or null."""
    return (obj.get(key) if obj else None) or {}


def items(obj: Object | None, key: str) -> list[Object]:
    """A list of maps in a map; empty where it or the map is absent or null."""
    return (obj.get(key) if obj else None) or []


def selects(selector: Object, labels: Object) -> bool:
    """Whether a metav1.LabelSelector selects something with these labels; an empty one selects everything."""
    if any(labels.get(key) != value for key, value in part(selector, "matchLabels").items()):
        return False
    return all(_holds(wanted, labels) for wanted in items(selector, "matchExpressions"))


def _holds(wanted: Object, labels: Object) -> bool:
    key, values = wanted.get("key", ""), wanted.get("values") or ()
    match wanted.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
