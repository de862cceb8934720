"""Points in time as short ages, the way kubectl shows them."""

from datetime import datetime, timedelta
from typing import Any

__all__ = ("age", "human_duration", "instant")

UNKNOWN = "<unknown>"
INVALID = "<invalid>"


def human_duration(duration: timedelta) -> str:
    """Two units at most: 45s, 3m20s, 5h7m, 47h, 3d4h, 400d, 2y30d. A little in the future counts as now."""
    seconds = int(duration.total_seconds())
    if seconds < -1:
        return INVALID
    seconds = max(seconds, 0)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    return _pair(days // 365, "y", days % 365, "d") if days < 2920 else f"{days // 365}y"


def instant(text: Any) -> datetime | None:
    """Of an RFC 3339 text; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else None


def age(text: Any, now: datetime) -> str:
    """How long ago an RFC 3339 text was; `<unknown>` when there is none, `<invalid>` when it is no time."""
    if not text:
        return UNKNOWN
    then = instant(text)
    return human_duration(now - then) if then else INVALID


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
