"""Load scaling towards targets of time to first token and between tokens, role by role. Source: planner.md §12.3."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from controllers.planner.perfmodel import Group, PerformanceModel
from controllers.planner.propose.reasons import DecisionReason
from controllers.planner.propose.records import LoadInputs, Opinion, finite
from controllers.planner.types import Capabilities, Role

__all__ = (
    "Question",
    "Survey",
    "Trial",
    "has_token_limit",
    "question_of",
    "settle",
    "sla_has_spare",
    "sla_opinion",
    "survey_decode",
    "survey_prefill",
)


@dataclass(frozen=True, slots=True)
class Question:
    """A role whose model can answer. leaving: how many of the ready engines are to go, 1, or 0 to ask only whether those here suffice."""

    inputs: LoadInputs
    role: Role
    model: PerformanceModel
    groups: Sequence[Group]
    ready: int
    leaving: int

    @property
    def may_shrink(self) -> bool:
        """Whether any engine would be left."""
        return self.ready > self.leaving

    @property
    def shrink(self) -> float:
        """The factor of each engine's load once those that are to go are gone."""
        return self.ready / (self.ready - self.leaving) if self.may_shrink else 1.0

    @property
    def sensitivity(self) -> float:
        """Part of a target that may be used up after a scale-down."""
        return self.inputs.config.load_scaling_down_sensitivity / 100

    @property
    def kv_hit_rate(self) -> float | None:
        given = finite(self.inputs.kv_hit_rate)
        return self.inputs.state.kv_hit_rate if given is None else given

    @property
    def accept_length(self) -> float:
        """Tokens per decode step; 1 where what is given is none."""
        given = finite(self.inputs.accept_length)
        length = self.inputs.state.accept_length if given is None else given
        return length if length > 0 else 1.0


class Trial(NamedTuple):
    """One test of a group before one less is decided. of: "time" in milliseconds, or "kv", tokens. Passed if value < limit."""

    worker_id: str
    of: Literal["time", "kv"]
    value: float
    limit: float


@dataclass(slots=True)
class Survey:
    """What the groups of a role say so far. Once lost, may_shrink is lost for all; is_refused: as the others could not take the load.

    trials: for explanations.
    """

    target_ms: float
    may_shrink: bool
    is_refused: bool = False
    estimates_ms: list[float] = field(default_factory=list[float])
    trials: list[Trial] = field(default_factory=list[Trial])

    def estimate(self, seconds: float | None, tokens: float = 1.0) -> None:
        """Of a step that gives so many tokens. Groups that nothing can be told of are left out."""
        if seconds is not None:
            self.estimates_ms.append(seconds * 1000.0 / tokens)

    def test(self, trial: Trial) -> bool:
        """Whether it is passed; if not, one less is refused."""
        self.trials.append(trial)
        if trial.value < trial.limit:
            return True
        self.may_shrink, self.is_refused = False, True
        return False

    @property
    def is_missed(self) -> bool:
        """Whether no group keeps to the target."""
        return bool(self.estimates_ms) and all(estimate > self.target_ms for estimate in self.estimates_ms)

    @property
    def has_spare(self) -> bool:
        """Whether all that is known keeps to the target, with what is to go gone."""
        return bool(self.estimates_ms) and self.may_shrink and not self.is_missed


def has_token_limit(capabilities: Capabilities, role: Role) -> bool:
    """Whether it is known how many tokens a step prefills."""
    facts = capabilities.of(role)
    return facts is not None and (facts.max_num_batched_tokens or 0) > 0


def question_of(inputs: LoadInputs, role: Role, ready: int, leaving: int) -> Question | DecisionReason:
    """Or why it cannot be asked."""
    model = inputs.models.of(role)
    if model is None or not model.ready:
        return DecisionReason.INSUFFICIENT_DATA
    fpms = inputs.fpm_of(role)
    groups = model.groups(fpms)
    if sum(len(group.ranks) for group in groups) != len(fpms):
        return DecisionReason.FPM_INVALID
    return Question(inputs, role, model, groups, ready, leaving)


def sla_opinion(inputs: LoadInputs, role: Role, ready: int) -> Opinion:
    """One replica more if every engine misses the target, one less if all others would still keep well within it."""
    question = _asked(inputs, role, ready, leaving=1)
    if isinstance(question, DecisionReason):
        return Opinion(None, question)
    survey = survey_prefill(question) if role == "prefill" else survey_decode(question)
    return settle(survey, question)


