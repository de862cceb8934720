"""What the built-in plugins propose: replicas for the load of this moment and for the expected traffic."""

from controllers.planner.propose.load import propose_load
from controllers.planner.propose.reasons import DecisionReason, explain
from controllers.planner.propose.records import Changes, Forecast, LoadInputs, Models, Proposed, ProposeState, ThroughputInputs
from controllers.planner.propose.throughput import propose_throughput

__all__ = (
    "Changes",
    "DecisionReason",
    "Forecast",
    "LoadInputs",
    "Models",
    "ProposeState",
    "Proposed",
    "ThroughputInputs",
    "explain",
    "propose_load",
    "propose_throughput",
)
