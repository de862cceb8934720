"""Logs of a process: one JSON object a line on standard error, or text for people.

Fields are passed with `extra=` and by `log_context`, never formatted into the message. Only data types of JSON are written as such;
anything else becomes its `str`, so that a log call cannot fail on what it is given.
"""

import json
import logging
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal, TextIO

__all__ = ("JsonFormatter", "TextFormatter", "configure_logging", "log_context")

_CONTEXT: ContextVar[Mapping[str, object] | None] = ContextVar("log_context", default=None)
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@contextmanager
def log_context(**fields: object) -> Generator[None]:
    """Adds fields to every log line written inside the block, by this task and those it starts."""
    token = _CONTEXT.set({**(_CONTEXT.get() or {}), **fields})
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
    return {**(_CONTEXT.get() or {}), **extra}


class JsonFormatter(logging.Formatter):
    """time, level, logger and msg, then the fields; `error` has the traceback of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        line |= {name: value for name, value in _fields(record).items() if name not in line}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """One line for people: time, level, message, then name=value; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).strftime("%H:%M:%S.%f")[:-3]
        fields = "".join(f" {name}={json.dumps(value, default=str, ensure_ascii=False)}" for name, value in _fields(record).items())
        text = f"{at} {record.levelname:<7} {json.dumps(record.getMessage(), ensure_ascii=False)[1:-1]}{fields}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


def configure_logging(
    level: Literal["debug", "info", "error"] = "info", style: Literal["json", "text"] = "json", stream: TextIO | None = None
) -> None:
    """Sends all logs of the process to `stream` (standard error), replacing earlier handlers."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Access logs of the health server would be a line per probe.
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
