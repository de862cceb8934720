"""Constructive placement: best-fitting domains, largest pods first, backtracking over the domains of siblings (scheduler.md §5.4)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations, islice, pairwise, product
from typing import NamedTuple, TypeAlias

import numpy as np

from scheduler.board import Board, Entry
from scheduler.feasibility import WHOLE, Bounds
from scheduler.model import Member
from scheduler.options import Options, pinned_domain
from scheduler.tasks import Task
from scheduler.topology import Ints

__all__ = ("STEP_LIMIT", "Found", "Search", "least_touches", "touched_total", "variants")

STEP_LIMIT = 2000
"""Choices that one search may try."""
VARIANT_LIMIT = 64
"""Ways to choose children of K-of-N scopes that are tried."""


class Found(NamedTuple):
    """A placement; how many preferred domains its scopes touch in all; and how many each scope (kind, name) touches in any placement."""

    placements: list[tuple[Member, int]]
    touches: int
    least: dict[tuple[str, str], int]

    @property
    def is_best(self) -> bool:
        """True when no placement can touch fewer preferred domains."""
        return self.touches <= sum(self.least.values())


@dataclass(frozen=True, slots=True)
class _Scope:
    """Choose where a task goes within rows."""

    task: Task
    rows: Ints


@dataclass(frozen=True, slots=True)
class _Pack:
    """Put members anywhere on rows."""

    members: tuple[Member, ...]
    rows: Ints


_Todo: TypeAlias = tuple["_Scope | _Pack", "_Todo"] | None
"""What is left to do, as a linked list, so that alternatives share their tails."""


class _Chosen(NamedTuple):
    """One alternative has been carried out; `rest` is left to do."""

    rest: _Todo


def variants(task: Task) -> Iterator[Task]:
    """The task with its choices among children made, in order of preference."""
    if not task.children:
        yield task
        return
    for chosen in combinations(task.children, task.k):
        for children in product(*(tuple(islice(variants(c), VARIANT_LIMIT)) for c in chosen)):
            yield Task(task.scope, children=children, k=task.k, pins=task.pins)


class Search:
    """Places a task without choices on a board. After a failure `is_proof` tells whether nothing could have worked.

    `limit`: choices that may be tried in all; `steps` counts them.
    """

    def __init__(self, board: Board, ahead: Task | None = None, limit: int = STEP_LIMIT) -> None:
        self.board = board
        self.bounds = Bounds(board)
        self.is_proof = False
        self._options = Options(board, self.bounds, ahead)
        self.steps = 0
        self._limit = limit

    def place(self, task: Task, rows: Ints) -> Found | None:
        """Places the task on rows, or leaves the board as it was. Successive calls share the step limit."""
        if not _has_members(task):
            return Found([], 0, {})
        if not self.bounds.copies(task, (), WHOLE, rows)[0]:
            self.is_proof = True
            return None
        least = least_touches(self.bounds, task, rows)
        if not self._run((_Scope(task, rows), None)):
            packed_out = self.steps < self._limit and task.is_loose and self._is_exact(task, rows)
            self.is_proof = packed_out or self._is_refuted(task, rows)
            return None
        placements = self.board.placements()
        return Found(placements, touched_total(self.board, task, placements), least)

    def _run(self, todo: _Todo) -> bool:
        """Depth-first over alternatives; each frame undoes what its last alternative did."""
        board = self.board
        start = len(board.log)
        frames = [(self._alternatives(todo), start)]
        while frames:
            alternatives, mark = frames[-1]
            board.undo(mark)
            if self.steps >= self._limit:
                break
            self.steps += 1
            chosen = next(alternatives, None)
            if chosen is None:
                frames.pop()
            elif chosen.rest is None:
                return True
            else:
                frames.append((self._alternatives(chosen.rest), len(board.log)))
        board.undo(start)
        return False

    def _alternatives(self, todo: _Todo) -> Iterator["_Chosen"]:
        """Ways to do the first thing; each yields what is left then."""
        if todo is None:
            return
        first, rest = todo
        if isinstance(first, _Pack):
            if self.pack(first.members, first.rows):
                yield _Chosen(rest)
            return
        for rows in self._options.of(first.task, first.rows):
            yield _Chosen(_chain(_parts(first.task, rows, self.bounds), rest))

    def pack(self, members: tuple[Member, ...], onto: Ints) -> bool:
        """Largest first, fullest nodes first. Leaves a partial placement behind on failure; the caller undoes."""
        board = self.board
        by_number: dict[int, list[Member]] = {}
        for member in members:
            by_number.setdefault(board.number[member.shape], []).append(member)
        total = np.maximum(board.room[onto].sum(axis=0), 1)
        share = {n: float((board.vectors[n] / total).max()) for n in by_number}
        for number in sorted(by_number, key=lambda n: (-share[n], tuple(-board.vectors[n]))):
            alike = by_number[number]
            rows = onto[board.slots[number][onto] > 0]
            rows = rows[self._fullest_first(number, rows)]
            slots = board.slots[number][rows]
            before = np.cumsum(slots) - slots
            counts = np.clip(len(alike) - before, 0, slots)
            if counts.sum() < len(alike):
                return False
            used = counts > 0
            board.put(Entry(number, tuple(alike), rows[used], counts[used]))
        return True

    def _fullest_first(self, number: int, rows: Ints) -> Ints:
        """Order of rows: least room of the scarcest resource first; pods without devices keep away from free devices."""
        board, vector = self.board, self.board.vectors[number]
        devices = [c for c in board.extended if vector[c]]
        if devices:
            column = max(devices, key=lambda c: int(vector[c]))
            return np.argsort(board.room[rows, column], kind="stable")
        column = self.bounds.dominant(((board.shapes[number], 1),), rows)
        return np.lexsort((board.room[rows, column], board.devices[rows]))

    def _is_refuted(self, task: Task, rows: Ints) -> bool:
        """True when some required scope finds no domain large enough, even if it had the cluster for itself."""
        for part in task.walk():
            if part.scope.required is not None and part.demand:
                copies = self.bounds.copies(part, part.scope.tree, part.scope.required, rows)
                pinned = pinned_domain(self.board, part)
                if not (copies > 0).any() if pinned is None else copies[pinned] == 0:
                    return True
        return False

    def _is_exact(self, task: Task, rows: Ints) -> bool:
        """True when largest-first packing fails only if nothing fits: one shape, or a divisor chain of one resource that alone binds."""
        board = self.board
        wanted = [n for n, _ in board.counted(task.demand)]
        if len(wanted) == 1:
            return True
        if board.is_guarded or any((board.eligible[n][rows] != board.eligible[wanted[0]][rows]).any() for n in wanted):
            return False
        return any(self._binds_alone(column, wanted, rows) for column in range(board.vectors.shape[1]))

    def _binds_alone(self, column: int, wanted: list[int], rows: Ints) -> bool:
        """Whether the other resources suffice for any mix of pods that this one allows."""
        board = self.board
        sizes = [int(board.vectors[n, column]) for n in wanted]
        if not all(sizes) or any(b % a for a, b in pairwise(sorted(sizes))):
            return False
        room = board.room[rows].astype(np.float64)  # products of bytes and bytes do not fit into 64 bits
        others = [c for c in range(board.vectors.shape[1]) if c != column]
        return all(
            (room[:, c] * s >= int(board.vectors[n, c]) * room[:, column]).all() for c in others for n, s in zip(wanted, sizes, strict=True)
        )


def least_touches(bounds: Bounds, task: Task, rows: Ints) -> dict[tuple[str, str], int]:
    """Domains that each preferred scope (kind, name) of the task touches in any placement, at least."""
    least: dict[tuple[str, str], int] = {}

    def visit(part: Task, inside: dict[tuple[str, ...], int]) -> None:
        scope = part.scope
        if scope.required is not None:
            inside = {**inside, scope.tree: max(scope.required, inside.get(scope.tree, WHOLE))}
        if scope.preferred is not None and part.demand:
            upper = min(inside.get(scope.tree, WHOLE), scope.preferred)
            touches = bounds.least_touches(part, scope.preferred, rows, upper)
            domains, size = bounds.domains(scope.tree, upper, rows)
            fits = bounds.bundle(part.demand, rows, domains, size) > 0
            least[scope.kind, scope.name] = max(1, int(touches[fits].min())) if fits.any() else 1
        for child in part.children:
            visit(child, inside)

    visit(task, {})
    return least


def touched_total(board: Board, task: Task, placements: Iterable[tuple[Member, int]]) -> int:
    """Domains that the task's preferred scopes touch, placed pods included. Rows outside the tree count as one domain."""
    row_of = {member.uid: row for member, row in placements}
    total = 0
    for part in task.walk():
        if part.scope.preferred is not None and part.demand:
            rows = [row_of[m.uid] for t in part.walk() for m in t.members] + list(part.pins)
            total += len(np.unique(board.table.tree(part.scope.tree).domains[part.scope.preferred][rows]))
    return total


def _has_members(task: Task) -> bool:
    return any(t.members for t in task.walk())


def _parts(task: Task, rows: Ints, bounds: Bounds) -> list[_Scope | _Pack]:
    """Constrained children one by one, hardest first; everything else in one pack at the end."""
    free: list[Member] = list(task.members)
    tied: list[Task] = []
    for child in task.children:
        if child.is_loose:
            free += [m for t in child.walk() for m in t.members]
        elif _has_members(child):
            tied.append(child)
    if tied:
        board = bounds.board
        total = np.maximum(board.room[rows].sum(axis=0), 1)

        def weight(child: Task) -> float:
            need = sum((board.vectors[s] * n for s, n in board.counted(child.demand)), np.zeros_like(board.vectors[0]))
            return float((need / total).max())

        tied.sort(key=lambda c: (not c.pins, c.scope.required is None, -weight(c), c.scope.name))
    parts: list[_Scope | _Pack] = [_Scope(c, rows) for c in tied]
    return [*parts, _Pack(tuple(free), rows)] if free else parts


def _chain(parts: list[_Scope | _Pack], rest: _Todo) -> _Todo:
    for part in reversed(parts):
        rest = (part, rest)
    return rest
