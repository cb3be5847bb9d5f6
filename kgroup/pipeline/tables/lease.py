"""Who writes into a place at a URL: an object that its owner renews, so that a second run is refused at once.

It saves the second run's work, and no more: of two runs the second to commit is rejected, with it or without.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count

from kgroup.errors import ConfigError, StorageChanged, StorageError, StorageMissing
from kgroup.pipeline.tables import delta
from kgroup.pipeline.tables.place import Place
from kgroup.repeating import repeating
from kgroup.storage.opening import open_store

NAME = "writing"
RENEWED_S = 5.0
"""How often its owner writes the object again, with another number."""
PATIENCE_S = 20.0
"""How long the object has to stay as it is until its owner counts as killed: no clock is compared."""
_POLL_S = 0.5


class Occupied(delta.Overtaken, ConfigError):
    """Another run is writing."""


@contextmanager
def leased(place: Place) -> Iterator[None]:
    """Own the object while the block runs; Occupied if another run renews it."""
    store, at = open_store(place.root, place.options), place.root / NAME
    owner = f"{socket.gethostname()} {os.getpid()} {uuid.uuid4().hex}"
    while not store.create(at, owner.encode()):
        _await_silence(place)
        store.delete(at)
    numbers = count(1)

    def renew() -> None:
        # One that is missed costs nothing: the next one is in time.
        with suppress(StorageError):
            store.write(at, f"{owner} {next(numbers)}".encode())

    try:
        with repeating(renew, RENEWED_S, "kgroup-lease"):
            yield
    finally:
        with suppress(StorageError):
            store.delete(at)


def _await_silence(place: Place) -> None:
    """Return once the owner is gone, or has renewed nothing for PATIENCE_S; Occupied if it does."""
    store, at = open_store(place.root, place.options), place.root / NAME
    limit = time.monotonic() + PATIENCE_S
    try:
        while True:
            first = store.look(at)
            # Its owner may renew it between the two.
            with suppress(StorageChanged):
                owner = store.read(first, 0, first.size)
                break
        # HDFS shows a file before its content.
        host, pid, *_ = [*owner.decode(errors="replace").split(), "", ""]
        while not _killed(host, pid) and time.monotonic() < limit:
            time.sleep(_POLL_S)
            if store.look(at).version != first.version:
                text = f"another run writes into {place.uri()}: process {pid} of {host}"
                raise Occupied(text, "wait for it to end")
    except StorageMissing:
        return


def _killed(host: str, pid: str) -> bool:
    """Return whether the owner was a process of this machine that is gone."""
    if sys.platform == "win32" or host != socket.gethostname() or not pid.isdecimal():
        return False  # on Windows, to ask for a process is to end it
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass
    return False
