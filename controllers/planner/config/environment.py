"""Defaults that come from environment variables: planner.md §1.1. The environment is a mapping that the caller hands in."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from controllers.planner.config.errors import ConfigError

__all__ = ("VARIABLES", "Variable", "with_environment")


class Variable(NamedTuple):
    """Where a default comes from, and what its text means."""

    name: str
    parse: Callable[[str], Any] = str
    wanted: str = ""


def _is_true(text: str) -> bool:
    return text.lower() in ("1", "true", "yes")


def _query(text: str) -> dict[str, str] | None:
    return dict(parse_qsl(text, keep_blank_values=True, strict_parsing=True)) if text else None


VARIABLES: Mapping[str, Variable] = {
    "namespace": Variable("DYN_NAMESPACE"),
    "metric_pulling_prometheus_endpoint": Variable("PROMETHEUS_ENDPOINT"),
    "metric_pulling_prometheus_token": Variable("PROMETHEUS_TOKEN"),
    "metric_pulling_prometheus_token_file": Variable("PROMETHEUS_TOKEN_FILE"),
    "metric_pulling_prometheus_ssl_verify": Variable("PROMETHEUS_SSL_VERIFY", _is_true),
    "metric_pulling_prometheus_extra_query_params": Variable(
        "PROMETHEUS_EXTRA_QUERY_PARAMS", _query, "must look like name=value&name=value"
    ),
    "metric_pulling_prometheus_ca_bundle": Variable("PROMETHEUS_CA_BUNDLE"),
    "metric_pulling_prometheus_request_timeout_seconds": Variable(
        "DYN_PLANNER_PROMETHEUS_REQUEST_TIMEOUT_SECONDS", float, "must be a number"
    ),
    "metric_reporting_prometheus_port": Variable("PLANNER_PROMETHEUS_PORT", int, "must be a whole number"),
}


def with_environment(settings: Mapping[str, Any], env: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Settings filled up from the environment, and field → variable of those that were. ConfigError."""
    origins = {field: variable.name for field, variable in VARIABLES.items() if field not in settings and variable.name in env}
    filled = dict(settings)
    for field, name in origins.items():
        variable = VARIABLES[field]
        try:
            filled[field] = variable.parse(env[name])
        except ValueError:
            raise ConfigError(f"{field}: environment variable {name} {variable.wanted}") from None
    return filled, origins
