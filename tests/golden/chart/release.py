"""What `helm template` makes of the chart with the value sets beside this file."""

import subprocess
from functools import cache
from pathlib import Path

from hack.chart.files import FOLDER
from hack.kube.cache import silent
from hack.kube.programs import find_program
from tests.programs import needed

__all__ = ("HERE", "VALUE_SETS", "helm", "rendered")

HERE = Path(__file__).parent
VALUE_SETS = ("default", "minimal", "production", "custom")
NAMESPACES = {"custom": "inference"}


@cache
def _program() -> Path:
    return needed(lambda: find_program("helm", silent, may_build=False))


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Helm to its end. Skips the test where there is none, but in CI fails it."""
    return subprocess.run([str(_program()), *arguments], capture_output=True, text=True, timeout=20, check=False)  # noqa: S603 - ours


def rendered(values: str, *more: str) -> str:
    """The manifests of a value set, with hooks."""
    namespace = NAMESPACES.get(values, "grovekeeper-system")
    done = helm("template", "grovekeeper", str(FOLDER), "--namespace", namespace, "--values", str(HERE / f"{values}.values.yaml"), *more)
    assert done.returncode == 0, done.stderr
    return done.stdout
