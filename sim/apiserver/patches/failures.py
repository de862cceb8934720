"""What kube-apiserver says about patches that it cannot use."""

from typing import Any

from sim.apiserver.objects import is_list, is_map
from sim.apiserver.status import StatusError

__all__ = ("broken", "go_text", "json_type", "unprocessable")


def unprocessable() -> StatusError:
    """A patch that does not fit the object. The server does not say what is wrong."""
    return StatusError(422, "Invalid", "the server rejected our request due to an error in our request", shows_details=True)


def broken(message: str) -> StatusError:
    """A mistake for which the server has no reason of its own: an internal error with nothing but a text."""
    return StatusError(500, "", message)


def json_type(value: Any) -> str:
    """JSON's name of a type as the server's decoder prints it."""
    if is_map(value):
        return "object"
    if is_list(value):
        return "array"
    if isinstance(value, bool):
        return "bool"
    return "string" if isinstance(value, str) else "number"


def go_text(value: Any) -> str:
    """JSON data as the server prints them in messages: map[a:1 b:[x y]]."""
    if is_map(value):
        fields: dict[str, Any] = value
        return f"map[{' '.join(f'{k}:{go_text(v)}' for k, v in sorted(fields.items()))}]"
    if is_list(value):
        items: list[Any] = value
        return f"[{' '.join(map(go_text, items))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)
