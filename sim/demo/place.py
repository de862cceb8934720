"""The folder of a demo: one demo at a time, files of an earlier one are replaced, and nothing stays that leads to a server that is gone."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sim.apiserver.front.certificate import CERTIFICATE, KEY

__all__ = ("Place", "PlaceError", "occupied")


class PlaceError(Exception):
    """The folder cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    """Files of a demo."""

    folder: Path

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def certificate(self) -> Path:
        return self.folder / CERTIFICATE

    @property
    def key(self) -> Path:
        return self.folder / KEY

    @property
    def log(self) -> Path:
        return self.folder / "demo.log"

    @property
    def lock(self) -> Path:
        return self.folder / "demo.lock"


@contextmanager
def occupied(folder: Path) -> Generator[Place]:
    """Holds the folder for this process. Raises PlaceError when it cannot be written, or another demo holds it."""
    place = Place(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(place.lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise PlaceError(f"{folder} cannot be written ({error.strerror}); name another folder with --state") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(lock, 32, 0).decode(errors="replace").strip()
            text = f"a demo runs already in {folder} (process {holder or 'unknown'}); use it, stop it with Ctrl-C in its terminal, "
            text += "or name another folder with --state"
            raise PlaceError(text) from error
        _discard(place)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        try:
            yield place
        finally:
            _discard(place)
    finally:
        os.close(lock)


def _discard(place: Place) -> None:
    """Removes what only makes sense while the server runs; the log stays."""
    try:
        for path in (place.kubeconfig, place.certificate, place.key):
            path.unlink(missing_ok=True)
    except OSError as error:
        raise PlaceError(f"{place.folder} cannot be written ({error.strerror}); name another folder with --state") from error
