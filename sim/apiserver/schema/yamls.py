"""YAML to JSON data as the server reads it: first document only, YAML 1.1 scalars, no timestamps, duplicates noted, aliases limited."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# JSON data is told apart by isinstance, which says nothing about what is inside.

import re
from dataclasses import dataclass
from typing import Any, Final

import yaml
from yaml.scanner import ScannerError

__all__ = ("Yaml", "load_yaml", "yaml_text")

_MAX_NODES: Final = 1_000_000
_MAX_DEPTH: Final = 900
_TEXTS: Final = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"expected the node content, but found .*", "did not find expected node content"),
        (r"expected <block end>, but found .*", "did not find expected key"),
        (r"expected (',' or '.'), but got .*", r"did not find expected \1"),
        (r"expected '<document start>', but found .*", "did not find expected <document start>"),
        (r"mapping values are not allowed here", "mapping values are not allowed in this context"),
        (r"found character .* that cannot start any token", "found character that cannot start any token"),
        (r"found undefined alias '?(\w+)'?", r"unknown anchor '\1' referenced"),
    )
)
"""From the words of this parser to those of the server's."""


@dataclass(frozen=True, slots=True)
class Yaml:
    """`duplicates`: keys that are set again, with the line."""

    value: Any
    duplicates: list[tuple[str, int]]


_RESOLVERS: Final = {
    first: [(tag, pattern) for tag, pattern in known if tag != "tag:yaml.org,2002:timestamp"]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
"""JSON has no dates: what looks like one stays a text."""


class _Resolver(yaml.SafeLoader):
    """Says most exactly what is wrong."""

    yaml_implicit_resolvers = _RESOLVERS


class _FastResolver(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # pyright: ignore
    """Ten times as fast: a large document would hold up everybody else."""

    yaml_implicit_resolvers = _RESOLVERS


def load_yaml(body: bytes) -> Yaml:
    """Raises yaml.YAMLError, and ValueError for what is too large or too deep."""
    try:
        return _loaded(_FastResolver(body))
    except yaml.YAMLError:
        return _loaded(_Resolver(body))


def _loaded(loader: Any) -> Yaml:
    try:
        loader.check_node()
        node = loader.get_node() if loader.check_node() else None
        reader = _Reader(loader)
        return Yaml(None if node is None else reader.read(node, 0), reader.duplicates)
    finally:
        loader.dispose()


class _Reader:
    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.duplicates: list[tuple[str, int]] = []
        self.count = 0

    def read(self, node: yaml.Node, depth: int) -> Any:
        self.count += 1
        if self.count > _MAX_NODES:
            raise ValueError("document contains excessive aliasing")
        if depth > _MAX_DEPTH:
            raise ValueError("exceeded max depth of 10000")
        if isinstance(node, yaml.MappingNode):
            self.loader.flatten_mapping(node)
            return self._map(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, depth + 1) for item in node.value]
        value = self.loader.construct_object(node)
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    def _map(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _text(self.read(key_node, depth + 1))
            if key in out:
                self.duplicates.append((key, key_node.start_mark.line + 1))
            out[key] = self.read(value_node, depth + 1)
        return out


def _text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else key if isinstance(key, str) else str(key)


def yaml_text(error: Exception) -> str:
    """What is wrong with a document that `load_yaml` refused, in the server's words."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return str(error) or "exceeded max depth of 10000"
    marks = (error.problem_mark, error.context_mark)
    line = next((line for mark in marks if mark is not None and (line := _line(mark, isinstance(error, ScannerError)))), 0)
    problem = str(error.problem)
    for pattern, text in _TEXTS:
        problem = pattern.sub(text, problem)
    if problem == "did not find expected key" and "collection" in str(error.context):
        problem = "did not find expected '-' indicator"
    return f"line {line}: {problem}" if line else problem


def _line(mark: yaml.Mark, is_scanning: bool) -> int:
    """The line that the server names, 0 for none: its parser counts from 0 and ends every text with a line break, its scanner counts from 1
    but for the first."""
    line = mark.line
    if not is_scanning and mark.column and mark.buffer is not None and mark.buffer[mark.pointer : mark.pointer + 1] in ("", "\0"):
        line += 1
    return line + 1 if line and is_scanning else line
