"""Both compilers of schemas under one name."""

from sim.apiserver.schema.openapi import compile_openapi
from sim.apiserver.schema.structural import compile_structural

__all__ = ("compile_openapi", "compile_structural")
