"""docs/reference: the command line, reasons, configuration and metrics, as the code has them."""

import argparse
import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from prometheus_client import Counter, Gauge, Histogram

from api.reasons import NOT_YET, REASON_HELP, Reason
from cli.main import main, parser
from cli.process import run_process
from controllers.runtime.metrics import Metrics
from hack.codegen import planner
from hack.codegen.configuration import KEYS, defaults
from hack.codegen.files import ROOT, stale_files

__all__ = ("FOLDER", "files", "stale")

FOLDER = ROOT / "docs" / "reference"
HEADER = "<!-- Generated from {source} by `python -m hack.codegen`; change it there. -->\n"


def files() -> dict[Path, str]:
    """Every generated page and what it should contain."""
    pages = {
        "cli.md": ("the argument parsers in cli/", _cli()),
        "reasons.md": ("api/reasons.py", _reasons()),
        "configuration.md": ("api/operatorconfig.py and hack/codegen/configuration.py", _configuration()),
        "planner-configuration.md": ("controllers/planner/config and hack/codegen/planner.py", planner.page(_table)),
        "metrics.md": ("controllers/runtime/metrics.py", _metrics()),
    }
    return {FOLDER / name: HEADER.format(source=source) + "\n".join(lines) + "\n" for name, (source, lines) in pages.items()}


def stale() -> list[Path]:
    """Pages that are missing, differ, or should not be there."""
    return stale_files(FOLDER, "*.md", files())


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def _cli() -> Iterator[str]:
    root = parser()
    yield from ("# Command line", "", f"{root.description} `grovekeeper COMMAND --help` prints the same.", "")
    yield from ("Exit codes:", "")
    yield f"* every command: {_codes(inspect.getdoc(main))}"
    yield f"* `controllers` and `scheduler`: {_codes(inspect.getdoc(run_process))}"
    for name, command in _commands(root).items():
        yield from _command(f"## grovekeeper {name}", command)
        for task, parser_of_task in _commands(command).items():
            yield from _command(f"### grovekeeper {name} {task}", parser_of_task)


def _command(title: str, command: argparse.ArgumentParser) -> Iterator[str]:
    yield from ("", title, "", command.description or "")
    if not _commands(command):
        yield ""
        yield from _table(("argument", "meaning"), ((_usage(a), _meaning(a)) for a in command._actions if a.dest != "help"))  # pyright: ignore[reportPrivateUsage] - argparse shows its arguments in no other way


def _commands(root: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """Commands by name; none if the parser has only arguments."""
    return next((a.choices for a in root._actions if isinstance(a.choices, dict)), {})  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType] - as above


def _codes(docstring: str | None) -> str:
    """The part of a docstring about exit codes, from the first number on."""
    found = re.search(r"[Ee]xit codes?: (.*)", docstring or "")
    if found is None:
        raise ValueError(f"no exit codes in: {docstring}")
    return found[1]


def _usage(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{action.metavar or action.dest}`" + (" (optional)" if action.nargs == "?" else "")
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return f"`{names}`"
    value = f"{{{','.join(str(c) for c in action.choices)}}}" if action.choices else action.metavar or action.dest.upper()
    return f"`{names} {value}`"


def _meaning(action: argparse.Action) -> str:
    """The help text; which default of a pair of flags it ends with depends on the version of Python."""
    text = (action.help or "").removesuffix(" (default: %(default)s)")
    if isinstance(action, argparse.BooleanOptionalAction):
        text += f" (default `{action.option_strings[0 if action.default else -1]}`)"
    return f"{text} (required)" if action.required else text


def _reasons() -> Iterator[str]:
    yield from ("# Reasons", "")
    yield "Why something waits or is refused, as conditions, events, `kubectl get pg -o wide` (column Blocked) and logs show it."
    yield "The message beside a reason has the numbers and names. Reasons are only ever added."
    yield ""
    shown = sorted(r for r in Reason if REASON_HELP[r].action != NOT_YET)
    yield from _table(("reason", "meaning", "what to do"), ((f"`{r}`", REASON_HELP[r].meaning, REASON_HELP[r].action) for r in shown))
    yield from ("", "## Reserved", "", "These are part of the vocabulary, but nothing shows them yet.", "")
    rest = sorted(set(Reason) - set(shown))
    yield from _table(("reason", "meaning"), ((f"`{r}`", REASON_HELP[r].meaning) for r in rest))


def _configuration() -> Iterator[str]:
    yield from ("# Configuration", "")
    yield "The file that `--config` names: Grove's OperatorConfiguration, and a section `grovekeeper`. `apiVersion` and `kind` are"
    yield "required; every other key may be left out. Unknown keys are errors. The file is read at start. What we use ourselves:"
    yield from ("[manifests/config/controllers.yaml](../../manifests/config/controllers.yaml).", "")
    rows = ((f"`{key}`", f"`{value}`" if value else "", KEYS[key].effect, KEYS[key].text) for key, value in defaults())
    yield from _table(("key", "default", "has an effect", "meaning"), rows)


class _Listing(Metrics):
    """Writes down what is registered."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, str, str]] = []
        super().__init__()

    def _note(self, name: str, kind: str, text: str, labels: Sequence[str]) -> None:
        self.rows.append((f"`{name}`", kind, ", ".join(f"`{label}`" for label in labels), text))

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        self._note(name, "counter", text, labels)
        return super()._counter(name, text, *labels)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        self._note(name, "gauge", text, labels)
        return super()._gauge(name, text, *labels)

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        self._note(name, "histogram", text, labels)
        return super()._histogram(name, text, *labels)


def _metrics() -> Iterator[str]:
    yield from ("# Metrics", "")
    yield "Both processes serve them at `/metrics` of their `--bind` address. Names follow client-go and controller-runtime where those"
    yield from ("have one. No label holds the name of an object. Histograms have `_bucket`, `_sum` and `_count`.", "")
    yield from _table(("metric", "type", "labels", "meaning"), sorted(_Listing().rows))
