"""Why a gang is not placed: evidence from the board, and the text made of it (starts with the fact, ends with what to do; at most 1 KB)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from api.plan import Why
from api.reasons import Reason
from scheduler.board import Board
from scheduler.construct import Search
from scheduler.eligibility import Cause
from scheduler.feasibility import Bounds
from scheduler.model import Gang, Group, Member, MemberState
from scheduler.options import pinned_domain
from scheduler.order import count_placed
from scheduler.snapshot import Snapshot
from scheduler.tasks import Task
from scheduler.topology import Ints

__all__ = ("Certificate", "certificate", "infeasible", "split_notes", "surplus_left", "waiting", "waiting_for_base")

LISTED = 5
"""Groups that a text lists by name."""
TRIED = 4
"""Domains whose room is counted for the text."""
MESSAGE_LIMIT = 1024
CAUSES = {
    Cause.NOT_READY: "not ready",
    Cause.CORDONED: "cordoned",
    Cause.TAINT: "with taints that are not tolerated",
    Cause.SELECTOR: "not matching the node selector",
    Cause.AFFINITY: "not matching the node affinity",
}


@dataclass(frozen=True, slots=True)
class Certificate:
    """Evidence for an infeasible task. `level` and `domain` are empty when no domain is to blame.

    `fits` of `wanted` pods fit into the best domain, or into the cluster. `short`: the resource that is lacking, if one is.
    `excluded`: nodes by cause, for the group that can use the fewest nodes.
    """

    reason: Reason
    fits: int
    wanted: int
    nodes: int
    excluded: tuple[tuple[Cause, int], ...] = ()
    scope: str = ""
    level: str = ""
    domain: str = ""
    short: str = ""


def certificate(snapshot: Snapshot, groups: Mapping[str, Group], task: Task) -> Certificate:
    """Looks for what is missing: first for the whole cluster, then for the scope that finds no domain."""
    members = [m for t in task.walk() for m in t.members]
    board = Board(snapshot, groups, [m.shape for m in members], with_soon=False)
    rows = board.rows()
    nodes, excluded = _excluded(board)
    sure = Task(task.scope, children=tuple(task.children[: task.k]), k=task.k, pins=task.pins) if task.is_choice else task
    members = [m for t in sure.walk() for m in t.members]
    fits = _count(board, members, rows)
    if fits < len(members):
        reason, short = _shortage(board, members, nodes, excluded)
        return Certificate(reason, fits, len(members), nodes, excluded, short=short)
    part, domain, count = _tightest(board, sure, rows)
    if part is None or part.scope.required is None:
        return Certificate(Reason.FRAGMENTED, fits, len(members), nodes, excluded)
    n_part = sum(len(t.members) for t in part.walk())
    path = board.table.tree(part.scope.tree).path(part.scope.required, domain) if domain >= 0 else ()
    level = part.scope.tree[part.scope.required]
    return Certificate(Reason.INSUFFICIENT_IN_DOMAIN, count, n_part, nodes, excluded, part.scope.name, level, "/".join(path))


def infeasible(task: Task, found: Certificate, *, is_proven: bool) -> Why:
    """The reason for a gang without place."""
    if not is_proven and found.fits >= found.wanted:
        reason = Reason.SEARCH_BUDGET
        fact = f"No placement was found within the search budget for {_pods(found.wanted)} ({_needs(task)})."
        action = "It is tried again after every change of the cluster; free whole nodes to make it easier."
    elif found.level:
        reason = found.reason
        where = f"the best, {found.domain}, takes {found.fits}" if found.domain else "no node is in such a domain"
        if found.fits >= found.wanted:
            where += ", but not under the narrower rules inside"
        fact = f"{found.scope} needs {_pods(found.wanted)} in one {found.level}; {where} ({_needs(task)})."
        action = f"Free room in one {found.level}, or ask for a broader level."
    else:
        reason = found.reason
        short = f" for lack of {found.short}" if found.short else ""
        fact = f"Needs {_pods(found.wanted)} ({_needs(task)}); the cluster takes {found.fits}{short}."
        action = "Add or free nodes, or change what keeps the pods off them." if found.excluded else "Add or free nodes."
    excluded = ", ".join(f"{n} {CAUSES[cause]}" for cause, n in found.excluded)
    middle = f" {sum(n for _, n in found.excluded)} of {found.nodes} nodes are excluded: {excluded}." if excluded else ""
    evidence = {
        "fits": found.fits,
        "wanted": found.wanted,
        "domain": found.domain,
        "level": found.level,
        "resource": found.short,
        "nodes": found.nodes,
        "excluded": {cause.name: n for cause, n in found.excluded},
    }
    return _why(reason, f"{fact}{middle}", action, evidence)


def waiting(gang: Gang, placed: Mapping[str, int]) -> Why:
    """The reason for a gang that has too few pods to reach its minimums."""
    lacks: list[str] = []
    gated = 0
    for group in gang.groups:
        lack = group.min - count_placed(group, placed)
        ready = sum(m.state is MemberState.PENDING and m.uid not in placed for m in group.members)
        if lack > ready:
            held = sum(m.state is MemberState.GATED for m in group.members)
            gated += held
            lacks.append(f"{lack - ready} of {group.name} ({len(group.members)} exist, {held} gated)")
    reason = Reason.WAITING_FOR_GATES if gated else Reason.WAITING_FOR_PODS
    action = "Their scheduling gates have to be removed first." if gated else "They have to be created first."
    return _why(reason, f"Waiting for pods: {_listed(lacks)}.", action, {"groups": len(lacks), "gated": gated})


def waiting_for_base(gang: Gang) -> Why:
    """The reason for a scaled gang whose base gang is not placed."""
    return _why(
        Reason.WAITING_FOR_BASE_GANG,
        f"Waiting until base gang {gang.base} is placed.",
        "See why that one waits.",
        {"base": gang.base},
    )


def surplus_left(gang: Gang, placed: Mapping[str, int]) -> Why | None:
    """What pods above the minimums lack; None when none is left that could be placed."""
    left = {g.name: n for g in gang.groups if (n := sum(m.state is MemberState.PENDING and m.uid not in placed for m in g.members)) > 0}
    if not left:
        return None
    texts = [f"{n} of {name}" for name, n in left.items()]
    return _why(
        Reason.INSUFFICIENT_CAPACITY,
        f"The gang has its minimum; more pods do not fit: {_listed(texts)}.",
        "Add or free nodes.",
        {"pods": sum(left.values())},
    )


def split_notes(snapshot: Snapshot, task: Task) -> tuple[Why, ...]:
    """Required scopes whose placed pods already span several domains: nothing is evicted for it, but the user should know."""
    notes: list[Why] = []
    for part in task.walk():
        required = part.scope.required
        if required is None or not part.pins:
            continue
        found = set(snapshot.table.tree(part.scope.tree).domains[required][list(part.pins)].tolist())
        if len(found) > 1:
            level = part.scope.tree[required]
            fact = f"Placed pods of {part.scope.name} span {len(found)} domains of {level}, which should be one."
            notes.append(_why(Reason.REQUIRED_SPLIT, fact, "New pods join the largest part; delete the others to move them.", {}))
    return tuple(notes)


def _excluded(board: Board) -> tuple[int, tuple[tuple[Cause, int], ...]]:
    """Number of nodes, and the excluded ones by cause for the shape that may use the fewest."""
    worst = min(board.shapes, key=lambda s: int((board.table.causes(s.rules) == 0).sum()))
    counts = Counter(Cause(int(c)) for c in board.table.causes(worst.rules))
    return len(board.table.row_of), tuple((c, counts[c]) for c in CAUSES if counts[c])


def _count(board: Board, members: Sequence[Member], rows: Ints) -> int:
    """How many of the pods fit on rows, leaving domains aside."""
    fits = 0
    search = Search(board)
    for number, group in _by_number(board, members):
        take = min(len(group), int(board.slots[number][rows].sum()))
        if take and search.pack(tuple(group[:take]), rows):
            fits += take
    board.undo(0)
    return fits


def _by_number(board: Board, members: Sequence[Member]) -> list[tuple[int, list[Member]]]:
    found: dict[int, list[Member]] = {}
    for member in members:
        found.setdefault(board.number[member.shape], []).append(member)
    total = np.maximum(board.room.sum(axis=0), 1)
    return sorted(found.items(), key=lambda item: (-float((board.vectors[item[0]] / total).max()), item[0]))


def _shortage(board: Board, members: Sequence[Member], nodes: int, excluded: tuple[tuple[Cause, int], ...]) -> tuple[Reason, str]:
    """The reason, and the resource of which there is too little in all, or too little per node."""
    if nodes and sum(n for _, n in excluded) == nodes:
        return _cause_reason(excluded), ""
    open_ = board.room[np.any(board.eligible, axis=0)]
    need = sum((board.vectors[board.number[m.shape]] for m in members), np.zeros_like(board.vectors[0]))
    too_large = board.vectors.max(axis=0) > open_.max(axis=0, initial=0)
    lack = np.where(too_large, need, need - open_.sum(axis=0)) / np.maximum(need, 1)
    worst = int(np.argmax(lack + too_large))
    return Reason.INSUFFICIENT_CAPACITY, board.resources[worst] if lack[worst] > 0 else ""


def _cause_reason(excluded: tuple[tuple[Cause, int], ...]) -> Reason:
    main = max(excluded, key=lambda item: item[1])[0]
    reasons = {
        Cause.TAINT: Reason.TAINT_NOT_TOLERATED,
        Cause.SELECTOR: Reason.NODE_SELECTOR_MISMATCH,
        Cause.AFFINITY: Reason.NODE_SELECTOR_MISMATCH,
    }
    return reasons.get(main, Reason.INSUFFICIENT_CAPACITY)


def _tightest(board: Board, task: Task, rows: Ints) -> tuple[Task | None, int, int]:
    """The first required scope, from the top, that no domain takes; its best domain (-1: none) and how many pods that takes."""
    bounds = Bounds(board)
    best: tuple[Task | None, int, int] = (None, -1, 0)
    for part in task.walk():
        required = part.scope.required
        members = [m for t in part.walk() for m in t.members]
        if required is None or not members:
            continue
        tree = board.table.tree(part.scope.tree)
        domains, size = bounds.domains(part.scope.tree, required, rows)
        pinned = pinned_domain(board, part)
        room = bounds.sums(board.room[rows, bounds.dominant(part.demand, rows)], domains, size)
        order = [pinned] if pinned is not None else np.lexsort((tree.ranks(required), -room))[:TRIED].tolist()
        counts = [(_count(board, members, rows[domains == d]), -i, d) for i, d in enumerate(order)]
        count, _, domain = max(counts, default=(0, 0, -1))
        if best[0] is None or count < len(members):
            best = (part, domain, count)
        if count < len(members):
            return best
    return best


def _needs(task: Task) -> str:
    """Required pods by group."""
    return _listed([f"{len(t.members)} {t.scope.name}" for t in task.walk() if t.members])


def _listed(texts: Sequence[str]) -> str:
    rest = len(texts) - LISTED
    return ", ".join(texts[:LISTED]) + (f" and {rest} more" if rest > 0 else "")


def _pods(n: int) -> str:
    return f"{n} pod" if n == 1 else f"{n} pods"


def _why(reason: Reason, fact: str, action: str, evidence: Mapping[str, object]) -> Why:
    """The text keeps its end, the action, when the middle has to be cut."""
    room = MESSAGE_LIMIT - len(action.encode()) - 5
    raw = fact.encode()
    kept = fact if len(raw) <= room else raw[:room].decode(errors="ignore") + "…"
    return Why(reason, f"{kept} {action}", evidence)
