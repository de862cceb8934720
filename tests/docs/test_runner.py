"""What a page says runs as it is written, and a page that is wrong is found with its line."""

import os
from pathlib import Path

import pytest

from hack.docs.pages import Block, How, PageError, blocks, sessions
from hack.docs.run import Machine, PageFailed, run


def page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text)
    return path


def run_page(folder: Path, text: str, timeout_s: float = 15.0) -> str:
    """Output of a page with one session."""
    (session,) = sessions(page(folder, text), folder)
    run(session, Machine(folder, folder / "work", {"PATH": os.environ["PATH"]}), timeout_s=timeout_s)
    return (folder / "work/output").read_text()


def shell(*lines: str, before: str = "") -> str:
    return "\n".join(["# Page", "<!-- runs on: demo -->", *([before] if before else []), "```bash", *lines, "```", ""])


def test_blocks_share_one_shell_and_yaml_becomes_a_file(tmp_path: Path) -> None:
    text = (
        shell("WORD=seen", "cd /")
        + "<!-- file: made.yaml -->\n```yaml\na: 1\n```\n"
        + "1. In a list:\n\n   ```bash\n   echo $WORD in $PWD\n   ```\n"
    )
    text = text.replace("cd /", f"mkdir -p {tmp_path}/sub\ncd {tmp_path}/sub") + "```bash\ncat made.yaml\n```\n"
    output = run_page(tmp_path, text)
    assert f"seen in {tmp_path}/sub\n" in output
    assert "a: 1\n" in output


def test_output_and_comments_are_no_commands(tmp_path: Path) -> None:
    text = shell("echo ran") + "```text\nfalse\n```\n"
    assert [b.language for b in blocks(page(tmp_path, text), tmp_path)] == ["bash", "text"]
    assert run_page(tmp_path, text).count("ran") == 1


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (("true", "test 1 = 2"), "page.md:5: test 1 = 2"),
        (("false | true",), "page.md:4: "),
        (("X=$(cat /no/such/file)", "echo after"), "page.md:4: X=$(cat /no/such/file)"),
        (("for i in 1; do", "  false", "done"), "page.md:5: false"),
        (("true", "echo $UNKNOWN_NAME"), "line 5: UNKNOWN_NAME: unbound variable"),
        (("if true; then",), "syntax error"),
    ],
)
def test_failures_name_page_line_and_command(tmp_path: Path, lines: tuple[str, ...], expected: str) -> None:
    with pytest.raises(PageFailed) as caught:
        run_page(tmp_path, shell(*lines))
    assert expected in str(caught.value)
    assert "page.md:" in str(caught.value).splitlines()[0]


def test_blocks_after_a_failure_do_not_run(tmp_path: Path) -> None:
    with pytest.raises(PageFailed):
        run_page(tmp_path, shell("false") + "```bash\ntouch second\n```\n")
    assert not (tmp_path / "second").exists()


def test_a_block_may_be_meant_to_fail(tmp_path: Path) -> None:
    before = "<!-- runs: exit 4 -->"
    assert "then" in run_page(tmp_path, shell("echo first", "(exit 4)", before=before) + "```bash\necho then\n```\n")
    with pytest.raises(PageFailed, match=r"page\.md:5: it ended with 0 instead of 4"):
        run_page(tmp_path, shell("echo first", before=before))
    with pytest.raises(PageFailed, match=r"page\.md:5: it ended with 3 instead of 4"):
        run_page(tmp_path, shell("(exit 3)", "(exit 4)", before=before))


def test_background_blocks_run_until_interrupted(tmp_path: Path) -> None:
    before = "<!-- runs: background until it is up -->"
    # Not a loop of short sleeps: bash takes a Ctrl-C for theirs when one of them ends by itself just then.
    waits = ("trap 'echo bye >ended; exit 130' INT", "sleep 0.3; touch up; echo it is up", "sleep 60")
    text = shell(*waits, before=before) + "```bash\ntest -e up\ntest ! -e ended\n```\n"
    run_page(tmp_path, text)
    assert (tmp_path / "ended").exists()
    (tmp_path / "ended").unlink()
    run_page(tmp_path, text + "<!-- runs: after Ctrl-C -->\n```bash\ntest -e ended\n```\n")


@pytest.mark.parametrize(
    ("line", "expected"),
    [("echo no; sleep 0.2", "it ended, and never printed: it is up"), ("echo it is up; sleep 0.5; exit 7", "had ended by itself")],
)
def test_background_blocks_that_end_are_found(tmp_path: Path, line: str, expected: str) -> None:
    text = shell(line, before="<!-- runs: background until it is up -->") + "```bash\nsleep 1\n```\n"
    with pytest.raises(PageFailed, match=expected):
        run_page(tmp_path, text)


def test_a_block_that_hangs_is_ended_with_all_its_processes(tmp_path: Path) -> None:
    text = shell("(sleep 61.25 & wait)", before="<!-- runs: background until never -->")
    with pytest.raises(PageFailed, match=r"page\.md:5: not done after 1 s"):
        run_page(tmp_path, text, timeout_s=1)
    left = [p for p in Path("/proc").glob("[0-9]*/cmdline") if b"61.25" in read(p)]
    assert left == []


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_directives(tmp_path: Path) -> None:
    text = shell("make test", before="<!-- runs: in .ci/run -->") + "<!-- runs: never, it takes a day -->\n```bash\nsleep 86400\n```\n"
    found = [(b.how, b.argument) for b in blocks(page(tmp_path, text), tmp_path)]
    assert found == [(How.IN_CI, ""), (How.NEVER, "it takes a day")]
    run_page(tmp_path, text)


def test_each_environment_begins_a_session(tmp_path: Path) -> None:
    text = shell("true") + "<!-- runs on: kube -->\n```bash\ntrue\n```\n```bash\ntrue\n```\n"
    found = sessions(page(tmp_path, text), tmp_path)
    assert [(s.environment, len(s.blocks), s.name) for s in found] == [("demo", 1, "page.md:4"), ("kube", 2, "page.md:8")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```\ntrue\n```\n", r"page\.md:1: a block of no language"),
        ("```console\ntrue\n```\n", r"page\.md:1: a block of console"),
        ("```bash\ntrue\n```\n", r"page\.md:2: nothing says where"),
        ("<!-- runs on: moon -->\n", r"page\.md:1: no environment 'moon'"),
        ("<!-- runs: sometimes -->\n```bash\ntrue\n```\n", r"page\.md:1: `runs: sometimes` means nothing"),
        ("<!-- runs: never -->\n```bash\ntrue\n```\n", r"page\.md:1: `runs: never` means nothing"),
        ("<!-- runs: exit 4 -->\ntext\n```bash\ntrue\n```\n", r"page\.md:2: the comment before this line"),
        ("<!-- runs:exit 4 -->\n", r"page\.md:1: a comment that cannot be read"),
        ("```bash\ntrue\n", r"page\.md:1: a block without an end"),
    ],
)
def test_pages_that_cannot_be_read(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(PageError, match=expected):
        sessions(page(tmp_path, text), tmp_path)


def test_places_are_lines_of_the_page(tmp_path: Path) -> None:
    found = list(blocks(page(tmp_path, "one\n\n```text\nthree\n```\n"), tmp_path))
    assert found == [Block("page.md", 4, "text", "three\n")]
