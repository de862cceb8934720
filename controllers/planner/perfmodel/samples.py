"""Observed iterations of one kind of work, bounded: spread over buckets, the fullest bucket gives way.

Planner behaviour: planner.md §14.4. The original picks among equally full buckets at random; here the one whose oldest sample is
the oldest gives way, so that a run can be repeated and recent samples stay.
"""

from collections import deque
from math import isqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ("SampleStore",)

_FIRST_ROOM = 64


class SampleStore:
    """Up to `max_observations` samples of 1 or 2 features and a target, in arrays that a fit can use as they are."""

    def __init__(self, dimensions: int, max_observations: int, bucket_count: int) -> None:
        self.dimensions = dimensions
        self._max = max_observations
        self._per_axis = bucket_count if dimensions == 1 else isqrt(bucket_count)
        # Rows: ones, features, target, age. Columns are samples, by first feature and then by age.
        self._rows = np.ones((dimensions + 3, min(_FIRST_ROOM, max_observations + 1)), dtype=np.float64)
        self._n = 0
        self._next_age = 0
        self._low: list[float] = []
        self._high: list[float] = []
        self._buckets: dict[int, deque[int]] | None = None

    def __len__(self) -> int:
        return self._n

    @property
    def columns(self) -> NDArray[np.float64]:
        """A view, shape (dimensions + 2, samples): ones, each feature, the targets; ascending in the first feature."""
        return self._rows[:-1, : self._n]

    def add(self, features: tuple[float, ...], target: float) -> None:
        """Takes a sample; drops one if there are now too many. All values must be finite."""
        self._insert(features, target)
        self._widen(features)
        if self._buckets is not None:
            self._buckets.setdefault(self._bucket_of(features), deque()).append(self._next_age)
        self._next_age += 1
        if self._n > self._max:
            self._drop_one()

    def _insert(self, features: tuple[float, ...], target: float) -> None:
        n, room = self._n, self._rows.shape[1]
        if n == room:
            wider = np.ones((self._rows.shape[0], min(2 * room, self._max + 1)), dtype=np.float64)
            wider[:, :room] = self._rows
            self._rows = wider
        at = int(self._rows[1, :n].searchsorted(features[0], side="right"))
        self._rows[1:, at + 1 : n + 1] = self._rows[1:, at:n]
        self._rows[1:, at] = (*features, target, self._next_age)
        self._n = n + 1

    def _widen(self, features: tuple[float, ...]) -> None:
        """Bounds only grow. When they do, buckets are forgotten, and made anew when a sample has to go."""
        if not self._low:
            self._low, self._high = list(features), list(features)
        for axis, value in enumerate(features):
            if value < self._low[axis]:
                self._low[axis] = value
                self._buckets = None
            elif value > self._high[axis]:
                self._high[axis] = value
                self._buckets = None

    def _bucket_of(self, features: tuple[float, ...] | list[float]) -> int:
        bucket = 0
        for low, high, value in zip(self._low, self._high, features, strict=True):
            part = int((value - low) / (high - low) * self._per_axis) if high > low else 0
            bucket = bucket * self._per_axis + min(max(part, 0), self._per_axis - 1)
        return bucket

    def _fill_buckets(self) -> dict[int, deque[int]]:
        """Ages of the samples of each bucket that is not empty, ascending."""
        buckets: dict[int, deque[int]] = {}
        held = self._rows[:, : self._n]
        for column in held[1:, held[-1].argsort()].T.tolist():
            buckets.setdefault(self._bucket_of(column[: self.dimensions]), deque()).append(int(column[-1]))
        return buckets

    def _drop_one(self) -> None:
        if self._buckets is None:
            self._buckets = self._fill_buckets()
        most = max(map(len, self._buckets.values()))
        age, key = min((ages[0], key) for key, ages in self._buckets.items() if len(ages) == most)
        if most > 1:
            self._buckets[key].popleft()
        else:
            del self._buckets[key]
        at = int((self._rows[-1, : self._n] == age).argmax())
        self._rows[1:, at : self._n - 1] = self._rows[1:, at + 1 : self._n]
        self._n -= 1
