"""How long engines take: learned from what they report, or from AI Configurator."""

from controllers.planner.perfmodel.capacity import Capacity
from controllers.planner.perfmodel.model import Group, PerformanceModel
from controllers.planner.perfmodel.options import AicIdentity, ModelDiagnostics, ModelOptions

__all__ = ("AicIdentity", "Capacity", "Group", "ModelDiagnostics", "ModelOptions", "PerformanceModel")
