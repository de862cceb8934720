"""Methods of strings."""

# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# Values of expressions have no static type: functions get whatever an expression gives them, and fail when it does not fit.

from collections.abc import Callable, Mapping
from typing import Any, Final

from sim.apiserver.schema.cel.values import CelError
from sim.apiserver.schema.regexes import go_regex

__all__ = ("STRINGS",)


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return _text(text)[index : index + 1]


def _index_of(value: Any, item: Any, start: int = 0) -> int:
    if isinstance(value, list):
        return next((i for i, other in enumerate(value) if other == item and type(other) is type(item)), -1)
    return _text(value).find(item, start)


def _last_index_of(value: Any, item: Any, end: int | None = None) -> int:
    if isinstance(value, list):
        return max((i for i, other in enumerate(value) if other == item and type(other) is type(item)), default=-1)
    return _text(value).rfind(item) if end is None else _text(value).rfind(item, 0, end + len(item))


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(_text(text)) if end is None else end
    if not 0 <= start <= len(text) or not 0 <= stop <= len(text):
        raise CelError(f"index out of range: {start if not 0 <= start <= len(text) else stop}")
    if start > stop:
        raise CelError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        return list(text) if limit < 0 else [*text[: limit - 1], text[limit - 1 :]]
    return _text(text).split(separator) if limit < 0 else text.split(separator, limit - 1)


def _join(items: list[str], separator: str = "") -> str:
    return separator.join(items)


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return _text(text).replace(old, new, limit)


def _find(text: str, pattern: str) -> str:
    match = go_regex(pattern).search(_text(text))
    return match[0] if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [m[0] for m in go_regex(pattern).finditer(_text(text))]
    return found if limit < 0 else found[:limit]


def _ascii(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(c) if c.isascii() else c for c in _text(text))


def _format(template: str, args: list[Any]) -> str:
    out: list[str] = []
    rest, waiting = _text(template), iter(args)
    while rest:
        before, mark, rest = rest.partition("%")
        out.append(before)
        if not mark:
            break
        verb = rest.lstrip("0123456789.")[:1]
        spec, rest = rest[: rest.index(verb)], rest[rest.index(verb) + 1 :]
        out.append("%" if verb == "%" else _formatted(verb, spec, next(waiting, None)))
    return "".join(out)


def _formatted(verb: str, spec: str, value: Any) -> str:
    if verb in "dxXob":
        return format(value, verb)
    if verb in "fe":
        return format(float(value), f"{spec or '.6'}{verb}")
    if verb != "s":
        raise CelError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
    if isinstance(value, list):
        return "[" + ", ".join(_formatted("s", "", item) for item in value) + "]"
    if type(value) is dict:
        return "{" + ", ".join(f"{k}: {_formatted('s', '', value[k])}" for k in sorted(value)) + "}"
    if type(value) is bool:
        return "true" if value else "false"
    return "null" if value is None else f"{value:g}" if type(value) is float else str(value)


STRINGS: Final[Mapping[str, Callable[..., Any]]] = {
    "contains": lambda text, part: part in _text(text),
    "startsWith": lambda text, part: _text(text).startswith(part),
    "endsWith": lambda text, part: _text(text).endswith(part),
    "charAt": _char_at,
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "lowerAscii": _ascii(str.lower),
    "upperAscii": _ascii(str.upper),
    "trim": lambda text: _text(text).strip(),
    "split": _split,
    "join": _join,
    "replace": _replace,
    "substring": _substring,
    "find": _find,
    "findAll": _find_all,
    "format": _format,
}
