"""Reading manifests from files, with errors that name the file and what to do."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import yaml

from api.plan import Manifest

__all__ = ("ManifestError", "load")


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
        yield "standard input", sys.stdin.read()
        return
    place = Path(path)
    files = sorted(p for p in place.iterdir() if p.suffix in (".yaml", ".yml", ".json")) if place.is_dir() else [place]
    for file in files:
        try:
            yield str(file), file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ManifestError(f"{file}: cannot be read: {error}") from error


def _documents(name: str, text: str) -> Iterator[object]:
    try:
        yield from yaml.load_all(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ManifestError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from error


class _Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # pyright: ignore
    """Safe loading that leaves timestamps as text and refuses a key that is given twice, as the API server's strict decoding does."""


def _mapping(loader: Any, node: yaml.MappingNode) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    out: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if isinstance(key, (dict, list)):
            raise yaml.constructor.ConstructorError(None, None, "a mapping key must be text", key_node.start_mark)
        if key in out:
            raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is given twice", key_node.start_mark)
        out[key] = loader.construct_object(value_node, deep=True)
    return out


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)  # pyright: ignore[reportUnknownMemberType]
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
