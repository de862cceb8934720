"""Cuts the chunks of a watch response into complete lines.

aiohttp's own `readline` refuses lines beyond its buffer limit, and objects larger than that are normal here.
"""

__all__ = ("LINE_LIMIT", "LineSplitter", "LineTooLong")

LINE_LIMIT = 4 * 1024 * 1024
"""Bytes in one line. etcd refuses objects of more than 1.5 MiB by default, so a longer line is a broken stream."""


class LineTooLong(Exception):
    """A line exceeds the limit; the stream cannot be trusted any further."""


class LineSplitter:
    """Feeds on chunks cut anywhere, gives complete lines without their newline. Empty lines (keep-alive) are dropped."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def partial(self) -> bool:
        """True while the start of a line waits for its end."""
        return bool(self._parts)

    def feed(self, chunk: bytes) -> list[bytes]:
        """Lines that `chunk` completes; raises LineTooLong."""
        first, *rest = chunk.split(b"\n")
        self._size += len(first)
        if self._size > self._limit:
            raise LineTooLong(f"line of more than {self._limit} bytes")
        if first:
            self._parts.append(first)
        if not rest:
            return []
        lines = [b"".join(self._parts), *rest[:-1]]
        tail = rest[-1]
        self._parts = [tail] if tail else []
        self._size = len(tail)
        if max(map(len, rest)) > self._limit:
            raise LineTooLong(f"line of more than {self._limit} bytes")
        return [line for line in lines if line and line != b"\r"]
