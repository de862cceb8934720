"""Runs kubectl."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any, ClassVar

import yaml

__all__ = ("Kubectl", "KubectlFailed")


class KubectlFailed(AssertionError):
    """It ended with another exit code than 0."""


class Kubectl:
    """One version of kubectl, one server, one namespace. Calling it returns standard output."""

    running: ClassVar[list[subprocess.Popen[str]]] = []

    def __init__(self, program: Path, kubeconfig: Path, home: Path, namespace: str = "default") -> None:
        self.program = program
        self.kubeconfig = kubeconfig
        self.home = home
        self.namespace = namespace

    def __call__(self, *arguments: str, stdin: str | dict[str, Any] = "", **environment: str) -> str:
        """Raises KubectlFailed. `stdin`: text, or an object to send as YAML."""
        done = self._run(arguments, stdin, environment)
        if done.returncode != 0:
            raise KubectlFailed(f"kubectl {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def fails(self, *arguments: str, stdin: str | dict[str, Any] = "", code: int = 1) -> str:
        """Standard error of a call that must fail."""
        done = self._run(arguments, stdin, {})
        assert done.returncode == code, f"kubectl {' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stderr

    def code(self, *arguments: str, stdin: str | dict[str, Any] = "") -> tuple[int, str]:
        """Exit code and standard output."""
        done = self._run(arguments, stdin, {})
        return done.returncode, done.stdout

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """In the background, for watches."""
        child = subprocess.Popen(  # noqa: S603 - the program under test
            self._argv(arguments), env=self._environment({}), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.running.append(child)
        return child

    def get(self, *arguments: str) -> dict[str, Any]:
        """`kubectl get -o json`."""
        return json.loads(self("get", *arguments, "-o", "json"))

    def rows(self, *arguments: str) -> list[list[str]]:
        """The table, headings first; cells are split at two spaces or more."""
        lines = self("get", *arguments).splitlines()
        return [[cell.strip() for cell in line.split("  ") if cell.strip()] for line in lines]

    def _run(
        self, arguments: tuple[str, ...], stdin: str | dict[str, Any], environment: dict[str, str]
    ) -> "subprocess.CompletedProcess[str]":
        text = stdin if isinstance(stdin, str) else yaml.safe_dump(stdin)
        return subprocess.run(  # noqa: S603 - the program under test
            self._argv(arguments), env=self._environment(environment), input=text, capture_output=True, text=True, timeout=18, check=False
        )

    def _argv(self, arguments: tuple[str, ...]) -> list[str]:
        return [str(self.program), *arguments]

    def _environment(self, more: dict[str, str]) -> dict[str, str]:
        own = {"HOME": str(self.home), "KUBECONFIG": str(self._kubeconfig()), "PATH": os.environ["PATH"]}
        return own | more

    def _kubeconfig(self) -> Path:
        """The same with our namespace, so that commands need not name it."""
        path = self.home / f"kubeconfig-{self.namespace}"
        if not path.exists():
            config = yaml.safe_load(self.kubeconfig.read_text())
            for context in config["contexts"]:
                context["context"]["namespace"] = self.namespace
            path.write_text(yaml.safe_dump(config))
        return path
