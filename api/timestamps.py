"""Timestamps as the API server writes them."""

from datetime import UTC, datetime

__all__ = ("rfc3339",)


def rfc3339(moment: datetime) -> str:
    """RFC 3339 in UTC with second precision (metav1.Time)."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
