"""CP-SAT model of one task on the rows of a few candidate domains (scheduler.md §5.2): decides what construction leaves open.

Pods that behave alike are counted, nodes that behave alike form classes, so the model's size does not depend on the cluster's. One
worker, a fixed seed and a limit in deterministic time make the answer a function of the input.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from scheduler import cpsat
from scheduler.board import Board, Entry
from scheduler.cpsat import FEASIBLE, INFEASIBLE, OPTIMAL, Expression, IntVar, Model, weighted_sum
from scheduler.feasibility import Bounds, usable_sizes
from scheduler.model import Member
from scheduler.options import pinned_domain
from scheduler.tasks import Task
from scheduler.topology import Ints

__all__ = ("VARIABLE_LIMIT", "Answer", "solve")

VARIABLE_LIMIT = 4000
"""Pod counts that a model may have; larger ones are not tried."""
SEED = 7


class Answer(NamedTuple):
    """placed: the placement, best when `is_best`. impossible: proven. unknown: too large, or the time limit was reached."""

    status: Literal["placed", "impossible", "unknown"]
    placements: list[tuple[Member, int]]
    is_best: bool = False


@dataclass(slots=True)
class _Unit:
    """Pods that are interchangeable and belong to the same constrained scopes."""

    shape: int
    scopes: tuple[int, ...]
    members: list[Member] = field(default_factory=list[Member])


@dataclass(slots=True)
class _Class:
    """Rows that are interchangeable."""

    rows: Ints
    row: int


def solve(board: Board, task: Task, rows: Ints, *, limit: float, hint: Sequence[tuple[Member, int]] = ()) -> Answer:
    """Places a task without choices on rows; the board is left as it was. `limit` is in CP-SAT's deterministic time (about seconds)."""
    for is_fine in (False, True):
        model = _Model(board, task, rows, is_fine=is_fine)
        if model.size > VARIABLE_LIMIT:
            return Answer("unknown", [])
        answer = model.answer(limit, hint)
        if answer is not None:
            return answer
    return Answer("unknown", [])


def _sum(variables: Sequence[IntVar]) -> Expression:
    return weighted_sum(variables, [1] * len(variables))


