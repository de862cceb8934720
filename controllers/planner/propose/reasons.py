"""Why load and throughput scaling decided as they did: the closed list of reasons in diagnostics, metrics and explanations."""

from enum import StrEnum

__all__ = ("LOAD_STRENGTH", "DecisionReason", "explain")


class DecisionReason(StrEnum):
    """Values are those of recorded output; the last four are not in Planner 1.5.1. New ones are only ever added."""

    DISABLED = "disabled"
    NO_FPM_DATA = "no_fpm_data"
    SCALING_IN_PROGRESS = "scaling_in_progress"
    WORKER_COUNT_MISMATCH = "worker_count_mismatch"
    INSUFFICIENT_DATA = "insufficient_data"
    NO_CHANGE = "no_change"
    SCALE_UP = "scale_up"
    SCALE_DOWN = "scale_down"
    SCALE_DOWN_CAPPED_BY_THROUGHPUT = "scale_down_capped_by_throughput"
    SCALE_DOWN_REFUSED_CONSOLIDATION = "scale_down_refused_consolidation"
    NO_TRAFFIC_DATA = "no_traffic_data"
    PREDICT_FAILED = "predict_failed"
    MODEL_NOT_READY = "model_not_ready"
    PARTNER_NOT_READY = "partner_not_ready"
    SET_LOWER_BOUND = "set_lower_bound"
    SCALE = "scale"
    WORKER_COUNT_UNKNOWN = "worker_count_unknown"
    FPM_INVALID = "fpm_invalid"
    PREDICTION_INVALID = "prediction_invalid"
    PENDING_TAKEN_BACK = "pending_taken_back"


LOAD_STRENGTH: tuple[DecisionReason, ...] = (
    DecisionReason.SCALE_UP,
    DecisionReason.SCALE_DOWN_CAPPED_BY_THROUGHPUT,
    DecisionReason.SCALE_DOWN,
    DecisionReason.NO_CHANGE,
)
"""Of two roles, the reason that comes first here speaks for both."""

_TEXTS: dict[DecisionReason, str] = {
    DecisionReason.DISABLED: "load scaling is switched off; metrics of engines only feed the performance model",
    DecisionReason.NO_FPM_DATA: "no engine has reported forward pass metrics",
    DecisionReason.SCALING_IN_PROGRESS: "an earlier change is under way: ready and expected replicas differ, or a rollout runs",
    DecisionReason.WORKER_COUNT_MISMATCH: "the engines that report are not exactly those that are ready",
    DecisionReason.INSUFFICIENT_DATA: "the performance model, a capability of the engines or a threshold is missing",
    DecisionReason.NO_CHANGE: "the load asks for neither more nor fewer replicas, or limits leave the number as it is",
    DecisionReason.SCALE_UP: "the load asks for one replica more, or a floor raises the number",
    DecisionReason.SCALE_DOWN: "the load can be served by one replica less, or a ceiling lowers the number",
    DecisionReason.SCALE_DOWN_CAPPED_BY_THROUGHPUT: "the load would allow fewer replicas; the expected traffic or a floor does not",
    DecisionReason.SCALE_DOWN_REFUSED_CONSOLIDATION: (
        "with one replica less the others would come too close to a target or run out of KV cache"
    ),
    DecisionReason.NO_TRAFFIC_DATA: "there is no traffic of the window to predict from",
    DecisionReason.PREDICT_FAILED: "the predictor failed on the traffic seen so far",
    DecisionReason.MODEL_NOT_READY: "the performance model cannot yet tell what one replica can serve",
    DecisionReason.PARTNER_NOT_READY: "this role could be decided, but the other one's performance model is not ready",
    DecisionReason.SET_LOWER_BOUND: "the expected traffic sets the fewest replicas; load scaling decides above that",
    DecisionReason.SCALE: "replicas follow the expected traffic",
    DecisionReason.WORKER_COUNT_UNKNOWN: "the number of ready replicas is missing or no number, so nothing is changed",
    DecisionReason.FPM_INVALID: (
        "metrics of an engine have another version, no worker id or impossible numbers, so the role is left as it is"
    ),
    DecisionReason.PREDICTION_INVALID: "the expected traffic is no finite number, so nothing is changed",
    DecisionReason.PENDING_TAKEN_BACK: "the ready replicas suffice, so requested ones that never became ready are taken back",
}


def explain(reason: DecisionReason) -> str:
    """One line for people, without a full stop."""
    return _TEXTS[reason]
