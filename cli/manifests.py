"""Reading manifests from files, with errors that name the file and what to do."""

import sys
from collections.abc import Iterable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any, cast

import yaml

from api.plan import Manifest

__all__ = ("ManifestError", "load")

MAX_VALUES, MAX_DEPTH = 1_000_000, 900
"""Of a document when every alias is written out."""
INT64, UINT64 = 2**63, 2**64


class ManifestError(Exception):
    """A file cannot be read as manifests; the text says which file, where and why."""


def load(paths: Iterable[str]) -> Iterator[tuple[str, Manifest]]:
    """(file name, object) of every object in the files, in order. `-` is standard input, a folder means its *.yaml, *.yml and *.json.

    `kind: List` is unfolded. Raises ManifestError.
    """
    for path in paths:
        for name, text in _texts(path):
            for document in _documents(name, text):
                yield from ((name, item) for item in _items(name, document))


def _texts(path: str) -> Iterator[tuple[str, str]]:
    if path == "-":
        yield "standard input", _standard_input()
        return
    if not path:
        raise ManifestError('"" is no name of a file')
    place = Path(path)
    try:
        files = sorted(p for p in place.iterdir() if p.suffix in (".yaml", ".yml", ".json")) if place.is_dir() else [place]
    except OSError as error:
        raise ManifestError(f"{place}: cannot be read: {error}") from error
    for file in files:
        try:
            yield str(file), file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ManifestError(f"{file}: cannot be read: {error}") from error


def _standard_input() -> str:
    stream: Any = sys.stdin  # None in a process that was started without one
    if stream is None:
        raise ManifestError("standard input: is closed")
    try:
        return stream.read()
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"standard input: cannot be read: {error}") from error


def _documents(name: str, text: str) -> Iterator[object]:
    try:
        for document in yaml.load_all(text, Loader=_Loader):
            _check_size(document)
            yield document
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from error


def _check_size(document: object) -> None:
    """Raises ValueError for what aliases make too large, too deep or endless."""
    count, found = 0, [(document, 1)]
    while found:
        value, depth = found.pop()
        count += 1
        if count > MAX_VALUES:
            raise ValueError("document contains excessive aliasing")
        if depth > MAX_DEPTH:
            raise ValueError("document is nested too deeply")
        if isinstance(value, dict):
            found.extend((item, depth + 1) for item in cast("dict[str, object]", value).values())
        elif isinstance(value, list):
            found.extend((item, depth + 1) for item in cast("list[object]", value))


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # pyright: ignore
    """Safe loading that gives what JSON can say: keys and timestamps are text, numbers are finite. A key that is given twice is refused, as
    the API server's strict decoding does."""


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    out: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key: object = loader.construct_object(key_node, deep=True)
        if isinstance(key, (dict, list)):
            raise yaml.constructor.ConstructorError(None, None, "a mapping key must be text", key_node.start_mark)
        if not isinstance(key, str):
            key = "null" if key is None else str(key).lower()
        if key in out:
            raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
        out[key] = loader.construct_object(value_node, deep=True)
    return out


def _integer(loader: Any, node: yaml.ScalarNode) -> int:
    value: int = loader.construct_yaml_int(node)
    if not -INT64 <= value < UINT64:
        raise yaml.constructor.ConstructorError(None, None, "a number is out of range", node.start_mark)
    return value


def _real(loader: Any, node: yaml.ScalarNode) -> float:
    value: float = loader.construct_yaml_float(node)
    if not isfinite(value):
        raise yaml.constructor.ConstructorError(None, None, f"unsupported value: {node.value}", node.start_mark)
    return value


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)  # pyright: ignore[reportUnknownMemberType]
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)  # pyright: ignore[reportUnknownMemberType]
_Loader.add_constructor("tag:yaml.org,2002:float", _real)  # pyright: ignore[reportUnknownMemberType]
_Loader.add_constructor("tag:yaml.org,2002:timestamp", yaml.constructor.SafeConstructor.construct_yaml_str)  # pyright: ignore


def _items(name: str, document: object) -> Iterator[Manifest]:
    if document is None:
        return
    if not isinstance(document, dict):
        raise ManifestError(f"{name}: a document is not an object with apiVersion, kind and metadata")
    manifest = cast("Manifest", document)
    for field in ("apiVersion", "kind"):
        if not isinstance(manifest.get(field), str):
            raise ManifestError(f"{name}: a document has no {field}: write for example apiVersion: grove.io/v1alpha1, kind: PodCliqueSet")
    if manifest["kind"] == "List":
        items: object = manifest.get("items") or []
        if not isinstance(items, list):
            raise ManifestError(f"{name}: a List whose items is not a list")
        for item in cast("list[object]", items):
            yield from _items(name, item)
    else:
        yield manifest
