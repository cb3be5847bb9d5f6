"""A server asked with our own client, byte by byte what the test says; and what its answers tell."""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Callable
from typing import Any

from kgroup.domain import ZERO_UUID
from kgroup.protocol.batches import LogRecord, batches_in, encode_batch
from kgroup.protocol.codec import Message
from kgroup.protocol.messages import alter_configs as replacing
from kgroup.protocol.messages import create_topics as creation
from kgroup.protocol.messages import delete_records as deletion
from kgroup.protocol.messages import describe_configs as told
from kgroup.protocol.messages import fetch as fetching
from kgroup.protocol.messages import incremental_alter_configs as changes
from kgroup.protocol.messages import list_offsets as listing
from kgroup.protocol.messages import produce as producing
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.scenarios.wire import Wire

from .server import Server
from .waiting import eventually

BY_NAME = 12  # the last versions of Produce and Fetch that name topics


class Peer:
    """A server and a way to ask it; `node` is its broker's id."""

    def __init__(self, server: Server) -> None:
        self.bootstrap = server.bootstrap
        self._wire = Wire("127.0.0.1", server.port, greets=True)
        self._versions = server.minor.versions
        self._tickets = itertools.count(1)
        self.topic = f"t{uuid.uuid4().hex[:8]}"
        (broker,) = self(MetadataRequest(topics=()), 12).brokers
        self.node = int(broker.node_id)

    def __call__(self, request: Message, version: int | None = None) -> Any:
        chosen = self._versions(request.API)[-1] if version is None else version
        self._wire.send(next(self._tickets), "same", request, chosen)
        ((_, answer),) = self._wire.collect(1, 30)
        return answer

    def close(self) -> None:
        self._wire.close()

    def create(self, name: str = "", *, partitions: int = 1, **settings: str) -> Any:
        configs = tuple(
            creation.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in settings.items()
        )
        topic = creation.CreatableTopic(
            name=name or self.topic, num_partitions=partitions, replication_factor=-1, configs=configs
        )
        (made,) = self(creation.CreateTopicsRequest(topics=(topic,))).topics
        if not made.error_code:
            self.settle(name or self.topic, partitions)
        return made

    def settle(self, topic: str, partitions: int) -> None:
        """Wait until the broker leads all of a topic's partitions: Kafka answers before it does."""

        def led() -> bool:
            (found,) = self(MetadataRequest(topics=(MetadataRequestTopic(name=topic),)), 12).topics
            return len(found.partitions) == partitions and all(
                self.list(topic, p, -1)[0] == 0 for p in range(partitions)
            )

        eventually(led)

    def list(self, topic: str, partition: int, timestamp: int) -> tuple[int, int, int]:
        ask = listing.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        wanted = listing.ListOffsetsTopic(name=topic, partitions=(ask,))
        ((found,),) = (
            t.partitions for t in self(listing.ListOffsetsRequest(replica_id=-1, topics=(wanted,))).topics
        )
        return found.error_code, found.offset, found.leader_epoch

    def produce(self, values: int = 1, partition: int = 0) -> tuple[int, int, int]:
        records = encode_batch([LogRecord(b"k", b"v") for _ in range(values)])
        data = producing.PartitionProduceData(index=partition, records=records)
        wanted = producing.TopicProduceData(name=self.topic, partition_data=(data,))
        request = producing.ProduceRequest(acks=-1, timeout_ms=5000, topic_data=(wanted,))
        ((found,),) = (t.partition_responses for t in self(request, BY_NAME).responses)
        return found.error_code, found.base_offset, found.log_start_offset

    def fetch(
        self,
        session: tuple[int, int],
        offsets: dict[int, int],
        *,
        forget: tuple[int, ...] = (),
        version: int = BY_NAME,
        topic_id: bytes = ZERO_UUID,
        epoch: int = -1,
    ) -> Any:
        asks = tuple(
            fetching.FetchPartition(
                partition=p, fetch_offset=offset, partition_max_bytes=1 << 20, current_leader_epoch=epoch
            )
            for p, offset in offsets.items()
        )
        topics = (fetching.FetchTopic(topic=self.topic, topic_id=topic_id, partitions=asks),) if asks else ()
        gone = (fetching.ForgottenTopic(topic=self.topic, topic_id=topic_id, partitions=forget),)
        request = fetching.FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            session_id=session[0],
            session_epoch=session[1],
            topics=topics,
            forgotten_topics_data=gone if forget else (),
        )
        return self(request, version)

    def alter(self, kind: int, name: str, *configs: tuple[int, str, str | None], check: bool = False) -> int:
        entries = tuple(
            changes.AlterableConfig(name=key, config_operation=op, value=value) for op, key, value in configs
        )
        resource = changes.AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)
        request = changes.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=check)
        return int(self(request).responses[0].error_code)

    def replace(self, kind: int, name: str, *configs: tuple[str, str | None], check: bool = False) -> Any:
        """The answer for the resource, whose settings are to be these and no others."""
        entries = tuple(replacing.AlterableConfig(name=key, value=value) for key, value in configs)
        resource = replacing.AlterConfigsResource(resource_type=kind, resource_name=name, configs=entries)
        request = replacing.AlterConfigsRequest(resources=(resource,), validate_only=check)
        (found,) = self(request).responses
        return found

    def describe(self, kind: int, name: str, *keys: str) -> tuple[int, dict[str, Any]]:
        resource = told.DescribeConfigsResource(
            resource_type=kind, resource_name=name, configuration_keys=keys or None
        )
        request = told.DescribeConfigsRequest(resources=(resource,), include_synonyms=True)
        (found,) = self(request).results
        return found.error_code, {
            entry.name: (
                entry.value,
                entry.config_source,
                entry.config_type,
                entry.read_only,
                tuple((s.name, s.value, s.source) for s in entry.synonyms),
            )
            for entry in found.configs
        }


def text(peer: Peer, answer: Any) -> str:
    """An error's message, with names instead of this server's own."""
    told = (answer.error_message or "").replace(peer.topic, "t")
    told = told.replace(" or some brokers have all their log directories cordoned", "")  # ours cannot be
    return re.sub(rf"\b(broker|controller) {peer.node}\b", r"\1 N", told)


def fetched(answer: Any) -> Any:
    """What a fetch tells, without the session's id and topic ids, which are random."""
    return (
        answer.error_code,
        bool(answer.session_id),
        [
            (
                p.partition_index,
                p.error_code,
                p.high_watermark,
                p.last_stable_offset,
                p.log_start_offset,
                sum(batch.count for batch in batches_in(p.records or b"")),
            )
            for topic in answer.responses
            for p in topic.partitions
        ],
    )


def delete(peer: Peer, *offsets: tuple[str, int, int]) -> list[Any]:
    topics = tuple(
        deletion.DeleteRecordsTopic(
            name=name, partitions=(deletion.DeleteRecordsPartition(partition_index=p, offset=offset),)
        )
        for name, p, offset in offsets
    )
    answer = peer(deletion.DeleteRecordsRequest(topics=topics, timeout_ms=5000))
    return sorted(
        (t.name == peer.topic, p.partition_index, p.error_code, p.low_watermark)
        for t in answer.topics
        for p in t.partitions
    )


def at_rest(peer: Peer, look: Callable[[Peer], Any]) -> Any:
    """What is seen once it stays so for a while: Kafka answers before a change is in force."""
    seen: list[Any] = []

    def settled() -> bool:
        seen.append(look(peer))
        return len(seen) > 5 and all(each == seen[-1] for each in seen[-5:])

    eventually(settled)
    return seen[-1]
