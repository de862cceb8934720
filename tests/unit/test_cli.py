"""The command line: what each command says about input that it cannot use, and its exit codes."""

import io
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.main import main
from cli.manifests import load
from hack.codegen.files import ROOT
from tests.unit.worlds import clique

SET = yaml.safe_dump(
    {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "chat", "namespace": "serving"},
        "spec": {"replicas": 1, "template": {"cliques": [clique("w", 2), clique("v")]}},
    }
)
RESTART = "restartPolicy will be ignored, it will be set to Always"
"""Upstream fills the policy in before it warns of it, so that everybody is warned."""
BINDING = """\
apiVersion: grove.io/v1alpha1
kind: ClusterTopologyBinding
metadata: {name: dc}
spec: {levels: [{domain: rack, key: example.com/rack}]}
"""


def render(tmp_path: Path, *texts: str) -> int:
    arguments = ["render"]
    for i, text in enumerate(texts):
        file = tmp_path / f"{i}.yaml"
        file.write_text(textwrap.dedent(text))
        arguments += ["-f", str(file)]
    return main(arguments)


def kinds(output: str) -> list[str]:
    return [d["kind"] for d in yaml.safe_load_all(output)]


def in_shell(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """grovekeeper ARGUMENTS in place of CMD, with the redirections of a shell; output is buffered as it is for users."""
    script = "set -o pipefail; " + command.replace("CMD", '"$@"')
    argv = ["bash", "-c", script, "-", sys.executable, "-m", "cli.main", *arguments]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONUNBUFFERED": ""}
    return subprocess.run(argv, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=15, check=False)  # noqa: S603


@pytest.mark.parametrize("arguments", [("render", "-f", "FILE"), ("render", "--help"), ("--help",), ("--version",)], ids=" ".join)
@pytest.mark.parametrize(
    ("redirected", "code", "said"),
    [
        ("CMD | (exec <&-; sleep 0.2)", 0, ""),
        ("CMD 2>&1 | (exec <&-; sleep 0.2)", 0, ""),
        ("CMD > /dev/full", 4, "error: standard output: No space left on device\n"),
        ("(ulimit -f 0; CMD > EMPTY)", 4, "error: standard output: File too large\n"),
        ("CMD > /dev/full 2>&1", 4, ""),
        ("CMD >&-", 0, ""),
    ],
)
def test_output_that_nobody_takes(redirected: str, code: int, said: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "set.yaml"
    file.write_text(SET)
    shell = redirected.replace("EMPTY", str(tmp_path / "out"))
    ended = in_shell(shell, *(argument.replace("FILE", str(file)) for argument in arguments))
    assert (ended.returncode, ended.stderr.replace(f"Warning: PodCliqueSet serving/chat: {RESTART}\n", "")) == (code, said)


# render


def test_render_prints_everything_that_would_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(tmp_path, SET) == 0
    captured = capsys.readouterr()
    assert captured.err.splitlines() == [f"Warning: PodCliqueSet serving/chat: {RESTART}"]
    documents = list(yaml.safe_load_all(captured.out))
    assert [d["kind"] for d in documents] == [
        "PodCliqueSet",
        "ServiceAccount",
        "Role",
        "RoleBinding",
        "Secret",
        "Service",
        "PodClique",
        "PodClique",
        "PodGang",
        "Pod",
        "Pod",
        "Pod",
    ]
    assert [d["metadata"]["name"] for d in documents if d["kind"] == "Pod"] == ["chat-0-w-#0", "chat-0-w-#1", "chat-0-v-#0"]
    assert not [d for d in documents if {"uid", "resourceVersion", "generation"} & set(d["metadata"])]
    assert "uid" not in documents[-1]["metadata"]["ownerReferences"][0]


def test_render_says_the_same_each_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    render(tmp_path, SET)
    first = capsys.readouterr().out
    render(tmp_path, SET)
    assert capsys.readouterr().out == first


def changed(path: tuple[str | int, ...], value: Any) -> str:
    """The set with one field changed; `...` removes it."""
    manifest = yaml.safe_load(SET)
    at = manifest
    for step in path[:-1]:
        at = at[step]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return yaml.safe_dump(manifest)


CLIQUE = ("spec", "template", "cliques", 0)
REFUSED: list[tuple[str, tuple[str, ...], str]] = [
    ("malformed YAML", ("kind: [",), "0.yaml: not valid YAML: "),
    ("a tab", ("kind:\n\tx: 1",), "0.yaml: not valid YAML: "),
    ("a key twice", ("kind: A\nkind: B",), "key 'kind' is given twice"),
    ("a key twice, deep", (SET + "status:\n  a: 1\n  a: 2\n",), "key 'a' is given twice"),
    ("a key that is a list", ("? [a, b]\n: 1",), "a mapping key must be text"),
    ("text", ("hello",), "0.yaml: a document is not an object with apiVersion, kind and metadata"),
    ("a number in a list", ("apiVersion: v1\nkind: List\nitems: [3]",), "a document is not an object"),
    ("a list that is none", ("apiVersion: v1\nkind: List\nitems: 3",), "a List whose items is not a list"),
    ("no kind", ("apiVersion: grove.io/v1alpha1\nmetadata: {name: x}",), "a document has no kind"),
    ("no apiVersion", ("kind: PodCliqueSet\nmetadata: {name: x}",), "a document has no apiVersion"),
    ("a kind that is a number", ("apiVersion: v1\nkind: 3",), "a document has no kind"),
    ("an unknown field", (changed((*CLIQUE, "spec", "replica"), 3),), "spec.template.cliques[0].spec.replica: "),
    ("a wrong type", (changed((*CLIQUE, "spec", "replicas"), "three"),), "spec.template.cliques[0].spec.replicas: "),
    ("a number for text", (changed((*CLIQUE, "name"), 3),), "spec.template.cliques[0].name: "),
    ("a missing field", (changed((*CLIQUE, "spec", "podSpec"), ...),), "spec.template.cliques[0].spec.podSpec: "),
    ("no spec", (changed(("spec",), ...),), "spec: Required value"),
    ("no cliques", (changed(("spec", "template", "cliques"), []),), "spec.template.cliques: "),
    ("no name", (changed(("metadata", "name"), ...),), "metadata.name: Required value"),
    ("no metadata", (changed(("metadata",), ...),), "metadata: Required value"),
    ("metadata that are text", (changed(("metadata",), "x"),), "metadata: "),
    ("more available than replicas", (changed((*CLIQUE, "spec", "minAvailable"), 9),), "cliques[0].spec.minAvailable: Invalid value: 9"),
    (
        "an unknown topology",
        (changed((*CLIQUE, "topologyConstraint"), {"topologyName": "dc", "pack": {"required": "rack"}}),),
        'ClusterTopologyBinding "dc" not found',
    ),
    (
        "an unknown level",
        (changed((*CLIQUE, "topologyConstraint"), {"topologyName": "dc", "pack": {"required": "row"}}), BINDING),
        "cliques[0].topologyConstraint.pack.required: ",
    ),
    ("two sets of one name", (SET, SET), 'metadata.name: Duplicate value: "chat"'),
    ("a binding without levels", (BINDING.replace("[{domain: rack, key: example.com/rack}]", "[]"),), "spec.levels: "),
    ("a binding without name", (BINDING.replace("{name: dc}", "{}"),), "metadata.name: Required value"),
    ("a binding without metadata", (BINDING.replace("metadata: {name: dc}\n", ""),), "metadata: Required value"),
    ("a claim template without metadata", ("apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate",), "metadata"),
    ("a claim template without name", ("apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {}",), "metadata.name"),
    (
        "a claim template that is none",
        ("apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: x}\nspec: 3",),
        "ResourceClaimTemplate x: ",
    ),
]


@pytest.mark.parametrize(("texts", "message"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_render_refuses(texts: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(tmp_path, *texts) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert "Traceback" not in captured.err


def test_every_mistake_of_every_file_is_told_with_its_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(tmp_path, changed((*CLIQUE, "colour"), "red"), changed((*CLIQUE, "spec", "replicas"), "x")) == 4
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0].rsplit("/", 1)[1] for line in lines] == ["0.yaml", "1.yaml"]
    assert all(": PodCliqueSet chat: spec.template.cliques[0]." in line for line in lines)


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("---\n---\n", 0), ("# a comment\n", 0), ("apiVersion: v1\nkind: List\nitems: []\n", 0)],
    ids=["nothing", "empty documents", "comments", "an empty list"],
)
def test_nothing_in_nothing_out(text: str, count: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(tmp_path, text) == 0
    assert len(kinds(capsys.readouterr().out)) == count


def test_lists_are_unfolded_and_other_kinds_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    assert render(tmp_path, yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(SET), other]})) == 0
    found = kinds(capsys.readouterr().out)
    assert "PodCliqueSet" in found
    assert "ConfigMap" not in found


