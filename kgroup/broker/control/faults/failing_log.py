"""A log whose next appends fail, as on a disk that is full."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Unpack

from kgroup.errors import StorageError
from kgroup.log.interface import Log
from kgroup.protocol.batches import Appended, Batch, BatchHead


class FailingLog:
    """A log whose appends raise StorageError for as long as `fails` returns True."""

    def __init__(self, log: Log, fails: Callable[[], bool]) -> None:
        self._log, self._fails = log, fails
        self.read, self.offset_for_timestamp = log.read, log.offset_for_timestamp
        self.delete_before, self.configure, self.close = log.delete_before, log.configure, log.close

    @property
    def leader_epoch(self) -> int:
        return self._log.leader_epoch

    @leader_epoch.setter
    def leader_epoch(self, epoch: int) -> None:
        self._log.leader_epoch = epoch

    @property
    def start_offset(self) -> int:
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    def append(self, records: Appended, **head: Unpack[BatchHead]) -> int:
        self._check()
        return self._log.append(records, **head)

    def append_batches(
        self, raw: bytes, *, leader_epoch: int | None = None, append_time_ms: int | None = None
    ) -> tuple[int, int]:
        self._check()
        return self._log.append_batches(raw, leader_epoch=leader_epoch, append_time_ms=append_time_ms)

    def batches(self, start: int = 0) -> Iterator[Batch]:
        return self._log.batches(start)

    def _check(self) -> None:
        if self._fails():
            raise StorageError("No space left on device", "a rule with append_fails made this append fail")
