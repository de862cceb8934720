"""What cells of several kinds have in common."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sim.apiserver.front.ages import age
from sim.apiserver.objects import Object, dig, maps
from sim.apiserver.resources import Column

__all__ = (
    "AGE",
    "CREATED_AT",
    "NAME",
    "column",
    "containers",
    "images",
    "labels_text",
    "name",
    "number",
    "selector_text",
    "shortened",
    "text",
    "timed",
)

NONE = "<none>"


def name(obj: Object, _: datetime) -> str:
    """metadata.name"""
    return obj["metadata"].get("name", "")


def created(obj: Object, now: datetime) -> str:
    """Age of the object."""
    return age(obj["metadata"].get("creationTimestamp"), now)


def column(title: str, value: Callable[[Object], Any], kind: str = "string", *, wide: int = 0) -> Column:
    """A column computed from the object alone. `wide`: 1 for -o wide only."""
    return Column(title, kind, value=lambda obj, _: value(obj), priority=wide)


def timed(title: str, value: Callable[[Object, datetime], Any], *, wide: int = 0) -> Column:
    """A text computed from the object and the time."""
    return Column(title, "string", value=value, priority=wide)


NAME = Column("Name", "string", value=name, format="name")
AGE = Column("Age", "string", value=created)
CREATED_AT = Column("Created At", "date", value=lambda obj, _: obj["metadata"].get("creationTimestamp"))


def number(*path: str) -> Callable[[Object], Any]:
    """The number at a path, 0 where there is none."""
    return lambda obj: dig(obj, *path) or 0


def text(*path: str, otherwise: str = "") -> Callable[[Object], Any]:
    """The text at a path, or what to print instead."""
    return lambda obj: dig(obj, *path) or otherwise


def labels_text(labels: Mapping[str, str] | None) -> str:
    """a=1,b=2 in order of keys."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def selector_text(selector: Object | None) -> str:
    """A label selector in one line, requirements in order of keys."""
    if not selector:
        return NONE
    labels: dict[str, str] = selector.get("matchLabels") or {}
    parts = [(key, f"{key}={value}") for key, value in labels.items()]
    for expression in maps(selector, "matchExpressions"):
        key, allowed = str(expression["key"]), list[str](expression.get("values") or [])
        values = ",".join(sorted(allowed))
        forms = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key, "DoesNotExist": f"!{key}"}
        parts.append((key, forms.get(expression["operator"], "<error>")))
    return ",".join(form for _, form in sorted(parts, key=lambda part: part[0])) or NONE


def containers(obj: Object) -> str:
    """Names of the containers of a pod template."""
    return ",".join(one["name"] for one in maps(obj, "spec", "template", "spec", "containers"))


def images(obj: Object) -> str:
    """Images of the containers of a pod template."""
    return ",".join(one.get("image", "") for one in maps(obj, "spec", "template", "spec", "containers"))


def shortened(parts: Sequence[str], limit: int, otherwise: str = NONE, separator: str = ",") -> str:
    """The first parts, and how many more there are."""
    more = f" + {len(parts) - limit} more..." if len(parts) > limit else ""
    return separator.join(parts[:limit]) + more if parts else otherwise
