"""What is remembered of a gang between rounds: its verdict, its failed binds, and what was said about it. Times are monotonic seconds."""

from dataclasses import dataclass

from api.plan import Outcome, Why
from api.reasons import Reason
from scheduler.model import Plan, Verdict

__all__ = ("BACKOFF_S", "REPEAT_S", "Memory")

PATIENCE_S = {Reason.WAITING_FOR_BASE_GANG: 2.0}
LONG_PATIENCE_S = 15.0
"""Waits for pods, gates or an Anchor gang are stations of every gang's life, so they are shown only when they last."""
BACKOFF_S = (1.0, 60.0)
"""After a failed bind a gang sits out at least and at most this long; the time doubles with each failure in a row."""
REPEAT_S = 1.0
"""News of a reason that was told already is told at most this often."""


@dataclass(slots=True)
class Memory:
    """See the module. `verdict`: of the last round that looked at the gang. `retry_at`: when it may be planned again.

    `tell_at`: when something may be written about it again, after a write that failed. `said` and `said_at`: the last reason written.
    `has_leftovers`: the plan being carried out leaves pods without a node. `fault`: the last error raised by it.
    """

    verdict: Plan | Verdict | None = None
    score: float | None = None
    waiting_since: float | None = None
    refusals: int = 0
    retry_at: float = 0.0
    refusal: Why | None = None
    tell_at: float = 0.0
    said: Reason | None = None
    said_at: float = 0.0
    has_leftovers: bool = False
    fault: str = ""

    def decided(self, result: Plan | Verdict, now: float) -> None:
        """A round looked at the gang."""
        self.verdict = result
        if isinstance(result, Plan) or result.kind != "waiting":
            self.waiting_since = None
        elif self.waiting_since is None:
            self.waiting_since = now

    def bound(self) -> None:
        """A plan was carried out."""
        self.refusals, self.retry_at, self.refusal = 0, 0.0, None

    def refused(self, outcome: Outcome, now: float) -> float:
        """A plan was not carried out. The gang sits out, so that it does not come first in every round; returns for how long."""
        first_s, longest_s = BACKOFF_S
        if outcome.result == "blocked" and outcome.after_s > 0.0:
            longest_s = min(longest_s, outcome.after_s)  # where a right is missing it is asked again soon
        delay_s = outcome.after_s if outcome.result == "after" else min(longest_s, first_s * 2.0 ** min(self.refusals, 10))
        self.retry_at = now + delay_s
        if outcome.result != "conflict" or self.refusals:
            self.refusal = _refusal(outcome, delay_s)
        self.refusals += outcome.result != "after"
        return delay_s

    def reason(self, now: float) -> tuple[float, Why | None]:
        """(seconds until it may be said, why the gang waits). Waits that usually end by themselves are not announced at once."""
        if self.retry_at > now:
            return 0.0 if self.refusal is not None else self.retry_at - now, self.refusal
        if self.verdict is None:
            return 0.0, None
        if isinstance(self.verdict, Plan):
            return 0.0, None if self.verdict.ready else _releasing(self.verdict)
        if self.verdict.kind != "waiting":
            return 0.0, self.verdict.why
        why = self.verdict.why
        patience_s = PATIENCE_S.get(why.reason, LONG_PATIENCE_S) if why is not None else LONG_PATIENCE_S
        since = self.waiting_since if self.waiting_since is not None else now
        return max(0.0, since + patience_s - now), why

    def silence_s(self, why: Why | None, now: float) -> float:
        """How long nothing may be written yet."""
        repeat_at = self.said_at + REPEAT_S if why is not None and why.reason is self.said else 0.0
        return max(0.0, self.tell_at - now, repeat_at - now)

    def told(self, why: Why | None, now: float) -> None:
        """Something was written."""
        self.said, self.said_at = (why.reason if why is not None else None), now


def _refusal(outcome: Outcome, delay_s: float) -> Why:
    match outcome.result:
        case "after":
            reason, fact = Reason.BIND_UNKNOWN, "The API server could not be reached to bind, or asked to wait"
        case "blocked":
            reason, fact = Reason.BIND_REJECTED, "The API server refused to bind"
        case _:
            reason, fact = Reason.BIND_REJECTED, "Binding failed"
    return Why(reason, f"{fact}: {outcome.error}. Retried in {delay_s:.0f} s.")


def _releasing(plan: Plan) -> Why:
    nodes = sorted({a.node for a in plan.assignments})
    where = ", ".join(nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")
    text = f"Room for {len(plan.assignments)} pods is reserved behind pods that are being deleted on {where}. Bound when those are gone."
    return Why(Reason.QUEUED_BEHIND, text, {"pods": len(plan.assignments), "nodes": len(nodes)})
