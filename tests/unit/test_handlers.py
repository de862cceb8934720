"""From changes of objects to keys: what counts as a change."""

from typing import Any

import msgspec
import pytest

from api.grove import PodCliqueSet
from controllers.runtime.handlers import design_changed, intent_changed


def pcs(replicas: int = 1, image: str = "a", **metadata: Any) -> PodCliqueSet:
    clique = {"name": "w", "spec": {"roleName": "w", "replicas": 1, "podSpec": {"containers": [{"name": "c", "image": image}]}}}
    raw = {
        "apiVersion": "grove.io/v1alpha1",
        "kind": "PodCliqueSet",
        "metadata": {"name": "s", "namespace": "n", "uid": "u", "generation": 1, "resourceVersion": "1", **metadata},
        "spec": {"replicas": replicas, "template": {"cliques": [clique]}},
    }
    return PodCliqueSet.decode(msgspec.json.encode(raw))


CHANGES = [
    ("nothing", pcs(), False, False),
    ("status", pcs(resourceVersion="2"), False, False),
    ("replicas", pcs(2, generation=2, resourceVersion="2"), True, False),
    ("template", pcs(image="b", generation=2, resourceVersion="2"), True, True),
    ("both", pcs(2, "b", generation=2, resourceVersion="2"), True, True),
    ("label", pcs(labels={"a": "b"}, resourceVersion="2"), True, True),
    ("annotation", pcs(annotations={"a": "b"}, resourceVersion="2"), True, True),
    ("deletion", pcs(deletionTimestamp="2026-01-01T00:00:00Z", generation=2, resourceVersion="2"), True, True),
    ("another life", pcs(uid="v", resourceVersion="2"), True, True),
]


@pytest.mark.parametrize(("new", "intent", "design"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_what_changed_of_a_set(new: PodCliqueSet, intent: bool, design: bool) -> None:
    assert intent_changed(pcs(), new) == intent
    assert design_changed(pcs(), new) == design


def test_a_set_that_comes_or_goes_has_changed() -> None:
    assert design_changed(None, pcs())
    assert design_changed(pcs(), None)