def sla_has_spare(inputs: LoadInputs, role: Role, ready: int) -> bool:
    """Whether the ready engines alone keep well within the target, by the rule of scaling down with nothing to go."""
    question = _asked(inputs, role, ready, leaving=0)
    if isinstance(question, DecisionReason):
        return False
    return (survey_prefill(question) if role == "prefill" else survey_decode(question)).has_spare


def settle(survey: Survey, question: Question) -> Opinion:
    """The answer that follows from the groups. One less never means none, nor fewer than the minimum."""
    ready, longest = question.ready, max(survey.estimates_ms, default=None)
    if survey.is_missed:
        return Opinion(ready + 1, None, longest)
    if survey.estimates_ms and ready > 1 and survey.may_shrink:
        return Opinion(max(ready - 1, question.inputs.config.effective_min(question.role)), None, longest)
    if survey.is_refused:
        return Opinion(None, DecisionReason.SCALE_DOWN_REFUSED_CONSOLIDATION, longest)
    return Opinion(None, DecisionReason.NO_CHANGE if survey.estimates_ms else DecisionReason.INSUFFICIENT_DATA, longest)


def survey_prefill(question: Question) -> Survey:
    """Time to first token. The next request's own time counts apart: no scaling makes it shorter.

    With one engine less, aggregated engines also decode more; prefill workers do not decode at all.
    """
    config, ask, rate, shrink = question.inputs.config, question.model.queued_prefill_time_s, question.kv_hit_rate, question.shrink
    survey = Survey(config.ttft_ms, may_shrink=question.may_shrink)
    for group in question.groups:
        survey.estimate(ask(group, kv_hit_rate=rate))
        if not survey.may_shrink:
            continue
        own = ask(group, kv_hit_rate=rate, queue_scale=0.0, decode_scale=shrink, include_queued_decode=True)
        if own is None:
            survey.may_shrink = False
            continue
        budget_ms = (config.ttft_ms - own * 1000.0) * question.sensitivity
        if budget_ms <= 0:
            survey.test(Trial(group.worker_id, "time", 0.0, budget_ms))
            continue
        post = ask(group, kv_hit_rate=rate, queue_scale=shrink, decode_scale=shrink, include_queued_decode=True)
        if post is None:
            survey.may_shrink = False
        else:
            survey.test(Trial(group.worker_id, "time", post * 1000.0 - own * 1000.0, budget_ms))
    return survey


def survey_decode(question: Question) -> Survey:
    """Time between tokens. Prompts that wait for aggregated engines will be KV cache once engines are fewer."""
    config, ask, per_step = question.inputs.config, question.model.decode_itl_s, question.accept_length
    survey = Survey(config.itl_ms, may_shrink=question.may_shrink)
    is_mixed = question.model.kind == "aggregated"
    for group in question.groups:
        survey.estimate(ask(group, include_queued_decode=True), per_step)
        if not survey.may_shrink:
            continue
        if not _fits(survey, question, group):
            continue
        post = ask(group, decode_scale=question.shrink, include_queued_decode=True, include_queued_prefill=is_mixed)
        if post is None:
            survey.may_shrink = False
        else:
            survey.test(Trial(group.worker_id, "time", post * 1000.0 / per_step, config.itl_ms * question.sensitivity))
    return survey


def _fits(survey: Survey, question: Question, group: Group) -> bool:
    """Whether the KV cache holds the load once one engine is gone. Truncated, not rounded up: planner.md §27 10."""
    facts = question.inputs.capabilities.decode
    most = None if facts is None else facts.max_kv_tokens
    if most is None:
        return True
    prompts = question.model.kind == "aggregated"
    used = max(
        fpm.scheduled_requests.sum_decode_kv_tokens
        + fpm.queued_requests.sum_decode_kv_tokens
        + (fpm.queued_requests.sum_prefill_tokens if prompts else 0)
        for fpm in group.ranks
    )
    return survey.test(Trial(group.worker_id, "kv", int(used * question.shrink), most))


def _asked(inputs: LoadInputs, role: Role, ready: int, leaving: int) -> Question | DecisionReason:
    if ready <= 0 or (role == "prefill" and not has_token_limit(inputs.capabilities, role)):
        return DecisionReason.INSUFFICIENT_DATA
    return question_of(inputs, role, ready, leaving)
