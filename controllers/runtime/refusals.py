"""What an error of one operation means for the whole plan. Pure: from exceptions to outcomes."""

from api.plan import Bind, Op, Outcome
from api.reasons import Reason
from controllers.runtime.advice import missing_right
from controllers.runtime.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    ServerBusy,
    TooManyRequests,
    Unauthorized,
)

__all__ = ("RIGHT_MISSING_S", "UNREACHABLE_S", "outcome_of", "refusal_reason")

UNREACHABLE_S = 3.0
"""When to try again after a request that never reached the server. It does not grow: an outage is nobody's fault, and all keys have to come
back soon after it."""
RIGHT_MISSING_S = 15.0
"""When to try again what RBAC refuses. It does not grow either: somebody who mends a role waits to see that it works."""
_FIRST_REFUSAL_S = 60.0
_LONGEST_REFUSAL_S = 600.0


def refusal_reason(error: ApiError, op: Op) -> Reason:
    """Why the server refuses: from the causes, else from the message (quota and admission plugins have no reason of their own)."""
    message = error.message.lower()
    if any(cause.reason == "NamespaceTerminating" for cause in error.details) or "is being terminated" in message:
        return Reason.NAMESPACE_TERMINATING
    if "exceeded quota" in message or "failed quota" in message:
        return Reason.QUOTA_EXCEEDED
    if isinstance(op, Bind):
        return Reason.BIND_REJECTED
    return Reason.FORBIDDEN if error.status == 403 else Reason.INVALID_SPEC


def outcome_of(error: ApiError, op: Op, earlier_refusals: int) -> Outcome:
    """The outcome of a plan whose first failed operation is `op`.

    `earlier_refusals`: how often in a row this key has been refused before; the delay grows with it from 60 to 600 seconds, except where
    a right is missing.
    """
    match error:
        case Conflict() | AlreadyExists():
            return Outcome("conflict", error=str(error), failed_op=op)
        case Invalid() if any(cause.field == "metadata.uid" for cause in error.details):
            # How a patch is answered whose uid is not that of the object: the cache has an earlier life of the name.
            return Outcome("conflict", error=str(error), failed_op=op)
        case TooManyRequests() | ServerBusy() if error.retry_after_s is not None:
            return Outcome("after", error.retry_after_s, str(error), op)
        case TooManyRequests() | ServerBusy() | NotFound() | Unauthorized() | Gone():
            return Outcome("backoff", error=str(error), failed_op=op)
        case Forbidden() if (right := missing_right(error)) is not None:
            return Outcome("blocked", RIGHT_MISSING_S, f"{refusal_reason(error, op)}: {right}", op)
        case _:
            delay_s = min(_LONGEST_REFUSAL_S, _FIRST_REFUSAL_S * 2.0 ** min(earlier_refusals, 16))
            return Outcome("blocked", delay_s, f"{refusal_reason(error, op)}: {error}", op)
