"""`python serve_and_import.py FOLDER`: prints the modules that serving imported after it had begun."""

from __future__ import annotations

import sys
from pathlib import Path

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.broker.prepared import import_all
from kgroup.errors import BrokerRefused, Unreachable
from kgroup.protocol import registry
from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.protocol.codec import Message
from kgroup.protocol.compression import Compression
from kgroup.protocol.messages import create_topics as c
from kgroup.protocol.messages import offset_commit as o
from kgroup.protocol.messages import produce as p
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.list_transactions import ListTransactionsRequest
from kgroup.runtime.cleaning import compact_one
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster

BATCH = encode_batch([LogRecord(b"k", b"v")], base_offset=0, timestamp_ms=5, compression=Compression.LZ4)
REQUESTS = (
    c.CreateTopicsRequest(
        topics=(
            c.CreatableTopic(name="t", num_partitions=2, replication_factor=1),
            c.CreatableTopic(
                name="u",
                num_partitions=1,
                replication_factor=1,
                configs=(c.CreatableTopicConfig(name="retention", value="1"),),
            ),
        )
    ),
    p.ProduceRequest(
        acks=-1,
        timeout_ms=1,
        topic_data=(
            p.TopicProduceData(name="t", partition_data=(p.PartitionProduceData(index=0, records=BATCH),)),
        ),
    ),
    o.OffsetCommitRequest(
        group_id="gé",
        member_id="",
        topics=(
            o.OffsetCommitRequestTopic(
                name="t", partitions=(o.OffsetCommitRequestPartition(partition_index=0, committed_offset=5),)
            ),
        ),
    ),
    ConsumerGroupHeartbeatRequest(
        group_id="h",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_regex="t.*",
        topic_partitions=(),
    ),
    ConsumerGroupHeartbeatRequest(
        group_id="h",
        member_id="n",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_regex="(",
        topic_partitions=(),
    ),
    ListTransactionsRequest(transactional_id_pattern="a.*"),
)


def main() -> None:
    """Ask for a bit of everything, in the highest version that names topics."""
    clock = ManualClock()
    transport = EmbeddedTransport(Cluster(Path(sys.argv[1]), offsets_partitions=2, clock=clock))
    others = [registry.request_class(key) for key in transport.dispatcher.apis]
    plain = [made for cls in others if (made := _with_defaults(cls)) is not None]
    import_all()
    before = set(sys.modules)
    for request in (*REQUESTS, *plain):
        highest = {0: 12, 8: 9}.get(request.API)
        try:
            transport.request(None, request, max_version=highest)
        except (BrokerRefused, Unreachable):
            continue
    transport.run_until(clock.now_ms() + 700_000)
    compact_one(transport.cluster)
    print(*sorted(set(sys.modules) - before), sep="\n")
    transport.close()


def _with_defaults(cls: type[Message]) -> Message | None:
    try:
        return cls()
    except TypeError:
        return None  # it has fields without defaults


main()
