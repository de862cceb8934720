"""What `helm template` makes of the chart with the value sets beside this file."""

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from hack.chart.files import FOLDER
from hack.kube.cache import BinariesMissing
from hack.kube.programs import find_program

__all__ = ("HERE", "VALUE_SETS", "helm", "rendered")

HERE = Path(__file__).parent
VALUE_SETS = ("default", "minimal", "production", "custom")
NAMESPACES = {"custom": "inference"}


@cache
def _program() -> Path | BinariesMissing:
    try:
        return find_program("helm", lambda line: None, may_build=False)
    except BinariesMissing as error:
        return error


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Helm to its end. Skips the test where there is none, but in CI fails it."""
    program = _program()
    if isinstance(program, BinariesMissing):
        if os.environ.get("CI") == "true":
            pytest.fail(f"CI needs Helm: {program}")
        pytest.skip(str(program))
    return subprocess.run([str(program), *arguments], capture_output=True, text=True, timeout=20, check=False)  # noqa: S603 - ours


def rendered(values: str, *more: str) -> str:
    """The manifests of a value set, with hooks."""
    namespace = NAMESPACES.get(values, "grovekeeper-system")
    done = helm("template", "grovekeeper", str(FOLDER), "--namespace", namespace, "--values", str(HERE / f"{values}.values.yaml"), *more)
    assert done.returncode == 0, done.stderr
    return done.stdout
