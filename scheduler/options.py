"""Which parts of the cluster a scope may go to, best first: required domains, then sets of preferred domains inside them."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from scheduler.board import Board
from scheduler.feasibility import WHOLE, Bounds
from scheduler.tasks import Task
from scheduler.topology import Ints

__all__ = ("Options", "pinned_domain")

PREFERRED_LIMIT = 8
"""Preferred places tried per required domain before the scope is spread at will."""


class _Place(NamedTuple):
    """A candidate domain; sorts best first."""

    touches: int
    misses_ahead: bool
    broadness: int
    spare: int
    spare_above: int
    rank: int
    level: int
    domain: int


class Options:
    """Lists candidate rows for tasks. `ahead`: what else should find room in the root's domain later, if possible."""

    def __init__(self, board: Board, bounds: Bounds, ahead: Task | None) -> None:
        self._board = board
        self._bounds = bounds
        self._ahead = ahead

    def of(self, task: Task, rows: Ints) -> Iterator[Ints]:
        """Subsets of rows, best first."""
        required = task.scope.required
        if required is None:
            yield from self._preferred(task, rows, WHOLE)
            return
        domains = self._board.table.tree(task.scope.tree).domains[required][rows]
        pinned = pinned_domain(self._board, task)
        if pinned is not None:
            yield from self._preferred(task, rows[domains == pinned], required)
            return
        for place in sorted(self._places(task, rows, required, required)):
            yield from self._preferred(task, rows[domains == place.domain], required)

    def _preferred(self, task: Task, rows: Ints, required: int) -> Iterator[Ints]:
        """Single preferred domains that are enough, then sets of them in ever broader domains, then all rows."""
        preferred = task.scope.preferred
        if preferred is not None and len(rows):
            index = self._board.table.tree(task.scope.tree)
            touched = len(np.unique(index.domains[preferred][list(task.pins)])) if task.pins else 0
            singles = sorted(self._places(task, rows, preferred, preferred))
            enough = [p for p in singles if p.touches <= max(1, touched)][:PREFERRED_LIMIT]
            for place in enough:
                yield rows[index.domains[preferred][rows] == place.domain]
            for place in self._broader(task, rows, required, preferred, [p for p in singles if p not in enough]):
                inside = rows if place.level == WHOLE else rows[index.domains[place.level][rows] == place.domain]
                if place.level == preferred:
                    yield inside
                else:
                    yield from self._sets(task, inside, preferred)
        yield rows

    def _broader(self, task: Task, rows: Ints, required: int, preferred: int, singles: list[_Place]) -> list[_Place]:
        places = list(singles)
        for level in range(preferred - 1, max(required, 0) - 1, -1):
            places += self._places(task, rows, level, preferred)
        if required == WHOLE:
            least = int(self._bounds.least_touches(task, preferred, rows, WHOLE)[0])
            places.append(_Place(least, False, preferred + 1, 0, 0, 0, WHOLE, 0))
        return sorted(places)[:PREFERRED_LIMIT]

    def _places(self, task: Task, rows: Ints, level: int, goal: int) -> list[_Place]:
        """Domains of a level that may take the whole task. `goal`: preferred level whose touches count, or the level itself."""
        bounds, tree = self._bounds, task.scope.tree
        index = self._board.table.tree(tree)
        fits = np.flatnonzero(bounds.copies(task, tree, level, rows) > 0)
        if not len(fits):
            return []
        spare = self._spare(task, tree, level, rows)
        above = np.zeros_like(spare) if level == 0 else self._spare(task, tree, level - 1, rows)[index.ancestors(level, level - 1)]
        deepest = task.scope.preferred if task.scope.preferred is not None else goal
        counts = task.scope.preferred is not None and bool(task.demand)
        touches = bounds.least_touches(task, deepest, rows, level) if counts else np.zeros_like(spare)
        misses = self._misses_ahead(task, tree, level, rows, len(spare))
        ranks = index.ranks(level)
        return [
            _Place(int(touches[d]), bool(misses[d]), goal - level, int(spare[d]), int(above[d]), int(ranks[d]), level, int(d)) for d in fits
        ]

    def _misses_ahead(self, task: Task, tree: tuple[str, ...], level: int, rows: Ints, size: int) -> Ints:
        """1 for domains without room for what comes after the root."""
        if self._ahead is None or task.scope.kind != "root":
            return np.zeros(size, dtype=np.int64)
        together = Task(task.scope, children=(task, self._ahead), k=2)
        return (self._bounds.copies(together, tree, level, rows) == 0).astype(np.int64)

    def _spare(self, task: Task, tree: tuple[str, ...], level: int, rows: Ints) -> Ints:
        domains, size = self._bounds.domains(tree, level, rows)
        column = self._bounds.dominant(task.demand, rows)
        return self._bounds.sums(self._board.room[rows, column], domains, size)

    def _sets(self, task: Task, rows: Ints, preferred: int) -> Iterator[Ints]:
        """The largest preferred domains that together cover the demand, touched ones first, the last one best-fit; then larger sets."""
        board, bounds = self._board, self._bounds
        index = board.table.tree(task.scope.tree)
        domains, size = index.domains[preferred][rows], index.size(preferred)
        wanted = board.counted(task.demand)
        if not wanted:
            return
        if len(wanted) == 1:
            offer, need = bounds.sums(board.slots[wanted[0][0]][rows], domains, size), wanted[0][1]
        else:
            column = bounds.dominant(task.demand, rows)
            offer = bounds.sums(board.room[rows, column], domains, size)
            need = sum(int(board.vectors[s, column]) * n for s, n in wanted)
        touched = np.zeros(size, dtype=np.int64)
        touched[[d for d in index.domains[preferred][list(task.pins)].tolist() if d >= 0]] = 1
        order = np.lexsort((index.ranks(preferred), -offer, -touched))
        order = order[(offer[order] > 0)]
        covered = np.cumsum(offer[order])
        n = min(int(np.searchsorted(covered, need)) + 1, len(order))
        if n < 1:
            return
        rest = need - (int(covered[n - 2]) if n > 1 else 0)
        tail = order[n - 1 :]
        fitting = tail[offer[tail] >= rest]
        if len(fitting):
            last = fitting[np.argmin(offer[fitting])]
            yield rows[np.isin(domains, np.append(order[: n - 1], last))]
        for more in (0, 1, 2):
            if n + more <= len(order):
                yield rows[np.isin(domains, order[: n + more])]


def pinned_domain(board: Board, task: Task) -> int | None:
    """Domain of the required level that holds most placed pods of the scope; None when none is inside the tree."""
    if task.scope.required is None or not task.pins:
        return None
    index = board.table.tree(task.scope.tree)
    found = index.domains[task.scope.required][list(task.pins)]
    found = found[found >= 0]
    if not len(found):
        return None
    domains, counts = np.unique(found, return_counts=True)
    ranks = index.ranks(task.scope.required)[domains]
    return int(domains[np.lexsort((ranks, -counts))[0]])
