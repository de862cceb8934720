"""How much fits, without placing anything: bounds per topology domain that are never too low (scheduler.md §5.3).

For one resource whose request sizes form a divisor chain the bound is exact: a multiset of pods fits into a set of nodes if and only if
for every size s in use the pods of size s and more together need no more than the sum of s·⌊free/s⌋. Larger pods take multiples of s from a
node, so placing largest first never goes wrong. With several resources or other sizes the formulas are necessary conditions.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from math import gcd

import numpy as np

from scheduler.board import Board
from scheduler.tasks import Demand, Task
from scheduler.topology import Ints

__all__ = ("UNLIMITED", "Bounds", "chain_fits", "is_chain", "usable_sizes")

UNLIMITED = 2**40
WHOLE = -1
"""Level of the pseudo-domain that holds all rows."""


def is_chain(sizes: Iterable[int]) -> bool:
    """True when each size divides the next larger one."""
    ordered = sorted(set(sizes))
    return all(b % a == 0 for a, b in pairwise(ordered))


def chain_fits(pods: Mapping[int, int], free: Iterable[int]) -> bool:
    """Whether pods (count by size, sizes forming a chain) fit into nodes with that much free. Exact."""
    nodes = tuple(free)
    for s in pods:
        need = sum(size * count for size, count in pods.items() if size >= s)
        if need > sum(s * (f // s) for f in nodes):
            return False
    return True


def usable_sizes(sizes: Iterable[int]) -> list[int]:
    """Sizes for which the formula is a necessary condition: those that divide every larger one; and the greatest common divisor."""
    ordered = sorted(set(sizes))
    usable = [s for s in ordered if all(t % s == 0 for t in ordered if t >= s)]
    return usable if ordered[0] in usable else [gcd(*ordered), *usable]


class Bounds:
    """Upper bounds on how many copies of a demand or task the domains of a level can take, as the board stands."""

    def __init__(self, board: Board) -> None:
        self.board = board

    def domains(self, tree: tuple[str, ...], level: int, rows: Ints) -> tuple[Ints, int]:
        """Domain of each row at that level and the number of domains; level -1 puts all rows into one."""
        if level == WHOLE:
            return np.zeros(len(rows), dtype=np.int64), 1
        index = self.board.table.tree(tree)
        return index.domains[level][rows], index.size(level)

    def sums(self, values: Ints, domains: Ints, size: int) -> Ints:
        """Sums of values per domain; rows outside (-1) do not count."""
        inside = domains >= 0
        return np.bincount(domains[inside], weights=values[inside], minlength=size).astype(np.int64)

    def bundle(self, demand: Demand, rows: Ints, domains: Ints, size: int) -> Ints:
        """int64 [size]: copies of the demand per domain at most."""
        board = self.board
        copies: Ints = np.full(size, UNLIMITED, dtype=np.int64)
        wanted = board.counted(demand)
        for shape, count in wanted:
            copies = np.minimum(copies, self.sums(board.slots[shape][rows], domains, size) // count)
        if len(wanted) < 2:
            return copies
        scarce = {self.dominant(demand, rows), *board.extended}
        for column in range(board.vectors.shape[1]):
            sizes = {s: int(board.vectors[s, column]) for s, _ in wanted if board.vectors[s, column]}
            if len(sizes) < 2:
                continue
            room = board.room[rows, column]
            for s in usable_sizes(sizes.values()) if column in scarce else usable_sizes(sizes.values())[:1]:
                large = [(shape, count) for shape, count in wanted if sizes.get(shape, 0) >= s]
                need = sum(sizes[shape] * count for shape, count in large)
                open_ = board.slots[[shape for shape, _ in large]][:, rows].any(axis=0)
                offer: Ints = np.where(open_, room - room % s, 0)
                copies = np.minimum(copies, self.sums(offer, domains, size) // need)
        return self._apart(wanted, rows, domains, size, copies)

    def copies(self, task: Task, tree: tuple[str, ...], level: int, rows: Ints) -> Ints:
        """int64 [domains of the level]: copies of the whole task per domain at most, nested required scopes included."""
        domains, size = self.domains(tree, level, rows)
        copies = self.bundle(task.demand, rows, domains, size)
        for twin, required, count in self._twins(task, tree, level):
            below = self.copies(twin, twin.scope.tree, required, rows)
            if level == WHOLE:
                total = np.array([below.sum()])
            else:
                total = self.sums(below, self.board.table.tree(tree).ancestors(required, level), size)
            copies = np.minimum(copies, total // count)
        return copies

    def dominant(self, demand: Demand, rows: Ints) -> int:
        """Column of the resource of which the demand takes the largest share."""
        board = self.board
        need = sum(
            (board.vectors[board.number[shape]] * count for shape, count in demand), np.zeros(board.vectors.shape[1], dtype=np.int64)
        )
        share = need / np.maximum(board.room[rows].sum(axis=0), 1)
        return int(np.argmax(share))

    def least_touches(self, task: Task, preferred: int, rows: Ints, upper: int) -> Ints:
        """int64 [domains of level `upper`]: at least so many domains of level `preferred` are touched if the task is put there whole.

        Domains that placed pods of the scope are in count, and come first because they cost nothing more.
        """
        index = self.board.table.tree(task.scope.tree)
        domains, size = index.domains[preferred][rows], index.size(preferred)
        if upper == WHOLE:
            parents, n_parents = np.zeros(size, dtype=np.int64), 1
        else:
            parents, n_parents = index.ancestors(preferred, upper), index.size(upper)
        touched = np.unique(index.domains[preferred][list(task.pins)]) if task.pins else np.zeros(0, dtype=np.int64)
        least: Ints = np.zeros(n_parents, dtype=np.int64)
        for offer, need in self._measures(task.demand, rows, domains, size):
            least = np.maximum(least, _touches(offer, need, parents, n_parents, touched[touched >= 0]))
        return least + len(touched)

    def _measures(self, demand: Demand, rows: Ints, domains: Ints, size: int) -> Iterable[tuple[Ints, int]]:
        """Per shape, and for the dominant resource: what each domain offers and what the demand needs."""
        board = self.board
        wanted = board.counted(demand)
        for shape, count in wanted:
            yield self.sums(board.slots[shape][rows], domains, size), count
        if len(wanted) > 1:
            column = self.dominant(demand, rows)
            need = sum(int(board.vectors[shape, column]) * count for shape, count in wanted)
            yield self.sums(board.room[rows, column], domains, size), need

    def signature(self, task: Task) -> object:
        """Equal for tasks that are copies of each other but for names."""
        scope = task.scope
        pods = tuple(self.board.number[m.shape] for m in task.members)
        return scope.tree, scope.required, scope.preferred, task.k, task.pins, pods, tuple(self.signature(c) for c in task.children)

    def _twins(self, task: Task, tree: tuple[str, ...], level: int) -> list[tuple[Task, int, int]]:
        """The nearest required scopes below a task that lie at narrower levels of the tree: one of each kind, its level, how many.

        Scopes with placed pods are left out, because their domain is settled.
        """
        found: dict[object, tuple[Task, int, int]] = {}

        def collect(part: Task) -> None:
            for child in () if part.is_choice else part.children:
                required, is_here = child.scope.required, child.scope.tree == tree
                if required is None or (is_here and required <= level):
                    collect(child)
                elif not child.pins and (level == WHOLE or is_here):
                    key = self.signature(child)
                    count = found[key][2] if key in found else 0
                    found[key] = (child, required, count + 1)

        collect(task)
        return list(found.values())

    def _apart(self, wanted: list[tuple[int, int]], rows: Ints, domains: Ints, size: int, copies: Ints) -> Ints:
        """Shapes that all keep apart from each other need a node per pod."""
        board = self.board
        alone = [(s, n) for s, n in wanted if board.is_single(s)] if board.is_guarded else []
        if len(alone) < 2 or not all(board.are_apart(a, b) for a, _ in alone for b, _ in alone):
            return copies
        nodes = np.asarray(board.slots[[s for s, _ in alone]][:, rows].any(axis=0), dtype=np.int64)
        return np.minimum(copies, self.sums(nodes, domains, size) // sum(n for _, n in alone))


def _touches(offer: Ints, need: int, parents: Ints, n_parents: int, touched: Ints) -> Ints:
    """Per parent: how many of its domains, largest first, it takes to cover the need that touched domains leave open."""
    offer = offer.copy()
    rest = need - np.bincount(parents[touched], weights=offer[touched], minlength=n_parents).astype(np.int64)
    offer[touched] = 0
    order = np.lexsort((-offer, parents))
    sorted_offer, sorted_parents = offer[order], parents[order]
    before = np.cumsum(sorted_offer) - sorted_offer
    starts = np.searchsorted(sorted_parents, np.arange(n_parents))
    base = before[np.minimum(starts, len(before) - 1)] if len(before) else np.zeros(n_parents, dtype=np.int64)
    opened = (before - base[sorted_parents]) < rest[sorted_parents]
    return np.bincount(sorted_parents[opened], minlength=n_parents).astype(np.int64)
