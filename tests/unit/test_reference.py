"""docs/reference cannot drift from the code: every reason and key is explained, and what is said to have no effect has none."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.operatorconfig import OperatorConfiguration
from api.reasons import NOT_YET, REASON_HELP, Reason
from hack.codegen import reference
from hack.codegen.configuration import KEYS, NONE, defaults
from hack.codegen.files import stale_files

ROOT = Path(__file__).parents[2]
PRODUCT = ("api", "controllers", "scheduler", "cli")
TABLES = ("ORDINARY_WAITS", "PATIENCE_S")
"""They look reasons up; they give none."""
UNSEEN = {
    Reason.ADVISORY: "a warning about the gang that is collected and not reported",
    Reason.REQUIRED_SPLIT: "a note of the plan that is not reported",
}


def given(text: str) -> Iterator[Reason]:
    """Reasons that a module gives: each `Reason.X` outside TABLES."""
    for statement in ast.parse(text).body:
        names = {t.id for t in ast.walk(statement) if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)}
        if names & set(TABLES):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason":
                yield Reason[node.attr]


def sources() -> Iterator[str]:
    for folder in PRODUCT:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path != ROOT / "api/reasons.py":
                yield path.read_text(encoding="utf-8")


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_explained(reason: Reason) -> None:
    found = REASON_HELP[reason]
    assert found.meaning.endswith(".")
    assert found.action.endswith(".")


def test_reasons_that_are_given_say_what_to_do_and_no_others() -> None:
    shown = {r for r in Reason if REASON_HELP[r].action != NOT_YET}
    assert shown == {r for text in sources() for r in given(text)} - UNSEEN.keys()


def test_reasons_are_found_in_code_but_not_in_lookups() -> None:
    assert list(given("def f():\n    return Why(Reason.FORBIDDEN, '')\nPATIENCE_S = {Reason.GATED: 1}\n")) == [Reason.FORBIDDEN]


def test_every_configuration_key_is_explained_and_no_other() -> None:
    keys = [key for key, _ in defaults()]
    assert len(keys) == len(set(keys))
    assert set(keys) == KEYS.keys()


def test_sections_without_effect_are_read_by_nobody() -> None:
    text = "\n".join(sources())
    for name, field in OperatorConfiguration.model_fields.items():
        if name in ("api_version", "kind"):
            continue
        key = field.alias or name
        has_effect = any(found.effect != NONE for path, found in KEYS.items() if path.split(".")[0] == key)
        assert (f"config.{name}" in text) is has_effect, key


def test_defaults_are_written_as_in_the_file() -> None:
    found = dict(defaults())
    assert found["leaderElection.leaseDuration"] == "15s"
    assert found["grovekeeper.schedulerNames"] == "[grovekeeper-scheduler, kai-scheduler]"
    assert found["scheduler.profiles[].name"] == "default-scheduler"
    assert found["logFormat"] == "json"
    assert found["authorizer.enabled"] == "false"
    assert found["server.webhooks.bindAddress"] == ""


def test_pages_are_up_to_date() -> None:
    assert reference.stale() == []


def test_pages_show_commands_reasons_keys_and_metrics() -> None:
    pages = {path.name: text for path, text in reference.files().items()}
    for command in ("controllers", "scheduler", "render", "get"):
        assert f"## grovekeeper {command}\n" in pages["cli.md"]
    assert "| `--mode {binder}` | " in pages["cli.md"]
    assert "(default `--leader-elect`)" in pages["cli.md"]
    assert all(f"| `{reason}` | " in pages["reasons.md"] for reason in Reason)
    assert "| `controllers.podGang.concurrentSyncs` | `5` | yes | " in pages["configuration.md"]
    assert "| `workqueue_depth` | gauge | `name` | " in pages["metrics.md"]
    assert "| `grovekeeper_operations_total` | counter | `operation`, `result` | " in pages["metrics.md"]


def test_missing_changed_and_left_over_files_are_stale(tmp_path: Path) -> None:
    same, changed, missing, left_over = (tmp_path / f"{name}.md" for name in ("same", "changed", "missing", "left_over"))
    for path in (same, changed, left_over):
        path.write_text("text")
    (tmp_path / "other.txt").write_text("not ours")
    assert stale_files(tmp_path, "*.md", {same: "text", changed: "new", missing: "new"}) == [changed, left_over, missing]