def test_json_is_read_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '{"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": "a"}, "spec": {}}'
    assert render(tmp_path, text) == 4
    assert "spec.template: Required value" in capsys.readouterr().err


def test_timestamps_stay_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = yaml.safe_load(SET)
    text = yaml.safe_dump(manifest).replace("name: chat\n", "name: chat\n  annotations: {since: 2026-01-01}\n", 1)
    assert render(tmp_path, text) == 0
    (pcs, *_) = yaml.safe_load_all(capsys.readouterr().out)
    assert pcs["metadata"]["annotations"] == {"since": "2026-01-01"}


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(SET))
    assert main(["render", "-f", "-"]) == 0
    assert kinds(capsys.readouterr().out)[0] == "PodCliqueSet"
    monkeypatch.setattr("sys.stdin", io.StringIO("hello"))
    assert main(["render", "-f", "-"]) == 4
    assert capsys.readouterr().err.startswith("error: standard input: ")


def test_standard_input_that_is_closed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert main(["render", "-f", "-"]) == 4
    assert capsys.readouterr().err == "error: standard input: is closed\n"


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in range(9))
DEEP = "a0: &a0 {x: y}\n" + "".join(f"a{i + 1}: &a{i + 1} {{x: *a{i}}}\n" for i in range(2000))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LAUGHS, "document contains excessive aliasing"),
        ("a: &a [*a]", "found unconstructable recursive node"),
        (DEEP, "document is nested too deeply"),
        (f"a: {'9' * 5000}", "Exceeds the limit"),
        (f"a: 1{':59' * 100}", "a number is out of range"),
        ("a: .nan", "unsupported value: .nan"),
        ("a: !!int x", "invalid literal"),
    ],
    ids=["laughs", "endless", "deep", "digits", "range", "nan", "tag"],
)
def test_what_json_cannot_hold_is_refused(text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(tmp_path, text) == 4
    assert f"not valid YAML: {message}" in capsys.readouterr().err


def test_keys_are_text(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("{apiVersion: v1, kind: ConfigMap, data: {8080: a, true: b, null: c}}")
    assert [m["data"] for _, m in load([str(file)])] == [{"8080": "a", "true": "b", "null": "c"}]


def test_a_file_without_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "-f", ""]) == 4
    assert "is no name of a file" in capsys.readouterr().err


