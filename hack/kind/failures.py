"""What can go wrong here: one exception, whose text says what to do."""

__all__ = ("KindFailed",)


class KindFailed(Exception):
    """A cluster, node image or Docker daemon cannot be had or does not do its part."""
