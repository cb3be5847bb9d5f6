"""A partition of `__consumer_offsets` in memory, as readers of logs get it, and groups that lived in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kgroup.admin.migrate.rehearsal_shard import Stage, image_from
from kgroup.admin.migrate.simulated_clients import ClassicClient
from kgroup.coordinator.config import GroupConfig
from kgroup.domain import TopicPartition
from kgroup.errors import KgroupError
from kgroup.history.decode.scan import BatchHeader, Scanner
from kgroup.history.log_items import BadRange
from kgroup.history.sources.chunks import Progress
from kgroup.log.memory import MemoryLog
from kgroup.protocol import group_records as gr
from kgroup.protocol.batches import LogRecord, end_marker_record
from kgroup.protocol.messages.join_group import JoinGroupRequestProtocol
from kgroup.protocol.subscription import Assignment, Subscription
from kgroup.runtime.shard import Shard

TOPIC_ID = bytes(15) + b"\1"
NAMES, COUNTS = {TOPIC_ID: "orders"}, {"orders": 2}


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


def staged(log: MemoryLog, group: str, now_ms: int = 0) -> Stage:
    """A coordinator of topic orders with two partitions on this log."""
    settings = {"group.initial.rebalance.delay.ms": "0"}
    shard = Shard(0, log, GroupConfig.of(settings), 0, image_from(NAMES, COUNTS))
    shard.load(now_ms)
    return Stage(group, shard, now_ms)


def classic(
    instance: str | None = None, protocol: str = "range", user_data: bytes | None = None
) -> ClassicClient:
    """A member that subscribes to orders; as leader it gives each member one partition."""

    def assign(member_ids: Collection[str]) -> Mapping[str, Assignment]:
        return {
            member_id: Assignment((TopicPartition("orders", number),), user_data)
            for number, member_id in enumerate(sorted(member_ids))
        }

    offered = JoinGroupRequestProtocol(name=protocol, metadata=Subscription(("orders",)).encode(1))
    return ClassicClient("", instance, "c", "/h", (offered,), 60_000, 60_000, assign)


def lived_in(clients: Sequence[ClassicClient], group: str = "g", offset: int = 5) -> Written:
    """The log of a group whose members joined one after the other and that has committed."""
    written = Written()
    written.commits(group, offset)
    stage = staged(written.log, group)
    for count in range(1, len(clients) + 1):
        clients[count - 1].join(stage)
        for _ in range(4):
            for client in clients[:count]:
                client.beat(stage)
            stage.pass_time(1_000)
    return written
