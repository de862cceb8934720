"""The operator configuration of the commands: a file, or the defaults."""

from collections.abc import Mapping
from pathlib import Path

from api.operatorconfig import ConfigError, OperatorConfiguration, load_operator_configuration

__all__ = ("INIT_IMAGE_VARIABLE", "SHIPPED", "ConfigurationError", "load_configuration", "with_environment")

SHIPPED = Path(__file__).parents[1] / "manifests" / "config" / "controllers.yaml"
"""Our own configuration: what a cluster needs in which nothing but our scheduler binds pods."""

INIT_IMAGE_VARIABLE = "GROVE_INIT_CONTAINER_IMAGE"
"""Environment variable with the image of the startup waiter (grove.md §3). Manifests set it to the image of the process itself."""


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


def with_environment(config: OperatorConfiguration, environment: Mapping[str, str]) -> OperatorConfiguration:
    """The configuration with what the environment says about the image of the startup waiter, unless its file names one."""
    image, own = environment.get(INIT_IMAGE_VARIABLE, ""), config.grovekeeper
    if not image or "init_container_image" in own.model_fields_set:
        return config
    return config.model_copy(update={"grovekeeper": own.model_copy(update={"init_container_image": image})})
