"""Reads a planner configuration from a file or from text: planner.md §1.2, last paragraph.

Two steps, so that whatever Planner 1.5.1 accepts can still be replayed: `parse_config` accepts and refuses what it does;
`load_config` in addition refuses what it would stumble over later (strict.py).
"""

import difflib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from controllers.planner.config.environment import with_environment
from controllers.planner.config.errors import ConfigError, explain, shortened
from controllers.planner.config.model import PlannerConfig
from controllers.planner.config.strict import late_errors, late_notes

__all__ = ("ConfigError", "load_config", "parse_config", "read_settings")

ALIASES = {
    "throughput_adjustment_interval": "throughput_adjustment_interval_seconds",
    "load_adjustment_interval": "load_adjustment_interval_seconds",
    "ttft": "ttft_ms",
    "itl": "itl_ms",
}


def load_config(text_or_path: str, env: Mapping[str, str]) -> PlannerConfig:
    """Configuration from the file of that name if there is one, else from the text itself. `env` gives some defaults. ConfigError."""
    config = parse_config(read_settings(text_or_path), env)
    if errors := late_errors(config):
        raise ConfigError("\n".join(errors))
    return config.with_notes(late_notes(config))


def parse_config(settings: Mapping[str, Any], env: Mapping[str, str]) -> PlannerConfig:
    """What Planner 1.5.1 accepts at start, with notes about keys that have no effect. ConfigError."""
    filled, origins = with_environment(settings, env)
    try:
        config = PlannerConfig.model_validate(filled)
    except ValidationError as error:
        raise explain(error, origins) from None
    return config.with_notes(_key_notes(settings))


def _key_notes(settings: Mapping[str, Any]) -> tuple[str, ...]:
    known = [*PlannerConfig.model_fields, *ALIASES]
    notes: list[str] = []
    for key in map(str, settings):
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            notes.append(f"{key} is ignored: there is no such key" + (f"; is {close[0]} meant?" if close else ""))
        elif key in ALIASES and ALIASES[key] in settings:
            notes.append(f"{key} is ignored: {ALIASES[key]} is given too")
    return tuple(notes)


def read_settings(text_or_path: str) -> dict[str, Any]:
    """Keys and values as written, nothing checked. ConfigError with the line where the text is malformed."""
    path = _path(text_or_path)
    if path is None:
        return _mapping(_json if text_or_path.lstrip().startswith("{") else _yaml, text_or_path, "the text")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as UTF-8 text: {error}") from None
    parse = {".yaml": _yaml, ".yml": _yaml, ".json": _json}.get(path.suffix, _either)
    return _mapping(parse, text, str(path))


def _path(text_or_path: str) -> Path | None:
    """The file, None if this is no name of one."""
    try:
        path = Path(text_or_path)
        return path if path.is_file() else None
    except (OSError, ValueError):
        # Too long for a name, or with characters that names cannot have.
        return None


def _mapping(parse: Callable[[str], Any], text: str, source: str) -> dict[str, Any]:
    try:
        settings = parse(text)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{source}: cannot be read: {error}") from None
    if isinstance(settings, dict):
        return settings  # pyright: ignore[reportUnknownVariableType] - any mapping
    if source == "the text" and isinstance(settings, str):
        raise ConfigError(f"{shortened(text)!r} is neither a file nor a configuration as JSON or YAML")
    raise ConfigError(f"{source}: must be a mapping of keys to values")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ConfigError(f"line {error.lineno}, column {error.colno}: no JSON: {error.msg}") from None


def _yaml(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ConfigError(f"{where}no YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"no YAML: {' '.join(str(error).split())}") from None


def _either(text: str) -> Any:
    """JSON, else YAML. Of two errors, that of the form which the text seems to have."""
    try:
        return _json(text)
    except ConfigError as error:
        try:
            return _yaml(text)
        except ConfigError:
            if text.lstrip().startswith("{"):
                raise error from None
            raise
