"""Runs a session of documentation as a reader would: one bash, the blocks unchanged and in order, on a copy of the checkout."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.codegen.files import ROOT
from hack.docs.pages import Block, How, Session

__all__ = ("Machine", "PageFailed", "copy_checkout", "run")

LIBRARY = Path(__file__).with_name("session.sh")
OLD = 946684800
"""Time stamp of copied files: nothing that make compares with the virtual environment may look newer than it."""
POLL_S = 0.1


class PageFailed(Exception):
    """A block failed; the text begins with page:line and ends with what was printed last."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a reader sits. `folder`: the checkout; `work`: for logs; `variables`: all that are set in a new terminal."""

    folder: Path
    work: Path
    variables: Mapping[str, str]


def copy_checkout(target: Path, root: Path = ROOT) -> None:
    """The files that a commit of the working tree would have, and its virtual environment; state of other runs stays behind."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, copy = root / name, target / name
        if source.is_file():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
            os.utime(copy, (OLD, OLD))
    (target / ".venv").symlink_to(root / ".venv")


def run(session: Session, machine: Machine, *, timeout_s: float) -> list[tuple[str, float]]:
    """Place and seconds of each block. Raises PageFailed at the first that fails, or that takes longer than `timeout_s`."""
    shutil.rmtree(machine.work, ignore_errors=True)
    machine.work.mkdir(parents=True)
    script, output = machine.work / "session.sh", machine.work / "output"
    script.write_text("".join(f"{line}\n" for line in _script(session, machine.work)))
    # Killed with the program that runs it, however that ends: nobody would look at what it does.
    wrapper = [setpriv, "--pdeathsig", "KILL", "--"] if (setpriv := shutil.which("setpriv")) else []
    with output.open("wb") as log:
        shell = subprocess.Popen(
            [*wrapper, "bash", str(script)], cwd=machine.folder, env=dict(machine.variables), stdin=subprocess.DEVNULL,
            stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        slow = _wait(shell, machine.work, timeout_s)
    finally:
        _end(shell)
    took = list(_times(machine.work))
    if slow or shell.returncode != 0:
        place = took[-1][0] if took else session.name
        failure = machine.work / "failure"
        reason = f"{place}: not done after {timeout_s:.0f} s" if slow else failure.read_text().strip() if failure.exists() else place
        raise PageFailed(f"{reason}\nexit code {shell.returncode}; the last lines of the session:\n{_tail(output)}")
    return took[:-1]


def _script(session: Session, work: Path) -> Iterator[str]:
    yield f"__work={shlex.quote(str(work))}"
    yield f"source {shlex.quote(str(LIBRARY))}"
    for n, block in enumerate(session.blocks):
        if block.how in (How.NEVER, How.IN_CI):
            continue
        place, file = shlex.quote(block.place), shlex.quote(str(_written(block, work / "blocks" / str(n))))
        yield f"__at {place}"
        if block.file:
            yield f"cat {file} >{shlex.quote(block.file)}"
        elif block.how is How.BACKGROUND:
            yield f"__background {place} {file} {shlex.quote(block.argument)}"
        elif block.how is How.EXIT:
            yield f"__expect {place} {block.argument} {file}"
        else:
            if block.how is How.AFTER_INTERRUPT:
                yield f"__interrupt {place}"
            yield f"source {file}"
    end = shlex.quote(f"{session.blocks[-1].page}: end")
    yield f"__at {end}"
    yield f"__interrupt {end}"
    yield f"__at {end}"


def _written(block: Block, folder: Path) -> Path:
    """The block as a file in which lines have the numbers that they have on the page, so that bash names them."""
    path = folder / block.page
    path.parent.mkdir(parents=True)
    padding = "" if block.file else "\n" * (block.line - 1)
    path.write_text(padding + block.text)
    return path


def _wait(shell: subprocess.Popen[bytes], work: Path, timeout_s: float) -> bool:
    """True when a block took too long."""
    progress = work / "progress"
    while shell.poll() is None:
        began = progress.stat().st_mtime if progress.exists() else time.time()
        if time.time() - began > timeout_s:
            return True
        time.sleep(POLL_S)
    return False


def _end(shell: subprocess.Popen[bytes]) -> None:
    """Nothing of the session's terminals is left; what it detached on purpose is the page's own business."""
    for sent, patience_s in ((signal.SIGINT, 5.0), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + patience_s
        for pid in (alive := _members(shell.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sent)
        while alive and time.monotonic() < deadline:
            shell.poll()
            alive = _members(shell.pid)
            time.sleep(POLL_S)
    shell.wait()


def _members(session: int) -> list[int]:
    """Pids of living processes of a session."""
    found: list[int] = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            state, _, _, sid = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(sid) == session and state != "Z":
            found.append(int(folder.name))
    return found


def _times(work: Path) -> Iterator[tuple[str, float]]:
    """Place and seconds of blocks that began; the last one's are 0."""
    progress = work / "progress"
    if not progress.exists():
        return
    seen = [line.split(" ", 1) for line in progress.read_text().splitlines()]
    ends = [float(began) for began, _ in seen[1:]]
    for (began, place), end in zip(seen, [*ends, float(seen[-1][0])], strict=True):
        yield place, end - float(began)


def _tail(output: Path, n_lines: int = 40) -> str:
    return "\n".join(output.read_text(errors="replace").splitlines()[-n_lines:])
