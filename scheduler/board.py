"""The working state of one placement attempt: room per node, and how many pods of each shape a node still takes. Supports undo."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from scheduler.model import Group, Member, Shape
from scheduler.requests import is_extended
from scheduler.snapshot import Snapshot
from scheduler.topology import Ints

__all__ = ("Board", "Entry")

Bools = npt.NDArray[np.bool_]


class Entry(NamedTuple):
    """Pods of one shape number that were put: counts[i] of them, in order, on rows[i]."""

    shape: int
    members: tuple[Member, ...]
    rows: Ints
    counts: Ints


class Board:
    """Shapes that behave alike share a number.

    `vectors`: int64 [shapes, columns]. `room`: int64 [rows, columns], never negative, reduced to the
    resources that the shapes ask for. `slots`: int64 [shapes, rows], pods of that shape that fit when it gets the node alone.
    """

    def __init__(self, snapshot: Snapshot, groups: Mapping[str, Group], shapes: Iterable[Shape], *, with_soon: bool) -> None:
        self.snapshot = snapshot
        self.table = snapshot.table
        self.groups = groups
        self.number: dict[Shape, int] = {}
        unique: dict[object, int] = {}
        self.shapes: list[Shape] = []
        is_guarded = bool(snapshot.guarded) or any(g.anti for _, g in snapshot.planned)
        for shape in shapes:
            group = groups[shape.group]
            alike = (shape.request, shape.rules, shape.group if is_guarded or group.anti or group.apart else "")
            self.number[shape] = unique.setdefault(alike, len(unique))
            if self.number[shape] == len(self.shapes):
                self.shapes.append(shape)
        vectors = [snapshot.vector(s.request) for s in self.shapes]
        width = len(snapshot.columns)
        full = np.zeros((len(vectors), width), dtype=np.int64)
        for i, vector in enumerate(vectors):
            full[i, : len(vector)] = vector
        used = np.flatnonzero(full.any(axis=0))
        names = {column: name for name, column in snapshot.columns.items()}
        self.resources = [names[int(c)] for c in used]
        self.extended = [i for i, name in enumerate(self.resources) if is_extended(name)]
        self.vectors: Ints = full[:, used]
        room = snapshot.free[:, used]
        self.room: Ints = np.asfortranarray(np.maximum(room + snapshot.soon[:, used] if with_soon else room, 0))
        devices = [c for name, c in snapshot.columns.items() if is_extended(name)]
        self.devices: Ints = np.maximum(snapshot.free[:, devices], 0).sum(axis=1)
        """Free devices of any kind per row, so that pods without devices can keep away from them."""
        self.eligible: list[Bools] = [self._eligible(s) for s in self.shapes]
        self._apart = [[j for j, t in enumerate(self.shapes) if t.group in groups[s.group].apart] for s in self.shapes]
        self._guarded = any(self._apart)
        self._count: Ints = np.zeros((len(self.shapes), self.table.rows if self._guarded else 0), dtype=np.int64)
        self.slots: Ints = np.zeros((len(self.shapes), self.table.rows), dtype=np.int64)
        self.log: list[Entry] = []
        for i in range(len(self.shapes)):
            self.slots[i] = self._slots(i, slice(None))

    def is_single(self, shape: int) -> bool:
        """True when two pods of the shape may not share a node."""
        return shape in self._apart[shape]

    def are_apart(self, a: int, b: int) -> bool:
        """True when pods of the two shapes may not share a node."""
        return b in self._apart[a]

    @property
    def is_guarded(self) -> bool:
        """True when some shapes may not share nodes."""
        return self._guarded

    def rows(self) -> Ints:
        """Rows that take at least one pod, in order of node name."""
        rows = np.flatnonzero(self.slots.any(axis=0))
        return rows[np.argsort(self.table.ranks()[rows], kind="stable")]

    def counted(self, demand: Iterable[tuple[Shape, int]]) -> list[tuple[int, int]]:
        """A demand by shape number."""
        total: dict[int, int] = {}
        for shape, count in demand:
            number = self.number[shape]
            total[number] = total.get(number, 0) + count
        return list(total.items())

    def put(self, entry: Entry) -> None:
        """Places pods."""
        self._shift(entry.shape, entry.rows, -entry.counts)
        self.log.append(entry)

    def undo(self, mark: int) -> None:
        """Takes back everything that was put after the log had `mark` entries."""
        while len(self.log) > mark:
            entry = self.log.pop()
            self._shift(entry.shape, entry.rows, entry.counts)

    def placements(self) -> list[tuple[Member, int]]:
        """Every pod that was put, with its row."""
        return [pair for e in self.log for pair in zip(e.members, np.repeat(e.rows, e.counts).tolist(), strict=True)]

    def _shift(self, shape: int, rows: Ints, counts: Ints) -> None:
        self.room[rows] += counts[:, None] * self.vectors[shape]
        if self._guarded:
            self._count[shape, rows] -= counts
        for i in range(len(self.shapes)):
            self.slots[i, rows] = self._slots(i, rows)

    def _slots(self, shape: int, rows: Ints | slice) -> Ints:
        vector = self.vectors[shape]
        columns = np.flatnonzero(vector)
        room = self.room[rows]
        slots = room[:, columns[0]] // vector[columns[0]]
        for c in columns[1:]:
            slots = np.minimum(slots, room[:, c] // vector[c])
        slots = np.where(self.eligible[shape][rows], slots, 0)
        if self._guarded and self._apart[shape]:
            if self.is_single(shape):
                slots = np.minimum(slots, 1)
            taken = self._count[self._apart[shape]][:, rows].any(axis=0)
            slots = np.where(taken, 0, slots)
        return slots

    def _eligible(self, shape: Shape) -> Bools:
        eligible = self.table.causes(shape.rules) == 0
        conflicts = self.snapshot.conflicts(self.groups[shape.group])
        return eligible if conflicts is None else eligible & ~conflicts
