"""Fenced blocks of the documentation, and what the comments before them say about running them.

A page says with `<!-- runs on: ENVIRONMENT -->` where the blocks below it run; each such comment begins a new session, that is one shell.
A comment directly before a block changes how it runs:

    <!-- runs: background until TEXT -->   in a terminal of its own; readers go on when it has printed TEXT
    <!-- runs: exit N -->                  it is meant to end with that exit code
    <!-- runs: after Ctrl-C -->            the background blocks of the session are interrupted first
    <!-- runs: in .ci/run -->              every command of it is a part of .ci/run, and is not run a second time
    <!-- runs: never, REASON -->           not at all
    <!-- file: NAME -->                    readers save the block under that name
"""

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hack.codegen.files import ROOT

__all__ = ("ENVIRONMENTS", "Block", "How", "PageError", "Session", "blocks", "pages", "sessions")

ENVIRONMENTS = ("demo", "kube", "kind", "cluster")
"""What is there: Python, make and kubectl; Kubernetes binaries too; Docker too; access to a cluster that exists, and Docker."""
LANGUAGES = ("bash", "text", "yaml")
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>.*)$")
COMMENT = re.compile(r"^ *<!-- (?P<key>runs on|runs|file): (?P<value>.+?) -->$")
RUNS = re.compile(
    r"(?P<background>background until (?P<until>.+))|exit (?P<exit>[0-9]+)|(?P<after>after Ctrl-C)|(?P<ci>in \.ci/run)|(?P<never>never, .+)"
)


class PageError(Exception):
    """A page cannot be read; the text begins with page:line."""


class How(enum.Enum):
    """How a shell block runs."""

    IN_ORDER = "in order"
    BACKGROUND = "background"
    EXIT = "exit"
    AFTER_INTERRUPT = "after Ctrl-C"
    IN_CI = "in .ci/run"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Block:
    """`line`: of its first line of text, from 1. `argument`: the text to wait for, the exit code, or the reason never to run it."""

    page: str
    line: int
    language: str
    text: str
    how: How = How.IN_ORDER
    argument: str = ""
    file: str = ""
    environment: str = ""
    session: int = 0

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_shell(self) -> bool:
        return self.language == "bash"


@dataclass(frozen=True, slots=True)
class Session:
    """Blocks of one page that run in one shell, in this order: shell blocks, and files to be saved."""

    environment: str
    blocks: tuple[Block, ...]

    @property
    def name(self) -> str:
        return f"{self.blocks[0].place}"


def pages(root: Path = ROOT) -> tuple[Path, ...]:
    """Every page that people read, generated ones too."""
    return (root / "README.md", root / "AGENTS.md", *sorted((root / "docs").rglob("*.md")))


def blocks(path: Path, root: Path = ROOT) -> Iterator[Block]:
    """Fenced blocks of a page. Raises PageError for a block without a known language and for comments that mean nothing."""
    page = str(path.relative_to(root))
    lines = iter(enumerate(path.read_text(encoding="utf-8").splitlines(), 1))
    environment, session, comments = "", 0, dict[str, tuple[int, str]]()
    for number, line in lines:
        if (comment := COMMENT.match(line)) is not None:
            key, value = comment["key"], comment["value"]
            if key != "runs on":
                comments[key] = (number, value)
                continue
            if value not in ENVIRONMENTS:
                raise PageError(f"{page}:{number}: no environment {value!r}; there are {', '.join(ENVIRONMENTS)}")
            environment, session = value, session + 1
        elif (fence := FENCE.match(line)) is not None:
            if fence["info"] not in LANGUAGES:
                raise PageError(f"{page}:{number}: a block of {fence['info'] or 'no language'}; known are {', '.join(LANGUAGES)}")
            how, argument = _how(page, *comments.get("runs", (number, "")))
            file = comments.get("file", (0, ""))[1]
            text = _content(lines, len(fence["indent"]), f"{page}:{number}")
            yield Block(page, number + 1, fence["info"], text, how, argument, file, environment, session)
            comments = {}
        elif line.strip() and comments:
            raise PageError(f"{page}:{number}: the comment before this line has to stand directly before a block")
        elif line.lstrip().startswith("<!-- runs"):
            raise PageError(f"{page}:{number}: a comment that cannot be read")


def sessions(path: Path, root: Path = ROOT) -> tuple[Session, ...]:
    """What there is to run of a page. Raises PageError when a shell block has no environment."""
    found: dict[int, list[Block]] = {}
    for block in blocks(path, root):
        if not (block.is_shell or block.file):
            continue
        if not block.environment:
            raise PageError(f"{block.place}: nothing says where this block runs")
        found.setdefault(block.session, []).append(block)
    return tuple(Session(group[0].environment, tuple(group)) for group in found.values())


def _content(lines: Iterator[tuple[int, str]], indent: int, place: str) -> str:
    text: list[str] = []
    for _, line in lines:
        if line.strip() == "```":
            return "\n".join(text) + "\n"
        text.append(line[indent:] if not line[:indent].strip() else line)
    raise PageError(f"{place}: a block without an end")


def _how(page: str, number: int, value: str) -> tuple[How, str]:
    if not value:
        return How.IN_ORDER, ""
    match = RUNS.fullmatch(value)
    if match is None:
        raise PageError(f"{page}:{number}: `runs: {value}` means nothing")
    if match["background"]:
        return How.BACKGROUND, match["until"]
    if match["exit"]:
        return How.EXIT, match["exit"]
    if match["never"]:
        return How.NEVER, match["never"].removeprefix("never, ")
    return (How.AFTER_INTERRUPT if match["after"] else How.IN_CI), ""
