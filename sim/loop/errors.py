"""How a simulated run can fail by itself, apart from the failures of what runs in it."""

__all__ = ("DeadlockError", "LeakedTasksError", "LivelockError", "NotSimulatedError", "SimulationError", "UnhandledError")


class SimulationError(Exception):
    """A run that cannot go on, or may not count as successful."""


class DeadlockError(SimulationError):
    """Nothing is ready, no timer runs, and the main task has not ended."""


class LivelockError(SimulationError):
    """Very many callbacks ran while no time passed."""


class LeakedTasksError(SimulationError):
    """The main task ended and left tasks behind."""


class UnhandledError(SimulationError):
    """A callback or a task that nobody awaits raised an exception."""


class NotSimulatedError(SimulationError, RuntimeError):
    """The program asked for something that has no place in a deterministic run: threads, sockets, subprocesses, signals, real sleep."""
