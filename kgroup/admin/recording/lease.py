"""One recorder at a time: on this machine a lock on a file, at a URL an object that says who, and until when.

A thread renews it: a look, or the first reading of a long log, may take longer than a lease lasts. Where it
could not be renewed in time, nothing is written until it is. Two that take over a lease that ran out, in the
same moment, may both have it: the next renewal ends one of them.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from kgroup.admin.discovery import ClusterView
from kgroup.durations import utc
from kgroup.errors import StorageError
from kgroup.history.sources.folders import Folder, LocalFolder, RemoteFolder, read_small
from kgroup.history.typed_json import Codec, Foreign
from kgroup.repeating import repeating

LOCK = ".recorder"
LASTS_S, RENEWED_S, ASKED_S = 60.0, 15.0, 2.0
"""How long a lease lasts, how often it is renewed, and how often one that waits for it looks."""


@dataclass(frozen=True, slots=True)
class Held:
    """Who records, and until when by that machine's clock."""

    holder: str
    until_ms: int


_CODEC: Codec[Held] = Codec(Held)


class NotOurs(StorageError):
    """Another recorder has taken the lease, or the recording is another cluster's: this one must end."""


class Lease:
    """The lease of a folder at a URL; `take` it first."""

    def __init__(self, folder: RemoteFolder, cluster: ClusterView) -> None:
        self._folder, self._cluster = folder, cluster
        # It writes unchecked: what is checked is whether it could.
        self._own = RemoteFolder(folder.place, folder.options)
        self._me = f"{socket.gethostname()}, process {os.getpid()} ({uuid.uuid4().hex[:8]})"
        self._valid_s = 0.0
        self._lost: NotOurs | None = None

    def take(self, note: Callable[[str], None]) -> None:
        """Take it, or wait until one that nobody renews runs out; StorageError if another recorder runs."""
        clock, first = self._cluster.retry.clock, None
        ends_s = clock() + LASTS_S
        while (held := self._held()) is None or held.holder != self._me:
            if held is None:
                self._own.create(LOCK, self._mine())
                continue
            if first not in (None, held):
                raise StorageError(
                    f"{self._folder} cannot be recorded into: {held.holder} does, until {utc(held.until_ms)} "
                    "at the least",
                    hint="give each recorder a place of its own",
                )
            if held.until_ms <= self._cluster.now_ms() or clock() >= ends_s:
                self._own.write(LOCK, self._mine())
            elif first is None:
                note(f"waiting for the lease of {held.holder}, which runs or was killed")
                first = held
            # After a write, too: another may have written in the same moment.
            self._cluster.retry.sleep(ASKED_S)
        self.renew()
        self._folder.check = self.check

    def renew(self) -> None:
        """Make it last from now on, unless another has it; StorageError if the store does not answer."""
        began_s, held = self._cluster.retry.clock(), self._held()
        if held is not None and held.holder != self._me:
            self._lost = NotOurs(
                f"{self._folder} is recorded into by {held.holder} now: this recorder ends",
                hint="its lease ran out while the store did not answer, or this process did not run",
            )
            return
        self._own.write(LOCK, self._mine())
        self._valid_s = began_s + LASTS_S

    def check(self) -> None:
        """Raise NotOurs if another recorder has it, StorageError if it ran out and is not renewed yet."""
        if self._lost is not None:
            raise self._lost
        if self._cluster.retry.clock() >= self._valid_s:
            raise StorageError(f"the lease of {self._folder} ran out, and could not be renewed")

    def give_up(self) -> None:
        """Let the next recorder begin at once."""
        held = self._held()
        if held is not None and held.holder == self._me:
            self._own.delete(LOCK)

    def _held(self) -> Held | None:
        data = read_small(self._own, LOCK)
        try:
            return None if data is None else _CODEC.decode(data)
        except Foreign as error:
            hint = "delete it if no recorder runs"
            raise StorageError(f"{self._folder}/{LOCK} is no lease: {error}", hint) from None

    def _mine(self) -> bytes:
        return _CODEC.encode(Held(self._me, self._cluster.now_ms() + int(LASTS_S * 1000)))


@contextmanager
def alone(folder: Folder, cluster: ClusterView, note: Callable[[str], None]) -> Iterator[None]:
    """Let no other recorder record into a folder; StorageError if one does."""
    if isinstance(folder, LocalFolder):
        try:
            with folder.locked(LOCK):
                yield
        except BlockingIOError:
            what = f"{folder} cannot be recorded into: another recorder does"
            raise StorageError(what, hint="give each a folder of its own") from None
        return
    assert isinstance(folder, RemoteFolder)
    lease = Lease(folder, cluster)
    lease.take(note)

    def keep() -> None:
        with suppress(StorageError):
            lease.renew()

    try:
        with repeating(keep, RENEWED_S, "kgroup-lease"):
            yield
    finally:
        with suppress(StorageError):
            lease.give_up()
