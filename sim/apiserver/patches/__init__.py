"""JSON patch, merge patch and strategic merge patch."""

from sim.apiserver.patches.merging import merge_patch
from sim.apiserver.patches.operations import json_patch
from sim.apiserver.patches.reading import read_config, read_patch
from sim.apiserver.patches.strategic import strategic_patch

__all__ = ("json_patch", "merge_patch", "read_config", "read_patch", "strategic_patch")
