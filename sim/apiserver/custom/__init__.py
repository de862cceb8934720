"""Custom resources: what a CustomResourceDefinition must be, and the resource that it makes."""

from sim.apiserver.custom.naming import accepted, is_established
from sim.apiserver.custom.resource import resource_of
from sim.apiserver.custom.strategies import CustomStrategy, DefinitionStrategy
from sim.apiserver.custom.validation import validate_crd

__all__ = ("CustomStrategy", "DefinitionStrategy", "accepted", "is_established", "resource_of", "validate_crd")
