"""The operator configuration of the commands: a file, or the defaults."""

from pathlib import Path

from api.operatorconfig import ConfigError, OperatorConfiguration, load_operator_configuration

__all__ = ("SHIPPED", "ConfigurationError", "load_configuration")

SHIPPED = Path(__file__).parents[1] / "manifests" / "config" / "controllers.yaml"
"""Our own configuration: what a cluster needs in which nothing but our scheduler binds pods."""


class ConfigurationError(Exception):
    """The configuration cannot be used; the text names the file and the key."""


def load_configuration(path: str | None) -> OperatorConfiguration:
    """The configuration in the file, or the defaults without one. Raises ConfigurationError."""
    if path is None:
        return OperatorConfiguration()
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from error
    try:
        return load_operator_configuration(text)
    except ConfigError as error:
        raise ConfigurationError(f"{path}: {error}") from error
