"""Where the commands have their configuration from."""

from pathlib import Path

import pytest

from cli.configuration import load_configuration, with_environment

FILE = "apiVersion: operator.config.grove.io/v1alpha1\nkind: OperatorConfiguration\n"
NAMED = FILE + "grovekeeper:\n  initContainerImage: registry.example.com/waiter:2\n"


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        (FILE, {"GROVE_INIT_CONTAINER_IMAGE": "registry.example.com/own:1"}, "registry.example.com/own:1"),
        (NAMED, {"GROVE_INIT_CONTAINER_IMAGE": "registry.example.com/own:1"}, "registry.example.com/waiter:2"),
        (FILE, {}, "grovekeeper:latest"),
        (FILE, {"GROVE_INIT_CONTAINER_IMAGE": ""}, "grovekeeper:latest"),
    ],
    ids=["the environment names it", "the file goes first", "nobody names it", "an empty variable names nothing"],
)
def test_the_image_of_the_startup_waiter(tmp_path: Path, text: str, environment: dict[str, str], expected: str) -> None:
    path = tmp_path / "controllers.yaml"
    path.write_text(text)
    config = with_environment(load_configuration(str(path)), environment)
    assert config.grovekeeper.init_container_image == expected


def test_the_environment_changes_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "controllers.yaml"
    path.write_text(FILE + "grovekeeper:\n  token: projected\nlogLevel: debug\n")
    before = load_configuration(str(path))
    after = with_environment(before, {"GROVE_INIT_CONTAINER_IMAGE": "own:1"})
    kept = {"init_container_image"}
    assert after.grovekeeper.model_dump(exclude=kept) == before.grovekeeper.model_dump(exclude=kept)
    assert after.grovekeeper.init_container_image == "own:1"
    assert after.model_dump(exclude={"grovekeeper"}) == before.model_dump(exclude={"grovekeeper"})
