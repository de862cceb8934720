"""`grovekeeper render` against objects recorded from upstream: every manifest equal, every bad manifest refused at the same field."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli.main import main

CASES = Path(os.environ.get("GROVEKEEPER_SHARED") or Path(__file__).parents[3] / "shared") / "cases" / "grove"
MANIFESTS = sorted((CASES / "manifests").glob("*.yaml"))
GOOD = [m for m in MANIFESTS if not m.stem.startswith("9")]
BAD = [m for m in MANIFESTS if m.stem.startswith("9")]
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason=f"recorded cases are not at {CASES}; set GROVEKEEPER_SHARED")


def render(*files: Path) -> int:
    arguments = ["render", "--config", str(CASES / "config.yaml")]
    for file in (CASES / "topology.yaml", *files):
        arguments += ["-f", str(file)]
    return main(arguments)


@needs_cases
@pytest.mark.parametrize("manifest", GOOD, ids=lambda m: m.stem)
def test_renders_what_upstream_makes(manifest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(manifest) == 0
    actual = tmp_path / "actual.yaml"
    actual.write_text(capsys.readouterr().out)
    expected = CASES / "expected" / f"{manifest.stem}.json"
    compared = subprocess.run(  # noqa: S603 - the comparison that comes with the cases
        [sys.executable, str(CASES / "compare.py"), str(expected), str(actual)], capture_output=True, text=True, check=False
    )
    assert compared.stdout.startswith("equal: "), compared.stdout + compared.stderr


@needs_cases
@pytest.mark.parametrize("manifest", BAD, ids=lambda m: m.stem)
def test_refuses_what_upstream_refuses(manifest: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(manifest) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    (denied,) = [t for t in json.loads((CASES / "expected" / f"{manifest.stem}.json").read_text())["rejected"] if "denied" in t]
    text = denied.split("denied the request: ")[1]
    for path in re.findall(r"(?:^\[?|, )((?:spec|metadata)[\w.\[\]]*): ", text):
        assert f"{path}: " in captured.err


@needs_cases
def test_all_manifests_together_are_rendered_as_one_stream(capsys: pytest.CaptureFixture[str]) -> None:
    assert render(*GOOD) == 0
    assert capsys.readouterr().out.count("\nkind: PodCliqueSet\n") == len(GOOD)
