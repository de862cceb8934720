"""Pages that people read: every command is run by some test, every manifest is one, every link leads somewhere."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hack.codegen.files import ROOT
from hack.docs.pages import Block, How, blocks, pages, sessions

NEVER = 3
"""Blocks that no test runs; more of them would need a better reason than there is."""
LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
PAGES = [str(p.relative_to(ROOT)) for p in pages()]


def all_blocks() -> Iterator[Block]:
    for path in pages():
        yield from blocks(path)


def anchors(path: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", h) for h in headings)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in plain}


@pytest.mark.parametrize("page", PAGES)
def test_every_shell_block_has_an_environment(page: str) -> None:
    for session in sessions(ROOT / page):
        assert session.blocks


def test_few_blocks_are_never_run_and_each_says_why() -> None:
    never = [b for b in all_blocks() if b.how is How.NEVER]
    assert len(never) <= NEVER, [b.place for b in never]
    assert all(len(b.argument) >= 20 for b in never)


def test_what_is_left_to_the_ci_run_is_in_it() -> None:
    lines = [line.partition("#")[0] for line in (ROOT / ".ci/run").read_text().splitlines()]
    for block in all_blocks():
        if block.how is How.IN_CI:
            for command in (line.partition("#")[0].strip() for line in block.text.splitlines()):
                assert any(re.search(rf"(^| ){re.escape(command)}($|[; ])", line) for line in lines), f"{block.place}: {command}"


@pytest.mark.parametrize("page", PAGES)
def test_yaml_is_yaml_and_complete_manifests_are_saved_and_used(page: str) -> None:
    for block in blocks(ROOT / page):
        if block.language != "yaml":
            continue
        documents = list(yaml.safe_load_all(block.text))
        assert documents
        if any("apiVersion" in d and "kind" in d for d in documents):
            # A saved file is read by the commands that follow, on a real API server.
            assert block.file, f"{block.place}: which file is this?"
            later = [b for b in blocks(ROOT / page) if b.session == block.session and b.line > block.line and b.is_shell]
            assert any(block.file in b.text for b in later), f"{block.place}: no command uses {block.file}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    here = ROOT / page
    for link in LINK.finditer(re.sub(r"```.*?```", "", here.read_text(encoding="utf-8"), flags=re.DOTALL)):
        target, _, anchor = link["target"].partition("#")
        if target.startswith(("http://", "https://")):
            continue
        there = (here.parent / target).resolve() if target else here
        assert there.exists(), f"{page} links to {link['target']}"
        assert not anchor or anchor in anchors(there), f"{page} links to {link['target']}, and there is no such heading"


@pytest.mark.parametrize("page", PAGES)
def test_every_page_begins_with_a_title_and_what_it_is_for(page: str) -> None:
    text = re.sub(r"<!--.*?-->\n", "", (ROOT / page).read_text(encoding="utf-8"))
    title, _, rest = text.partition("\n")
    assert title.startswith("# ")
    assert re.match(r"\n*[A-Z\[`*]", rest), f"{page}: the title is followed by no sentence"


def test_every_page_of_docs_can_be_found_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs").glob("*.md")):
        assert f"docs/{path.name}" in readme
