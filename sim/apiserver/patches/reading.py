"""What the body of a patch says."""

from typing import Any, cast

import yaml

from sim.apiserver.objects import Object
from sim.apiserver.patches.failures import json_type
from sim.apiserver.schema.check import decode_any
from sim.apiserver.schema.yamls import Yaml, load_yaml, yaml_text
from sim.apiserver.status import bad_request

__all__ = ("read_config", "read_patch")


def read_patch(body: bytes, prefix: str) -> tuple[Any, list[str]]:
    """Any JSON value, and complaints about duplicate keys. `prefix`: of what is said about a body that is no JSON.

    Raises StatusError 400.
    """
    try:
        return decode_any(body)
    except ValueError as error:
        raise bad_request(f"{prefix}{error}") from None


def read_config(body: bytes) -> tuple[Object, list[str]]:
    """The configuration to apply: YAML, of which JSON is a part; an empty text is an empty object. Raises StatusError 400."""
    if body.startswith(b"{"):
        try:
            value, duplicates = decode_any(body)
            return _map(value), duplicates
        except ValueError:
            pass  # a flow mapping that is no JSON
    try:
        found: Yaml = load_yaml(body)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: yaml: {yaml_text(error)}") from None
    lines = [f'line {line}: key "{key}" already set in map' for key, line in found.duplicates]
    return _map(found.value), lines


def _map(value: Any) -> Object:
    if isinstance(value, dict):
        return cast("Object", value)
    if value is None:
        return {}
    problem = f"json: cannot unmarshal {json_type(value)} into Go value of type map[string]interface {{}}"
    raise bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {problem}")
