"""Our long-running programs by component, for those who run them inside something else."""

from collections.abc import Callable, Mapping

from cli import controllers, scheduler
from controllers.runtime.assembly import Runtime

__all__ = ("PROGRAMS",)

PROGRAMS: Mapping[str, Callable[[Runtime], None]] = {"controllers": controllers.build, "scheduler": scheduler.build}
