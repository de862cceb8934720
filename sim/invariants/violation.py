"""A promise that was broken."""

from dataclasses import dataclass

__all__ = ("InvariantViolated", "Violation")


@dataclass(frozen=True, slots=True)
class Violation:
    """`invariant`: its name. `at`: virtual seconds."""

    invariant: str
    text: str
    at: float = 0.0

    def __str__(self) -> str:
        return f"{self.invariant} at {self.at:.3f} s: {self.text}"


class InvariantViolated(AssertionError):
    """Ends a run."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation
