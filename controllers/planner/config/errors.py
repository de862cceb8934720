"""How a configuration that cannot be used is explained."""

import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

__all__ = ("ConfigError", "explain", "shortened")

SECRETS = {"static_secrets", "auth_token", "metric_pulling_prometheus_token", "metric_pulling_prometheus_extra_query_params"}
KEYED_BY_SECRETS = {"static_secrets", "metric_pulling_prometheus_extra_query_params"}
UNSHOWN = {"missing", "extra_forbidden", "model_type", "dict_type"}
SHOWN = 60
LINE = 400
ENUM_MEMBER = re.compile(r"<[\w.]+: ('[^']*')>")


class ConfigError(ValueError):
    """A configuration that cannot be used. The text names the field and what to do; several errors are lines of it."""


def explain(error: ValidationError, origins: Mapping[str, str] | None = None) -> ConfigError:
    """All that is wrong, a line each. origins: field → environment variable that its value came from."""
    return ConfigError("\n".join(_line(item, origins or {}) for item in error.errors(include_url=False)))


def _line(item: ErrorDetails, origins: Mapping[str, str]) -> str:
    path = ".".join(_shown(item["loc"]))
    problem = _problem(item)
    if not path:
        return shortened(problem, LINE)
    origin = origins.get(str(item["loc"][0]))
    return f"{path}: {problem}{_given(item)}" + (f" (from environment variable {origin})" if origin else "")


def _shown(loc: Sequence[int | str]) -> Iterator[str]:
    """Parts of a path, without keys that are secrets themselves."""
    for before, part in zip((None, *loc), loc, strict=False):
        yield "(a secret)" if before in KEYED_BY_SECRETS else str(part)


def _problem(item: ErrorDetails) -> str:
    match item["type"]:
        case "missing":
            return "is required: add it"
        case "extra_forbidden":
            return "there is no such key: remove it or correct its name"
        case "model_type" | "dict_type":
            return "must be an object"
        case _:
            text = item["msg"].removeprefix("Value error, ")
            return ENUM_MEMBER.sub(r"\1", text).replace("Input should be", "must be").replace("Input should", "must")


def _given(item: ErrorDetails) -> str:
    """What was given instead, unless that is a secret, an object, or nothing."""
    value = item["input"]
    if item["type"] in UNSHOWN or not isinstance(value, str | int | float) or SECRETS & set(map(str, item["loc"])):
        return ""
    text = repr(value) if isinstance(value, str | float) or value.bit_length() <= SHOWN else "a larger number"
    return f", is {shortened(text)}"


def shortened(text: str, limit: int = SHOWN) -> str:
    """At most `limit` characters of it."""
    return text if len(text) <= limit else text[:limit] + "…"