def test_a_folder_means_its_manifests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "b.yml").write_text(SET.replace("name: chat", "name: second"))
    (tmp_path / "a.yaml").write_text(SET)
    (tmp_path / "notes.txt").write_text("no manifest")
    assert main(["render", "-f", str(tmp_path)]) == 0
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    assert [d["metadata"]["name"] for d in documents if d["kind"] == "PodCliqueSet"] == ["chat", "second"]


@pytest.mark.parametrize("name", ["missing.yaml", "folder/missing.yaml"])
def test_a_file_that_does_not_exist_is_named(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "-f", str(tmp_path / name)]) == 4
    assert f"{name}: cannot be read: " in capsys.readouterr().err


def test_a_file_that_is_no_text_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    assert main(["render", "-f", str(tmp_path / "x.yaml")]) == 4
    assert "x.yaml: cannot be read: " in capsys.readouterr().err


def test_warnings_do_not_spoil_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert render(tmp_path, SET.replace("name: chat", "name: my.chat")) == 0
    captured = capsys.readouterr()
    first, second = captured.err.splitlines()
    assert first == f"Warning: PodCliqueSet serving/my.chat: {RESTART}"
    assert second.startswith("Warning: PodCliqueSet serving/my.chat: names with dots")
    assert kinds(captured.out)[0] == "PodCliqueSet"


# arguments


@pytest.mark.parametrize("command", ["controllers", "scheduler", "render", "get"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: grovekeeper {command}")
    assert all(len(line) <= 140 for line in text.splitlines())


def test_the_program_names_its_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    assert all(f"\n    {command}" in text for command in ("controllers", "scheduler", "render", "get"))


@pytest.mark.parametrize("arguments", [[], ["dance"], ["render"], ["get", "a", "b"], ["scheduler", "--mode", "x"]], ids=" ".join)
def test_wrong_arguments_are_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: grovekeeper" in capsys.readouterr().err


PROCESSES = pytest.mark.parametrize("command", ["controllers", "scheduler"])


@PROCESSES
@pytest.mark.parametrize("bind", ["8080", "localhost", ":8080", "localhost:http", "localhost:-1", "localhost:70000", "localhost:²"])
def test_an_address_that_is_none_is_named(command: str, bind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, f"--bind={bind}"]) == 4
    assert capsys.readouterr().err == f"error: --bind {bind}: expected HOST:PORT, for example 127.0.0.1:8080\n"


BAD_CONFIGS = [
    ("unknown field", "surprise: 1", "surprise"),
    ("wrong type", "controllers: {podClique: {concurrentSyncs: many}}", "controllers.podClique.concurrentSyncs"),
    ("malformed", "controllers: [", "x.yaml: "),
    ("text", "hello", "x.yaml: "),
]


@pytest.mark.parametrize("command", ["controllers", "scheduler", "render"])
@pytest.mark.parametrize(("text", "message"), [c[1:] for c in BAD_CONFIGS], ids=[c[0] for c in BAD_CONFIGS])
def test_a_bad_configuration_is_named(command: str, text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.yaml"
    head = "" if text == "hello" else "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\n"
    file.write_text(head + text)
    (tmp_path / "set.yaml").write_text(SET)
    extra = ["-f", str(tmp_path / "set.yaml")] if command == "render" else []
    assert main([command, "--config", str(file), *extra]) == 4
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert str(file) in captured.err
    assert message in captured.err


@PROCESSES
def test_a_configuration_that_does_not_exist_is_named(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--config", str(tmp_path / "none.yaml")]) == 4
    assert "none.yaml: cannot be read: " in capsys.readouterr().err


@pytest.mark.parametrize("command", ["controllers", "scheduler", "get"])
@pytest.mark.parametrize("text", [None, "hello", "[", "clusters: 3", "{}"], ids=["missing", "text", "malformed", "wrong type", "empty"])
def test_a_kubeconfig_that_cannot_be_used_is_exit_code_5(
    command: str, text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "kubeconfig"
    if text is not None:
        file.write_text(text)
    assert main([command, "--kubeconfig", str(file)]) == 5
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert "kubeconfig" in captured.err
