"""One attempt to place one task of a gang: construction first, CP-SAT where construction gives no answer or not the best one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Literal, NamedTuple

import numpy as np

from scheduler.board import Board
from scheduler.construct import STEP_LIMIT, VARIANT_LIMIT, Found, Search, touched_total, variants
from scheduler.feasibility import WHOLE, Bounds
from scheduler.model import Group, Member
from scheduler.options import pinned_domain
from scheduler.snapshot import Snapshot
from scheduler.solver import solve
from scheduler.tasks import Task
from scheduler.topology import Ints

__all__ = ("Anchor", "Attempt", "Budget", "attempt")

LEAST_STEPS = 200
"""Choices that every attempt may try, however much others have used up."""
CANDIDATES = 4
"""Domains of the gang's required level that one CP-SAT model covers."""


class Anchor(NamedTuple):
    """The domain of the gang that this one follows. A hard anchor is the only place allowed."""

    tree: tuple[str, ...]
    level: int
    domain: int
    is_hard: bool


@dataclass(slots=True)
class Budget:
    """What search may still cost in this round, counted in steps and deterministic time, so that a round is a function of its input.

    `steps`: choices of construction beyond the few that every attempt has. `proofs`, `improvements`: calls of CP-SAT with their limits.
    """

    steps: int = 6000
    proofs: int = 8
    improvements: int = 8
    proof_limit: float = 0.25
    improvement_limit: float = 0.05


@dataclass(frozen=True, slots=True)
class Attempt:
    """placed: `found` is set, best if `is_best`. impossible: proven. unknown: no answer within the budget."""

    status: Literal["placed", "impossible", "unknown"]
    found: Found | None = None
    method: Literal["construct", "solver"] = "construct"
    is_best: bool = False


def attempt(
    snapshot: Snapshot,
    groups: Mapping[str, Group],
    task: Task,
    budget: Budget,
    *,
    with_soon: bool = False,
    anchor: Anchor | None = None,
    ahead: Task | None = None,
) -> Attempt:
    """Tries to place a task on a snapshot, which is not changed. `groups`: by name, of the task and of `ahead`."""
    shapes = [m.shape for part in (task, ahead) if part is not None for t in part.walk() for m in t.members]
    if not any(t.members for t in task.walk()):
        return Attempt("placed", Found([], 0, {}), is_best=True)
    board = Board(snapshot, groups, shapes, with_soon=with_soon)
    is_open = False
    for variant in islice(variants(task), VARIANT_LIMIT):
        search = Search(board, ahead, min(STEP_LIMIT, max(LEAST_STEPS, budget.steps)))
        for rows in _areas(board, anchor):
            board.undo(0)
            before = search.steps
            found = search.place(variant, rows)
            budget.steps -= search.steps - before
            if found is not None:
                return _improved(board, variant, rows, found, budget)
        if search.is_proof:
            continue
        answer = _proof(board, variant, _areas(board, anchor), budget)
        if answer.status == "placed":
            return answer
        is_open |= answer.status == "unknown"
    return Attempt("unknown" if is_open else "impossible")


def _areas(board: Board, anchor: Anchor | None) -> Iterator[Ints]:
    """Rows to try, one after the other."""
    rows = board.rows()
    if anchor is not None:
        near = rows[board.table.tree(anchor.tree).domains[anchor.level][rows] == anchor.domain]
        yield near
    if anchor is None or not anchor.is_hard:
        yield rows


def _candidates(board: Board, task: Task, rows: Ints) -> tuple[Ints, bool]:
    """Rows of the most promising domains of the task's required level, and whether these are all that come into question."""
    scope = task.scope
    if scope.required is None:
        return rows, True
    index = board.table.tree(scope.tree)
    domains = index.domains[scope.required][rows]
    pinned = pinned_domain(board, task)
    if pinned is not None:
        return rows[domains == pinned], True
    copies = Bounds(board).copies(task, scope.tree, scope.required, rows)
    fits = np.flatnonzero(copies > 0)
    best = fits[np.lexsort((index.ranks(scope.required)[fits], -copies[fits]))][:CANDIDATES]
    return rows[np.isin(domains, best)], len(best) == len(fits)


def _proof(board: Board, task: Task, areas: Iterator[Ints], budget: Budget) -> Attempt:
    """Asks CP-SAT whether the task fits at all; the last area holds all others."""
    *_, rows = areas
    board.undo(0)
    if not Bounds(board).copies(task, (), WHOLE, rows)[0]:
        return Attempt("impossible")
    chosen, is_all = _candidates(board, task, rows)
    if not len(chosen):
        return Attempt("impossible")
    if budget.proofs <= 0:
        return Attempt("unknown")
    budget.proofs -= 1
    answer = solve(board, task, chosen, limit=budget.proof_limit)
    if answer.status == "placed":
        touches = touched_total(board, task, answer.placements)
        return Attempt("placed", Found(answer.placements, touches, {}), "solver", answer.is_best and is_all)
    return Attempt("impossible" if answer.status == "impossible" and is_all else "unknown")


def _improved(board: Board, task: Task, rows: Ints, found: Found, budget: Budget) -> Attempt:
    """Lets CP-SAT look for fewer preferred domains, unless that is impossible."""
    if found.is_best or budget.improvements <= 0:
        return Attempt("placed", found, is_best=found.is_best)
    budget.improvements -= 1
    board.undo(0)
    chosen, is_all = _candidates(board, task, rows)
    used = np.array(sorted({row for _, row in found.placements}), dtype=np.int64)
    answer = solve(board, task, np.union1d(chosen, used), limit=budget.improvement_limit, hint=found.placements)
    is_best = answer.is_best and is_all
    if answer.status == "placed":
        touches = touched_total(board, task, answer.placements)
        if touches < found.touches:
            return Attempt("placed", replace_found(found, answer.placements, touches), "solver", is_best)
    return Attempt("placed", found, is_best=is_best)


def replace_found(found: Found, placements: list[tuple[Member, int]], touches: int) -> Found:
    """The same facts about another placement."""
    return Found(placements, touches, found.least)


def relabelled(task: Task, prefix: str) -> Task:
    """The task with group names that cannot be mistaken for another gang's."""
    members = tuple(replace(m, shape=replace(m.shape, group=f"{prefix}/{m.shape.group}")) for m in task.members)
    return replace(task, members=members, children=tuple(relabelled(c, prefix) for c in task.children))
