"""Manifests that the upstream operator refuses: ours refuses them with the same paths and messages, and the same warnings."""

import json
import os
from pathlib import Path

import pytest
import yaml

from api.defaulting import default_podcliqueset
from api.fielderrors import aggregate
from api.grove import ClusterTopologyBinding, PodCliqueSet
from api.operatorconfig import load_operator_configuration
from api.validation import Validation, cel_errors, validate_create

CASES = Path(os.environ.get("GROVEKEEPER_SHARED") or Path(__file__).parents[3] / "shared") / "cases" / "grove"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason=f"recorded cases are not at {CASES}; set GROVEKEEPER_SHARED")

DENIED = "denied the request: "
WARNING = "Warning: "


def validated(path: Path) -> Validation:
    config = load_operator_configuration((CASES / "config.yaml").read_text())
    topology = ClusterTopologyBinding.model_validate(yaml.safe_load((CASES / "topology.yaml").read_text()), extra="forbid")
    pcs = default_podcliqueset(PodCliqueSet.model_validate(yaml.safe_load(path.read_text()), extra="forbid"))
    assert list(cel_errors(pcs)) == []
    return validate_create(pcs, config, {topology.metadata.name: topology})


@pytest.mark.parametrize("path", sorted(CASES.glob("manifests/9*.yaml")), ids=lambda p: p.stem)
def test_refused_with_the_recorded_message(path: Path) -> None:
    recorded: list[str] = json.loads((CASES / "expected" / f"{path.stem}.json").read_text())["rejected"]
    message = next(line.split(DENIED, 1)[1] for line in recorded if DENIED in line)
    result = validated(path)
    assert aggregate(result.errors) == message
    # A client shows a repeated warning once.
    assert list(dict.fromkeys(result.warnings)) == [line.removeprefix(WARNING) for line in recorded if line.startswith(WARNING)]


@pytest.mark.parametrize("path", sorted(CASES.glob("manifests/[01]*.yaml")), ids=lambda p: p.stem)
def test_what_upstream_accepts_is_accepted(path: Path) -> None:
    assert aggregate(validated(path).errors) == ""