class _Model:
    """`is_fine`: each row is a class of its own, which makes the capacity constraints exact for any request sizes."""

    def __init__(self, board: Board, task: Task, rows: Ints, *, is_fine: bool) -> None:
        self.board = board
        self.task = task
        self.parts = [p for p in task.walk() if p.scope.required is not None or p.scope.preferred is not None]
        self.units = self._units()
        needs_rows = is_fine or board.is_guarded
        self.classes = [_Class(np.array([r]), int(r)) for r in rows] if needs_rows else self._classes(rows)
        self.size = len(self.units) * len(self.classes)
        self.model = Model()
        self.x: list[list[IntVar]] = []
        self.touches: list[IntVar] = []
        self._homes: dict[object, list[Expression]] = {}
        self._parent = {id(child): id(part) for part in task.walk() for child in part.children}

    def answer(self, limit: float, hint: Sequence[tuple[Member, int]]) -> Answer | None:
        """None when the classes' counts cannot be spread over their rows, so that a finer model is needed."""
        self._pods()
        self._capacity()
        for number, part in enumerate(self.parts):
            self._scope(number, part)
        self._symmetry()
        self._objective()
        self._hint(hint)
        found = cpsat.solve(self.model, seed=SEED, limit=limit)
        if found.status == INFEASIBLE:
            return Answer("impossible", [])
        if found.status not in (OPTIMAL, FEASIBLE):
            return Answer("unknown", [])
        counts = [[found.value(v) for v in line] for line in self.x]
        placements = self._spread(counts)
        return None if placements is None else Answer("placed", placements, found.status == OPTIMAL)

    def _units(self) -> list[_Unit]:
        found: dict[tuple[int, tuple[int, ...]], _Unit] = {}
        numbers = {id(p): i for i, p in enumerate(self.parts)}

        def visit(part: Task, scopes: tuple[int, ...]) -> None:
            if id(part) in numbers:
                scopes = (*scopes, numbers[id(part)])
            for member in part.members:
                shape = self.board.number[member.shape]
                found.setdefault((shape, scopes), _Unit(shape, scopes)).members.append(member)
            for child in part.children:
                visit(child, scopes)

        visit(self.task, ())
        return list(found.values())

    def _classes(self, rows: Ints) -> list[_Class]:
        trees = sorted({p.scope.tree for p in self.parts})
        columns = [self.board.table.tree(t).domains[:, rows] for t in trees]
        table = np.vstack([*columns, self.board.room[rows].T, self.board.slots[:, rows]]).T
        _, first, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first, kind="stable")
        return [_Class(rows[inverse.ravel() == i], int(rows[first[i]])) for i in order]

    def _pods(self) -> None:
        for unit in self.units:
            line = [
                self.model.new_int_var(0, min(len(unit.members), int(self.board.slots[unit.shape, c.row]) * len(c.rows)))
                for c in self.classes
            ]
            self.model.add(_sum(line) == len(unit.members))
            self.x.append(line)

    def _capacity(self) -> None:
        board = self.board
        for column in range(board.vectors.shape[1]):
            sizes = [int(board.vectors[u.shape, column]) for u in self.units]
            if not any(sizes):
                continue
            for s in {1, *usable_sizes(z for z in sizes if z)}:
                users = [i for i, z in enumerate(sizes) if z >= s]
                for j, c in enumerate(self.classes):
                    room = int(board.room[c.row, column]) // s * s * len(c.rows)
                    self.model.add(weighted_sum([self.x[i][j] for i in users], [sizes[i] for i in users]) <= room)
        if board.is_guarded:
            self._apart()

    def _apart(self) -> None:
        """Rows are single here, so a literal per unit and row tells whether it is used."""
        pairs = [
            (a, b)
            for a in range(len(self.units))
            for b in range(a + 1, len(self.units))
            if self.board.are_apart(self.units[a].shape, self.units[b].shape)
        ]
        involved = sorted({i for pair in pairs for i in pair})
        for j in range(len(self.classes)):
            used = {i: self.model.new_bool_var() for i in involved}
            for i in involved:
                self.model.add(self.x[i][j] <= len(self.units[i].members) * used[i])
            for a, b in pairs:
                self.model.add_at_most_one([used[a], used[b]])

    def _scope(self, number: int, part: Task) -> None:
        scope = part.scope
        index = self.board.table.tree(scope.tree)
        inside = [i for i, u in enumerate(self.units) if number in u.scopes]
        if scope.required is not None:
            pinned = pinned_domain(self.board, part)
            homes = self._presence(inside, [int(index.domains[scope.required, c.row]) for c in self.classes], excluded=-1)
            self.model.add_exactly_one(homes.values())
            if pinned is not None:
                self.model.add_all_true(literal if domain == pinned else ~literal for domain, literal in homes.items())
            if pinned is not None and pinned not in homes:
                self.model.add_contradiction()
            part_homes = sorted(homes.items())
            self._homes.setdefault((self._parent.get(id(part)), Bounds(self.board).signature(part)), []).append(
                weighted_sum([v for _, v in part_homes], [d for d, _ in part_homes])
            )
        if scope.preferred is not None:
            domains = [int(index.domains[scope.preferred, c.row]) for c in self.classes]
            touched = {int(d) for d in index.domains[scope.preferred][list(part.pins)]}
            self.touches += [v for d, v in self._presence(inside, domains, excluded=None).items() if d not in touched]

    def _presence(self, units: list[int], domains: list[int], *, excluded: int | None) -> dict[int, IntVar]:
        """A literal per domain that has to be true where pods of the units are; no pods at all in the excluded one."""
        found = {d: self.model.new_bool_var() for d in sorted(set(domains)) if d != excluded}
        for i in units:
            for domain in sorted(set(domains)):
                here = _sum([self.x[i][j] for j, d in enumerate(domains) if d == domain])
                self.model.add(here <= (0 if domain == excluded else len(self.units[i].members) * found[domain]))
        return found

    def _symmetry(self) -> None:
        """Copies of a scope are interchangeable: their domains may as well come in order."""
        for copies in self._homes.values():
            for a, b in pairwise(copies):
                self.model.add(a <= b)

    def _objective(self) -> None:
        """Fewest preferred domains; then nodes with little room, so that whole nodes stay free."""
        board = self.board
        column = Bounds(board).dominant(self.task.demand, np.concatenate([c.rows for c in self.classes]))
        most = max(1, max(int(board.room[c.row, column]) for c in self.classes))
        costs = [int(board.room[c.row, column]) * 9 // most for c in self.classes]
        weight = 9 * sum(len(u.members) for u in self.units) + 1
        flat = [v for line in self.x for v in line]
        self.model.minimize(weighted_sum([*self.touches, *flat], [*[weight] * len(self.touches), *costs * len(self.units)]))

    def _hint(self, placements: Iterable[tuple[Member, int]]) -> None:
        class_of = {int(r): j for j, c in enumerate(self.classes) for r in c.rows}
        unit_of = {m.uid: i for i, u in enumerate(self.units) for m in u.members}
        counts: dict[tuple[int, int], int] = {}
        for member, row in placements:
            if row in class_of:
                key = unit_of[member.uid], class_of[row]
                counts[key] = counts.get(key, 0) + 1
        if counts:
            for i, line in enumerate(self.x):
                for j, variable in enumerate(line):
                    self.model.add_hint(variable, counts.get((i, j), 0))

    def _spread(self, counts: list[list[int]]) -> list[tuple[Member, int]] | None:
        """From counts per class to rows: largest pods first, fullest rows first."""
        board, mark = self.board, len(self.board.log)
        n_before = len(board.placements())
        total = np.maximum(board.room.sum(axis=0), 1)
        order = sorted(range(len(self.units)), key=lambda i: (-float((board.vectors[self.units[i].shape] / total).max()), i))
        for i in order:
            unit, used = self.units[i], 0
            for j, c in enumerate(self.classes):
                if not counts[i][j]:
                    continue
                slots = board.slots[unit.shape][c.rows]
                take = np.clip(counts[i][j] - (np.cumsum(slots) - slots), 0, slots)
                if take.sum() < counts[i][j]:
                    board.undo(mark)
                    return None
                members = tuple(unit.members[used : used + counts[i][j]])
                used += len(members)
                board.put(Entry(unit.shape, members, c.rows[take > 0], take[take > 0]))
        placements = board.placements()[n_before:]
        board.undo(mark)
        return placements
