"""Topology domains of nodes: per level of a tree, the domain that each node is in.

A domain is identified by the label values on the path from the top, so equal rack names in two blocks are two racks. A node that lacks
any level's label is outside the tree (scheduler.md §1.3, §8 edge rule 3).
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ("Ints", "Path", "TreeIndex")

Ints: TypeAlias = npt.NDArray[np.int64]
Path: TypeAlias = tuple[str, ...]
OUTSIDE = -1


class TreeIndex:
    """Domain numbers per level and row. Numbers only grow.

    `domains`: int64 [levels, rows], -1 for rows outside.
    """

    def __init__(self, keys: tuple[str, ...], rows: int) -> None:
        self.keys = keys
        self.domains: Ints = np.full((len(keys), rows), OUTSIDE, dtype=np.int64)
        self._paths: list[list[Path]] = [[] for _ in keys]
        self._ids: list[dict[Path, int]] = [{} for _ in keys]
        self._parents: list[list[int]] = [[] for _ in keys]
        self._ranks: dict[tuple[int, int], Ints] = {}

    def copy(self) -> "TreeIndex":
        """An index that shares nothing with this one, which a plan may be reading in another thread."""
        twin = TreeIndex(self.keys, 0)
        twin.domains = self.domains.copy()
        twin._paths, twin._parents = [p.copy() for p in self._paths], [p.copy() for p in self._parents]
        twin._ids, twin._ranks = [i.copy() for i in self._ids], self._ranks.copy()
        return twin

    def resize(self, rows: int) -> None:
        """Makes room for more rows, which start outside."""
        grown = np.full((len(self.keys), rows), OUTSIDE, dtype=np.int64)
        grown[:, : self.domains.shape[1]] = self.domains
        self.domains = grown

    def set_row(self, row: int, labels: Mapping[str, str] | None) -> None:
        """Puts a node into its domains; None for a row without node."""
        path = None if labels is None else self.path_of(labels)
        if path is None:
            self.domains[:, row] = OUTSIDE
            return
        parent = OUTSIDE
        for level in range(len(self.keys)):
            parent = self._id(level, path[: level + 1], parent)
            self.domains[level, row] = parent

    def path_of(self, labels: Mapping[str, str]) -> Path | None:
        """The label values from the top, None when one is missing."""
        values = tuple(labels.get(key, "") for key in self.keys)
        return None if "" in values else values

    def size(self, level: int) -> int:
        """Number of domains ever seen at that level."""
        return len(self._paths[level])

    def path(self, level: int, domain: int) -> Path:
        """Label values of a domain, from the top."""
        return self._paths[level][domain]

    def ancestors(self, level: int, upper: int) -> Ints:
        """For each domain of `level` the domain of the broader level `upper` that it is in."""
        ids = np.arange(self.size(level), dtype=np.int64)
        for step in range(level, upper, -1):
            ids = np.asarray(self._parents[step], dtype=np.int64)[ids]
        return ids

    def ranks(self, level: int) -> Ints:
        """Position of each domain when they are sorted by path; makes choices independent of the order in which nodes came."""
        key = (level, self.size(level))
        if key not in self._ranks:
            self._ranks[key] = rank(self._paths[level])
        return self._ranks[key]

    def _id(self, level: int, path: Path, parent: int) -> int:
        ids = self._ids[level]
        found = ids.get(path)
        if found is None:
            found = ids[path] = len(self._paths[level])
            self._paths[level].append(path)
            self._parents[level].append(parent)
        return found


def rank(items: Sequence[Path] | Sequence[str]) -> Ints:
    """For each item its position in sorted order."""
    order = sorted(range(len(items)), key=lambda i: items[i])
    ranks = np.empty(len(items), dtype=np.int64)
    ranks[order] = np.arange(len(items), dtype=np.int64)
    return ranks
