"""Load scaling of aggregated engines, which prefill and decode at once, towards both targets. Source: planner.md §12.4."""

from dataclasses import dataclass

from controllers.planner.propose.reasons import DecisionReason
from controllers.planner.propose.records import LoadInputs, Opinion
from controllers.planner.propose.sla import Question, has_token_limit, question_of, settle, survey_decode, survey_prefill

__all__ = ("AggOpinion", "agg_has_spare", "agg_opinion")


@dataclass(frozen=True, slots=True)
class AggOpinion:
    """What the load asks for. replicas None: nothing could be asked. is_refused: one less was too risky for one of the targets.

    estimated_*: the longest times estimated, in milliseconds.
    """

    replicas: int | None
    is_refused: bool = False
    reason: DecisionReason | None = None
    estimated_ttft_ms: float | None = None
    estimated_itl_ms: float | None = None


def agg_opinion(inputs: LoadInputs, ready: int) -> AggOpinion:
    """More if either target is missed everywhere; fewer only if neither target speaks against it."""
    question = question_of(inputs, "decode", ready, leaving=1)
    if isinstance(question, DecisionReason):
        return AggOpinion(None, reason=question)
    prefill, decode = _prefill(question), settle(survey_decode(question), question)
    return AggOpinion(
        _combined(_replicas(prefill, ready), _replicas(decode, ready), ready),
        _is_refused(prefill) or _is_refused(decode),
        None,
        prefill.estimate_ms,
        decode.estimate_ms,
    )


def agg_has_spare(inputs: LoadInputs, ready: int) -> bool:
    """Whether the ready engines alone keep well within both targets."""
    question = question_of(inputs, "decode", ready, leaving=0)
    if isinstance(question, DecisionReason):
        return False
    return has_token_limit(inputs.capabilities, "decode") and survey_prefill(question).has_spare and survey_decode(question).has_spare


def _prefill(question: Question) -> Opinion:
    if not has_token_limit(question.inputs.capabilities, "decode"):
        return Opinion(None)
    return settle(survey_prefill(question), question)


def _is_refused(part: Opinion) -> bool:
    return part.reason is DecisionReason.SCALE_DOWN_REFUSED_CONSOLIDATION


def _replicas(part: Opinion, ready: int) -> int | None:
    """A refusal means as many as there are; only where a target has no opinion may the other one decide alone."""
    return ready if _is_refused(part) else part.replicas


def _combined(prefill: int | None, decode: int | None, ready: int) -> int:
    if prefill is not None and prefill > ready:
        return prefill
    if decode is not None and decode > ready:
        return decode
    if decode is not None and decode < ready:
        if prefill is None:
            return decode
        if prefill < ready:
            return max(prefill, decode)
    return ready
