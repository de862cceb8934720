"""Controllers and scheduler under test: one pair at a time, against the session's control plane."""

import contextlib
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from hack.daemon import CONTROLLERS_CONFIG, Daemon, controllers, scheduler

__all__ = ("Grovekeeper",)


@dataclass(slots=True)
class Grovekeeper:
    """The pair of processes. They are swapped, not doubled: two pairs without leader election would work against each other."""

    kubeconfig: Path
    directory: Path
    controllers: Daemon
    scheduler: Daemon

    @classmethod
    def on(cls, kubeconfig: Path, directory: Path) -> "Grovekeeper":
        """A pair that is not started yet, with the configuration that we ship."""
        return cls(kubeconfig, directory, controllers(kubeconfig, directory), scheduler(kubeconfig, directory))

    @property
    def both(self) -> tuple[Daemon, Daemon]:
        return self.controllers, self.scheduler

    def start(self) -> None:
        """Start what does not run and wait until both are ready."""
        waiting = [daemon for daemon in self.both if daemon.pid is None]
        for daemon in waiting:
            daemon.launch()
        for daemon in waiting:
            daemon.wait_ready()

    def stop(self) -> None:
        for daemon in self.both:
            daemon.stop()

    @contextlib.contextmanager
    def scheduler_paused(self) -> Generator[None]:
        """The scheduler sleeps for a while and sees afterwards what has changed, all at once."""
        self.scheduler.pause()
        try:
            yield
        finally:
            # Its watches have to receive everything before it wakes up.
            time.sleep(0.2)
            self.scheduler.resume()

    @contextlib.contextmanager
    def replaced(self, *, kubeconfig: Path | None = None, config: Path = CONTROLLERS_CONFIG) -> Generator["Grovekeeper"]:
        """For a while the pair runs with another way to the API server or another configuration."""
        self.stop()
        target = kubeconfig or self.kubeconfig
        other = Grovekeeper(target, self.directory, controllers(target, self.directory, config=config), scheduler(target, self.directory))
        try:
            other.start()
            yield other
        finally:
            other.stop()
            self.start()

    def tails(self, n_lines: int = 20) -> str:
        """End of both logs, for failure messages."""
        return "\n".join(f"{daemon.name}:\n{daemon.tail(n_lines)}" for daemon in self.both)
