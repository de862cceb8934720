"""metav1 conditions as status data: LTT moves only when status changes, an unchanged condition stays as it is."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from api.plan import Manifest
from api.timestamps import rfc3339

__all__ = ("Wanted", "merged")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A condition as computed now. `observed_generation` 0 leaves the field out."""

    type: str
    status: str
    reason: str
    message: str
    observed_generation: int = 0


def merged(live: Iterable[Manifest], wanted: Iterable[Wanted], now: datetime) -> list[Manifest]:
    """The wanted conditions as data, in order. `live`: conditions of the object as wire data, from which LTT is carried over."""
    before = {c["type"]: c for c in live}
    return [_one(before.get(w.type), w, now) for w in wanted]


def _one(live: Manifest | None, wanted: Wanted, now: datetime) -> Manifest:
    moved = live is None or live.get("status") != wanted.status or not live.get("lastTransitionTime")
    out: Manifest = {
        "type": wanted.type,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
        "lastTransitionTime": rfc3339(now) if moved or live is None else live["lastTransitionTime"],
    }
    if wanted.observed_generation:
        out["observedGeneration"] = wanted.observed_generation
    return out
