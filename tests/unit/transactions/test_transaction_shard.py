"""A transaction shard when its log or a partition cannot be written, and when it reads a damaged log."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from kgroup.domain import TopicPartition
from kgroup.errors import DecodeError, ErrorCode, Refused, StorageError
from kgroup.log.memory import MemoryLog
from kgroup.protocol.batches import LogRecord
from kgroup.protocol.group_records import encode_key, encode_value
from kgroup.protocol.transaction_records import TransactionLogKey, TransactionLogValue
from kgroup.runtime.transaction_shard import TransactionShard
from kgroup.transactions.config import TransactionConfig
from kgroup.transactions.outcome import Markers
from kgroup.transactions.producers import ProducerEpoch

P = ProducerEpoch(7, 0)
AT = TopicPartition("a", 0)


class Disk:
    """A log whose appends fail on demand, and partitions that take markers or do not."""

    def __init__(self) -> None:
        self.failing: set[int] = set()
        self.appends = itertools.count(1)
        self.log = MemoryLog(self.before)
        self.takes_markers = True
        self.written: list[Markers] = []
        self.shard = self.open()

    def before(self, _: bytes) -> None:
        if next(self.appends) in self.failing:
            raise StorageError("no space left on device")

    def write(self, markers: Markers) -> bool:
        if self.takes_markers:
            self.written.append(markers)
        return self.takes_markers

    def open(self) -> TransactionShard:
        ids = itertools.count(7)
        config = TransactionConfig(marker_retry_ms=20)
        made = TransactionShard(0, self.log, config, lambda: next(ids), self.write)
        made.load()
        return made

    def fail(self, *numbers: int) -> None:
        """The n-th appends from now on fail."""
        done = next(self.appends)
        self.failing = {done + n for n in numbers}

    def state(self) -> str:
        return self.shard.coordinator.transactions["t"].status.title


@pytest.fixture
def disk() -> Disk:
    made = Disk()
    made.shard.run(lambda c: c.init_producer_id("t", 60_000, None, 1000), 1000)
    made.shard.run(lambda c: c.add_partitions("t", P, [AT], 2, 1000), 1000)
    return made


def commit(disk: Disk) -> Callable[[], object]:
    return lambda: disk.shard.run(lambda c: c.end("t", P, True, 2, 1000), 1000)


def test_end_is_carried_out_at_once(disk: Disk) -> None:
    commit(disk)()
    assert ([m.partitions for m in disk.written], disk.state()) == ([frozenset({AT})], "CompleteCommit")


def test_decision_that_cannot_be_appended_was_not_made(disk: Disk) -> None:
    disk.fail(1)
    with pytest.raises(Refused) as refused:
        commit(disk)()
    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (disk.written, disk.state()) == ([], "Ongoing")
    commit(disk)()
    assert disk.state() == "CompleteCommit"


def test_completion_that_cannot_be_appended_is_tried_again(
    disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.fail(2)
    commit(disk)()
    assert (len(disk.written), disk.state()) == (1, "PrepareCommit")
    (line,) = caplog.messages
    assert line == "__transaction_state-0: the end of t is tried again: no space left on device"
    disk.shard.wake(1019)
    assert disk.state() == "PrepareCommit"
    disk.shard.wake(1020)
    assert (len(disk.written), disk.state()) == (2, "CompleteCommit")


def test_markers_that_cannot_be_written_are_tried_again(disk: Disk) -> None:
    disk.takes_markers = False
    commit(disk)()
    disk.shard.wake(1020)
    assert disk.state() == "PrepareCommit"
    disk.takes_markers = True
    disk.shard.wake(1040)
    assert disk.state() == "CompleteCommit"


def test_decided_end_is_carried_out_when_the_shard_begins(disk: Disk) -> None:
    disk.takes_markers = False
    commit(disk)()
    disk.takes_markers = True
    disk.shard = disk.open()
    assert disk.state() == "PrepareCommit"
    disk.shard.begin(5000)
    assert disk.state() == "CompleteCommit"


def test_records_of_unknown_types_are_skipped(disk: Disk) -> None:
    disk.log.append([LogRecord(b"\x00\x09whatever", b"x")])
    disk.shard = disk.open()
    assert disk.state() == "Ongoing"


@pytest.mark.parametrize("status", [8, -1])
def test_states_there_are_not(disk: Disk, status: int) -> None:
    value = TransactionLogValue(
        producer_id=1,
        producer_epoch=0,
        transaction_timeout_ms=1,
        transaction_status=status,
        transaction_last_update_timestamp_ms=0,
        transaction_start_timestamp_ms=0,
    )
    key = TransactionLogKey(transactional_id="u")
    disk.log.append([LogRecord(encode_key(key), encode_value(value))])
    with pytest.raises(DecodeError, match="record at offset 2"):
        disk.open()


def test_damaged_values(disk: Disk) -> None:
    disk.log.append([LogRecord(encode_key(TransactionLogKey(transactional_id="u")), b"\0")])
    with pytest.raises(DecodeError):
        disk.open()
