"""The copy a rehearsal plays on: the group's own records, its transactions, and all of them or none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from kgroup.admin.migrate_stage import Stage, copy_of, image_from
from kgroup.admin.models import CLASSIC
from kgroup.coordinator.config import GroupConfig
from kgroup.errors import BrokerRefused, KgroupError, Unreachable
from kgroup.history.chunks import Progress
from kgroup.history.items import BadRange
from kgroup.history.scan import BatchHeader, Scanner
from kgroup.log.memory import MemoryLog
from kgroup.protocol import group_records as gr
from kgroup.protocol.batches import LogRecord, end_marker_record
from kgroup.runtime.shard import Shard


@dataclass
class Written:
    """A partition of `__consumer_offsets` as it is read; with `cut` reading breaks off at its end."""

    log: MemoryLog = field(default_factory=MemoryLog)
    cut: KgroupError | None = None
    partition: int = 0
    source: str = "__consumer_offsets-0"
    bad: list[BadRange] = field(default_factory=list)
    failure: KgroupError | None = None

    def batches(self, progress: Progress | None = None) -> Iterator[tuple[bytes, Iterator[BatchHeader]]]:
        data = b"".join(batch.raw for batch in self.log.batches(0))
        yield data, Scanner(self.source).headers(data, True)
        self.failure = self.cut

    def commits(self, group: str, offset: int, producer: int = -1) -> None:
        key = gr.OffsetCommitKey(group=group, topic="orders", partition=0)
        value = gr.OffsetCommitValue(offset=offset, commit_timestamp=offset)
        record = LogRecord(gr.encode_key(key), gr.encode_value(value))
        self.log.append(
            [record],
            timestamp_ms=offset,
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            transactional=producer >= 0,
        )

    def ends(self, producer: int, committed: bool) -> None:
        self.log.append(
            [end_marker_record(committed)],
            timestamp_ms=1,
            producer_id=producer,
            producer_epoch=0,
            transactional=True,
            control=True,
        )


def staged(log: Written, group: str) -> Stage:
    copy, _, last_ms = copy_of(log, group)
    image = image_from({bytes(15) + b"\1": "orders"}, {"orders": 1})
    shard = Shard(0, copy, GroupConfig.of({}), 0, image)
    shard.load(last_ms)
    return Stage(group, shard, last_ms)


def committed(log: Written, group: str) -> list[int]:
    return [p.committed_offset for topic in staged(log, group).offsets() for p in topic.partitions]


def test_the_records_of_other_groups_stay_where_they_are() -> None:
    log = Written()
    log.commits("g", 5)
    log.commits("other", 6)
    log.commits("g", 7)
    copy, count, last_ms = copy_of(log, "g")
    assert (count, last_ms, copy.end_offset) == (2, 7, 2)
    assert committed(log, "g") == [7]


@pytest.mark.parametrize(("commit", "offsets"), [(True, [9]), (False, [5])])
def test_offsets_of_a_transaction_count_as_it_ended(commit: bool, offsets: list[int]) -> None:
    log = Written()
    log.commits("g", 5)
    log.commits("g", 9, producer=7)
    log.commits("other", 3, producer=8)
    log.ends(8, True)
    log.ends(7, commit)
    copy, count, _ = copy_of(log, "g")
    assert (count, copy.end_offset) == (2, 3), "two commits, and the marker of the group's own transaction"
    assert committed(log, "g") == offsets


def test_a_group_without_a_record_is_not_found() -> None:
    log = Written()
    log.commits("other", 6)
    with pytest.raises(BrokerRefused, match="no record of group g") as refused:
        copy_of(log, "g")
    assert refused.value.name == "GROUP_ID_NOT_FOUND"


def test_half_of_a_log_is_no_copy() -> None:
    """What was read so far passed for the group, and the rehearsal told of a group that never was."""
    log = Written(cut=Unreachable("broker 1 broke off"))
    log.commits("g", 5)
    with pytest.raises(Unreachable, match="broke off"):
        copy_of(log, "g")


def test_time_passes_on_the_stage_deadline_by_deadline() -> None:
    """A member that falls silent is gone when its session is over, and not before."""
    from kgroup.admin.migrate_puppets import ClassicPuppet
    from kgroup.protocol.messages.join_group import JoinGroupRequestProtocol
    from kgroup.protocol.subscription import Assignment, Subscription

    log = Written()
    log.commits("g", 5)
    stage = staged(log, "g")
    protocol = JoinGroupRequestProtocol(name="range", metadata=Subscription(("orders",)).encode(1))
    puppet = ClassicPuppet(
        "", None, "c", "/h", (protocol,), 10_000, 10_000, lambda ids: dict.fromkeys(ids, Assignment())
    )
    puppet.join(stage)
    stage.pass_time(5_000)
    puppet.beat(stage)
    assert (stage.type, len(stage.group.members)) == (CLASSIC, 1)
    stage.pass_time(60_000)
    assert len(stage.group.members) == 0
