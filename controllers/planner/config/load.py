"""Reads a planner configuration from a file or from text, and refuses what could only fail later."""

from collections.abc import Mapping

from controllers.planner.config.model import PlannerConfig

__all__ = ("ConfigError", "load_config")


class ConfigError(ValueError):
    """A configuration that cannot be used. The text names the field and what to do; several errors are lines of it."""


def load_config(text_or_path: str, env: Mapping[str, str]) -> PlannerConfig:
    """Configuration from the file of that name if there is one, else from the text itself. `env` gives some defaults. ConfigError."""
    raise NotImplementedError
