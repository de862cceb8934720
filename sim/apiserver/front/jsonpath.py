"""The JSONPath of printer columns: fields, indices, slices, wildcards and filters."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

__all__ = ("Finder", "compiled")

Finder: TypeAlias = Callable[[Any], Sequence[Any]]
"""From a document to the values at a path, in order; empty where the path leads nowhere."""
Step: TypeAlias = Callable[[Iterable[Any]], list[Any]]

# A field with escaped dots, or a bracket. Brackets may hold quoted brackets only inside filters.
_STEP: Final = re.compile(r"\.\.(?P<deep>(?:[^.\[\\]|\\.)+)|\.(?P<field>(?:[^.\[\\]|\\.)+)|\[(?P<index>[^\]]*(?:\][^.\[][^\]]*)*)\]")
_SLICE: Final = re.compile(r"(?P<start>-?\d*):(?P<stop>-?\d*)(?::(?P<step>\d+))?")
_FILTER: Final = re.compile(r"\?\(\s*@(?P<path>.*?)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<value>.+?)\s*)?\)")
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}


@lru_cache(maxsize=1024)
def compiled(path: str) -> Finder:
    """Raises ValueError for what is no path. Null values count as absent, as they print nothing."""
    steps: list[Step] = []
    position = 0
    text = path.removeprefix("{").removesuffix("}").removeprefix("$")
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise ValueError(f"no JSONPath: {path}")
        steps.append(_step(match))
        position = match.end()

    def find(document: Any) -> list[Any]:
        found: list[Any] = [document]
        for step in steps:
            found = step(found)
        return [value for value in found if value is not None]

    return find


def _step(match: re.Match[str]) -> Step:
    if (name := match["field"]) is not None:
        return _values if name == "*" else _field(_unescaped(name))
    if (name := match["deep"]) is not None:
        return _descend(_unescaped(name))
    index = match["index"].strip()
    if index == "*":
        return _values
    if index[:1] in ("'", '"') and index[-1:] == index[0]:
        # What is quoted is a path of its own: dots in keys need a backslash there too.
        inner = compiled(f".{index[1:-1]}")
        return lambda found: [value for one in found for value in inner(one)]
    if (filtered := _FILTER.fullmatch(index)) is not None:
        return _filter(filtered)
    if (sliced := _SLICE.fullmatch(index)) is not None:
        bounds = slice(*(int(part) if part else None for part in sliced.groups()))
        return lambda found: [value for one in found if isinstance(one, list) for value in _items(one)[bounds]]
    wanted = [int(part) for part in index.split(",")]
    return lambda found: [one[at] for one in map(_items, found) for at in wanted if -len(one) <= at < len(one)]


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _unescaped(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _field(name: str) -> Step:
    return lambda found: [one[name] for one in found if isinstance(one, dict) and name in one]


def _values(found: Iterable[Any]) -> list[Any]:
    out: list[Any] = []
    for one in found:
        if isinstance(one, dict):
            fields = cast("dict[str, Any]", one)
            out += [fields[name] for name in sorted(fields)]
        else:
            out += _items(one)
    return out


def _descend(name: str) -> Step:
    own = _field(name)

    def step(found: Iterable[Any]) -> list[Any]:
        out: list[Any] = []
        for one in found:
            out += own([one])
            out += step(_values([one]))
        return out

    return step


def _filter(match: re.Match[str]) -> Step:
    find = compiled(match["path"])
    if match["operator"] is None:
        return lambda found: [item for item in _values(found) if find(item)]
    compare = _OPERATORS[match["operator"]]
    wanted = _literal(match["value"])

    def holds(item: Any) -> bool:
        values = find(item)
        if not values or (isinstance(values[0], str) != isinstance(wanted, str)):
            return False
        return compare(values[0], wanted)

    return lambda found: [item for item in _values(found) if holds(item)]


def _literal(text: str) -> Any:
    if text[:1] in ("'", '"'):
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    return float(text) if "." in text else int(text)
