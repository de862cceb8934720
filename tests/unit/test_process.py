"""What the long-running commands make of flags and configuration, and what they tell about unreadable objects."""

import argparse

import pytest

from api.operatorconfig import LeaderElection, OperatorConfiguration
from api.plan import Key
from cli.process import add_options, lease_of
from controllers.runtime.assembly import Unreadable
from tests.runtime_fakes import FakeRecorder, ref_of

FILE = LeaderElection(resource_name="of-file", resource_namespace="file-ns")


def _options(*flags: str, lease: str = "") -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser, "127.0.0.1:1", lease)
    return parser.parse_args(flags)


@pytest.mark.parametrize(
    ("flags", "election", "lease", "expected"),
    [
        ((), LeaderElection(), "", Key("pod-ns", "grove-operator-leader-election")),
        ((), LeaderElection(resource_name=""), "", Key("pod-ns", "grove-operator-leader-election")),
        ((), FILE, "", Key("file-ns", "of-file")),
        (("--lease-name", "a", "--lease-namespace", "b"), FILE, "", Key("b", "a")),
        ((), FILE, "scheduler", Key("file-ns", "scheduler")),
    ],
    ids=["defaults", "no name", "file", "flags", "a lease of its own"],
)
def test_the_lease(flags: tuple[str, ...], election: LeaderElection, lease: str, expected: Key) -> None:
    config = OperatorConfiguration(leader_election=election)
    assert lease_of(_options(*flags, lease=lease), config, "pod-ns") == expected


def test_what_cannot_be_read_is_announced_when_a_term_begins_and_at_once_from_then_on() -> None:
    recorder = FakeRecorder()
    unreadable = Unreadable(recorder)
    unreadable.tell(ref_of("a"), "spec.replicas: int_type")
    assert recorder.events == []
    unreadable.begin()
    unreadable.tell(ref_of("b"), "spec")
    unreadable.begin()
    assert [(ref.name, reason, kind) for ref, reason, _, kind in recorder.events] == [
        ("a", "InvalidSpec", "Warning"),
        ("b", "InvalidSpec", "Warning"),
    ]
    assert "spec.replicas" in recorder.events[0][2]
