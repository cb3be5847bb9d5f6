"""What does a share group cost the broker? Processor time per 10,000 records of ours and of Kafka, in turns.

    python -m bench shares [with-fetch|apart …] [records=10000] [at-most=100] [rounds=3]

One member of a new group reads a topic from its beginning, `at-most` records a fetch, and accepts all of
them: with its next ShareFetch, as clients do, or apart, by ShareAcknowledge. The topic has batches of 100.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from statistics import median

from bench.brokers import brokers, connected, cpu_s, create_topic, until_ready
from bench.history import Ratio, keep
from kgroup.client.transport import SocketTransport
from kgroup.domain import uuid_text
from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kgroup.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kgroup.protocol.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from kgroup.protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ShareFetchRequest,
)
from kgroup.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from tests.interop.kafka import SHARED
from tests.interop.server import Server

TOPIC = "bench"
BATCH = 100
KINDS = ("with-fetch", "apart")
ACCEPT = 1
GROUP_RESOURCE = 32
JOIN_S = 60
WARM_UPS = 8  # groups, for Kafka's compiler
_numbers = count(1)


def fill(transport: SocketTransport, records: int) -> None:
    """Produce the records that every round reads."""
    batch = encode_batch([LogRecord(None, b"x" * 100)] * BATCH)
    for _ in range(records // BATCH):
        data = TopicProduceData(name=TOPIC, partition_data=(PartitionProduceData(index=0, records=batch),))
        transport.request(
            None, ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=(data,)), max_version=12
        )


class Member:
    """The only member of a new group."""

    def __init__(self, transport: SocketTransport, at_most: int) -> None:
        self.transport = transport
        self.at_most = at_most
        self.group = f"shares-{next(_numbers)}"
        self.name = uuid_text(self.group.encode().ljust(16, b"-")[:16])
        self.session = 0
        until_ready(transport, [self.group])
        earliest = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
        resource = AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name=self.group, configs=(earliest,)
        )
        transport.request(None, IncrementalAlterConfigsRequest(resources=(resource,)))
        self.topic_id = self._joined()

    def _joined(self) -> bytes:
        """Join and wait until the partition is assigned; the topic's id."""
        epoch, end = 0, time.monotonic() + JOIN_S
        while time.monotonic() < end:
            answer = self.transport.request(
                None,
                ShareGroupHeartbeatRequest(
                    group_id=self.group,
                    member_id=self.name,
                    member_epoch=epoch,
                    subscribed_topic_names=(TOPIC,) if epoch == 0 else None,
                ),
            )
            epoch = answer.member_epoch  # type: ignore[attr-defined]
            assigned = answer.assignment  # type: ignore[attr-defined]
            if assigned and assigned.topic_partitions:
                topic_id: bytes = assigned.topic_partitions[0].topic_id
                return topic_id
            time.sleep(0.2)
        raise RuntimeError(f"{self.group} is assigned nothing")

    def fetch(self, said: tuple[AcknowledgementBatch, ...]) -> tuple[AcknowledgementBatch, ...]:
        """Fetch, accepting what was said; what is to be said of the records that came."""
        partition = FetchPartition(partition_index=0, acknowledgement_batches=said)
        answer = self.transport.request(
            None,
            ShareFetchRequest(
                group_id=self.group,
                member_id=self.name,
                share_session_epoch=self.session,
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=1 << 20,
                max_records=self.at_most,
                batch_size=self.at_most,
                topics=(FetchTopic(topic_id=self.topic_id, partitions=(partition,)),),
            ),
        )
        self.session += 1
        if answer.error_code:  # type: ignore[attr-defined]
            raise RuntimeError(f"refused: {answer}")
        return tuple(
            AcknowledgementBatch(
                first_offset=each.first_offset, last_offset=each.last_offset, acknowledge_types=(ACCEPT,)
            )
            for topic in answer.responses  # type: ignore[attr-defined]
            for data in topic.partitions
            for each in data.acquired_records
        )

    def accept(self, said: tuple[AcknowledgementBatch, ...]) -> None:
        """Accept records in a request of its own."""
        partition = AcknowledgePartition(partition_index=0, acknowledgement_batches=said)
        request = ShareAcknowledgeRequest(
            group_id=self.group,
            member_id=self.name,
            share_session_epoch=self.session,
            topics=(AcknowledgeTopic(topic_id=self.topic_id, partitions=(partition,)),),
        )
        answer = self.transport.request(None, request)
        self.session += 1
        if answer.error_code or answer.responses[0].partitions[0].error_code:  # type: ignore[attr-defined]
            raise RuntimeError(f"refused: {answer}")


def _with_fetch(member: Member, records: int) -> None:
    done, said = 0, member.fetch(())
    while done < records:
        done += sum(each.last_offset - each.first_offset + 1 for each in said)
        said = member.fetch(said)


def _apart(member: Member, records: int) -> None:
    done = 0
    while done < records:
        said = member.fetch(())
        if said:
            done += sum(each.last_offset - each.first_offset + 1 for each in said)
            member.accept(said)


WAYS: dict[str, Callable[[Member, int], None]] = {"with-fetch": _with_fetch, "apart": _apart}


def measured(server: Server, kind: str, records: int, at_most: int) -> float:
    """Milliseconds of the broker's processor time for one group that reads and accepts all."""
    with connected(server) as transport:
        member = Member(transport, at_most)
        before = cpu_s(server.pid)
        WAYS[kind](member, records)
        return (cpu_s(server.pid) - before) * 1e3


def main(arguments: list[str]) -> None:
    """Print milliseconds of processor time per 10,000 records."""
    options = dict(argument.split("=") for argument in arguments if "=" in argument)
    kinds = [argument for argument in arguments if "=" not in argument] or list(KINDS)
    records, rounds = int(options.get("records", 10_000)), int(options.get("rounds", 3))
    at_most = int(options.get("at-most", 100))
    with brokers(SHARED) as servers:
        # Its ShareFetch answers have null records, which only version 0 allows: Kafka's clients reject them.
        servers.pop("kfake", None)
        for server in servers.values():
            with connected(server) as transport:
                create_topic(transport, TOPIC, 1)
                until_ready(transport, ["any"])
                fill(transport, records)
        print(f"{'':12}{'kgroup':>10}{'Kafka':>10}  {'ratio':24}ms of processor time per 10,000 records")
        for kind in kinds:
            taken: dict[str, list[float]] = {name: [] for name in servers}
            for server in servers.values():
                for _ in range(WARM_UPS):
                    measured(server, kind, records, at_most)
            for _ in range(rounds):
                for name, server in servers.items():
                    taken[name].append(measured(server, kind, records, at_most) * 10_000 / records)
            ours, theirs = taken["kgroup"], taken.get("kafka")
            if theirs is None:
                print(f"{kind:12}{median(ours):10.1f}")
                continue
            ratio = Ratio.of(ours, theirs)
            said = keep(f"shares {kind}", ratio.middle)
            print(f"{kind:12}{median(ours):10.1f}{median(theirs):10.1f}  {ratio!s:24}{said}", flush=True)
