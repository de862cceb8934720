"""Pages for a machine without Docker do what they say, block by block."""

from pathlib import Path

import pytest

from hack.docs.machine import reader
from hack.docs.pages import Session, pages, sessions
from hack.docs.run import run
from hack.kube import ControlPlane

BLOCK_TIMEOUT_S = 300
HERE = [s for page in pages() for s in sessions(page) if s.environment in ("demo", "kube")]


# The longest page simulates thirty clusters.
@pytest.mark.timeout(900)
@pytest.mark.parametrize("session", HERE, ids=[s.name for s in HERE])
def test_page(session: Session, tmp_path: Path, control_plane: ControlPlane) -> None:
    """`control_plane` only tells whether there are binaries, and skips or fails where there are none."""
    with reader(tmp_path, session.environment) as machine:
        run(session, machine, timeout_s=BLOCK_TIMEOUT_S)
