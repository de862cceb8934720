"""Custom resources: what a CustomResourceDefinition must be, and the resource that it makes."""

from sim.apiserver.custom.naming import accepted, emptied, is_established, terminating
from sim.apiserver.custom.resource import resource_of
from sim.apiserver.custom.strategies import CustomStrategy, DefinitionStrategy
from sim.apiserver.custom.validation import validate_crd

__all__ = ("CustomStrategy", "DefinitionStrategy", "accepted", "emptied", "is_established", "resource_of", "terminating", "validate_crd")
