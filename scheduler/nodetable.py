"""The rows of a snapshot: which node is in which row, its facts, its topology domains, and whom it excludes.

A table that a snapshot has been made of is never changed again: the owner copies it first (`ClusterState` does).
"""

import numpy as np
import numpy.typing as npt

from scheduler.eligibility import Cause, NodeFacts, Rules, exclusion
from scheduler.topology import Ints, TreeIndex, rank

__all__ = ("NodeTable",)

FIRST_ROWS = 16
MAX_RULES = 512
"""Rules whose answers are kept; more than that and the oldest are forgotten."""


class NodeTable:
    """Rows, with answers per tree and per rules computed when first asked for and kept up to date from then on."""

    def __init__(self) -> None:
        self.facts: list[NodeFacts | None] = [None] * FIRST_ROWS
        self.row_of: dict[str, int] = {}
        self._free: list[int] = list(range(FIRST_ROWS - 1, -1, -1))
        self._trees: dict[tuple[str, ...], TreeIndex] = {}
        self._causes: dict[Rules, npt.NDArray[np.int8]] = {}
        self._ranks: Ints | None = None
        self._keys: frozenset[str] | None = None

    @property
    def rows(self) -> int:
        """Number of rows, unused ones included."""
        return len(self.facts)

    def copy(self) -> "NodeTable":
        """A table that can be changed without changing this one."""
        twin = NodeTable()
        twin.facts, twin.row_of, twin._free = self.facts.copy(), self.row_of.copy(), self._free.copy()
        twin._trees = {keys: tree.copy() for keys, tree in self._trees.copy().items()}
        twin._causes = {rules: causes.copy() for rules, causes in self._causes.copy().items()}
        twin._ranks, twin._keys = self._ranks, self._keys
        return twin

    def set(self, facts: NodeFacts) -> int:
        """Adds or replaces a node and returns its row."""
        row = self.row_of.get(facts.name)
        if row is None:
            if not self._free:
                self._grow()
            row = self._free.pop()
            self.row_of[facts.name] = row
            self._ranks = None
        self._put(row, facts)
        return row

    def remove(self, name: str) -> int:
        """Takes a node out and returns the row it had."""
        row = self.row_of.pop(name)
        self._free.append(row)
        self._ranks = None
        self._put(row, None)
        return row

    def name(self, row: int) -> str:
        """Name of the node in a row."""
        facts = self.facts[row]
        return "" if facts is None else facts.name

    def tree(self, keys: tuple[str, ...]) -> TreeIndex:
        """Domains of all rows for a topology given by its label keys, broad to narrow."""
        tree = self._trees.get(keys)
        if tree is None:
            tree = TreeIndex(keys, self.rows)
            for name in sorted(self.row_of):
                row = self.row_of[name]
                facts = self.facts[row]
                tree.set_row(row, None if facts is None else facts.labels)
            self._trees[keys] = tree
        return tree

    def causes(self, rules: Rules) -> npt.NDArray[np.int8]:
        """int8 [rows]: the `Cause` why a pod with these rules may not be there, 0 where it may."""
        causes = self._causes.get(rules)
        if causes is None:
            causes = np.fromiter((_cause(rules, facts) for facts in self.facts), dtype=np.int8, count=self.rows)
            while len(self._causes) >= MAX_RULES:
                del self._causes[next(iter(self._causes))]
            self._causes[rules] = causes
        return causes

    def ranks(self) -> Ints:
        """Per row the position of its node by name; unused rows come first."""
        if self._ranks is None:
            self._ranks = rank([self.name(row) for row in range(self.rows)])
        return self._ranks

    def has_label_key(self, key: str) -> bool:
        """True when some node carries that label."""
        if self._keys is None:
            self._keys = frozenset(k for facts in self.facts if facts is not None for k in facts.labels)
        return key in self._keys

    def _put(self, row: int, facts: NodeFacts | None) -> None:
        self.facts[row] = facts
        self._keys = None
        for tree in self._trees.values():
            tree.set_row(row, None if facts is None else facts.labels)
        for rules, causes in self._causes.items():
            causes[row] = _cause(rules, facts)

    def _grow(self) -> None:
        old, new = self.rows, 2 * self.rows
        self.facts += [None] * (new - old)
        self._free = list(range(new - 1, old - 1, -1))
        for tree in self._trees.values():
            tree.resize(new)
        absent = np.full(new - old, Cause.ABSENT, dtype=np.int8)
        self._causes = {rules: np.concatenate((causes, absent)) for rules, causes in self._causes.items()}


def _cause(rules: Rules, facts: NodeFacts | None) -> Cause:
    return Cause.ABSENT if facts is None else exclusion(rules, facts)
