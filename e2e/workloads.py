"""PodCliqueSets for end-to-end tests: those of simulations."""

from sim.workloads import POOL, TOPOLOGY, binding, clique, group, pack, pcs, wl1, wl2

__all__ = ("POOL", "TOPOLOGY", "binding", "clique", "group", "pack", "pcs", "wl1", "wl2")
