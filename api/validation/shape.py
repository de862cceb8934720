"""Reading of JSON data whose shape nobody has checked: pod specs are carried whole by the models."""

from typing import Any, cast

__all__ = ("as_list", "as_object", "as_text")


def as_object(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: object) -> str:
    """The value if it is text, else ""."""
    return value if isinstance(value, str) else ""
