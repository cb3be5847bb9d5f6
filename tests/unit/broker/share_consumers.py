"""A member of a share group in tests: it joins, fetches and acknowledges through the embedded transport."""

from __future__ import annotations

from collections.abc import Iterable

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import ZERO_UUID
from kgroup.protocol.batches import LogRecord, batches_in, encode_batch
from kgroup.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kgroup.protocol.messages.share_acknowledge import (
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
)
from kgroup.protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from kgroup.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kgroup.share.settle import Acknowledge

GROUP = 32  # resource type of IncrementalAlterConfigs


def records(transport: EmbeddedTransport, *values: bytes, topic: str = "t", partition: int = 0) -> None:
    """Append one batch of records to a partition, and wake who waits for them."""
    log = transport.cluster.log(topic, partition)
    assert log is not None
    log.append_batches(encode_batch([LogRecord(None, value) for value in values]))
    transport.dispatcher.watchers.notify((topic, partition))


def configure(transport: EmbeddedTransport, group_id: str, **settings: str) -> None:
    """Set settings of a group, underscores for dots."""
    configs = tuple(
        AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in settings.items()
    )
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=group_id, configs=configs)
    answer = transport.request(None, IncrementalAlterConfigsRequest(resources=(resource,)))
    assert [each.error_code for each in answer.responses] == [0]  # type: ignore[attr-defined]


class Member:
    """One member of share group g, whose partitions are all of topic t and led by one broker."""

    def __init__(self, transport: EmbeddedTransport, name: str, group_id: str = "g") -> None:
        self.transport = transport
        self.name = name
        self.group_id = group_id
        self.epoch = 0
        self.session = 0
        self.assigned: list[int] = []
        self.topic_id = ZERO_UUID

    def beat(self, epoch: int | None = None) -> ShareGroupHeartbeatResponse:
        """Send a heartbeat, and take over what it is answered."""
        sent = self.epoch if epoch is None else epoch
        request = ShareGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.name,
            member_epoch=sent,
            subscribed_topic_names=("t",) if sent == 0 else None,
        )
        answer = self.transport.request(self.coordinator, request)
        assert isinstance(answer, ShareGroupHeartbeatResponse)
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            for topic in answer.assignment.topic_partitions:
                self.topic_id, self.assigned = topic.topic_id, list(topic.partitions)
        return answer

    def join(self) -> None:
        """Join, and be assigned what the share coordinator has begun meanwhile."""
        assert self.beat().error_code == 0
        self.transport.run_until(self.transport.cluster.clock.now_ms() + 1000)
        assert self.beat().error_code == 0

    @property
    def coordinator(self) -> int:
        """The broker that coordinates the group."""
        partition = self.transport.dispatcher.partition_of(self.group_id)
        return self.transport.cluster.leader_of("__consumer_offsets", partition)

    def fetch(
        self,
        *said: AcknowledgementBatch,
        most: int = 500,
        wait_ms: int = 0,
        mode: int = 0,
        partition: int = 0,
        last: bool = False,
        renew: bool = False,
        node: int | None = None,
        max_bytes: int = 1 << 20,
    ) -> ShareFetchResponse:
        """Fetch from a partition in the member's session, acknowledging first, at its leader or at `node`."""
        topic = FetchTopic(
            topic_id=self.topic_id,
            partitions=(FetchPartition(partition_index=partition, acknowledgement_batches=said),),
        )
        request = ShareFetchRequest(
            group_id=self.group_id,
            member_id=self.name,
            share_session_epoch=-1 if last else self.session,
            max_wait_ms=0 if renew else wait_ms,
            min_bytes=0 if renew else 1,
            max_bytes=0 if renew else max_bytes,
            max_records=0 if renew else most,
            batch_size=most,
            share_acquire_mode=mode,
            is_renew_ack=renew,
            topics=(topic,),
        )
        answer = self.transport.request(partition % 3 if node is None else node, request)
        assert isinstance(answer, ShareFetchResponse)
        if not answer.error_code:
            self.session = 0 if last else self.session + 1
        return answer

    def acknowledge(
        self, *said: AcknowledgementBatch, partition: int = 0, last: bool = False, renew: bool = False
    ) -> ShareAcknowledgeResponse:
        """Acknowledge records of a partition."""
        topic = AcknowledgeTopic(
            topic_id=self.topic_id,
            partitions=(AcknowledgePartition(partition_index=partition, acknowledgement_batches=said),),
        )
        request = ShareAcknowledgeRequest(
            group_id=self.group_id,
            member_id=self.name,
            share_session_epoch=-1 if last else self.session,
            is_renew_ack=renew,
            topics=(topic,),
        )
        answer = self.transport.request(partition % 3, request)
        assert isinstance(answer, ShareAcknowledgeResponse)
        if not answer.error_code:
            self.session = 0 if last else self.session + 1
        return answer


def said(first: int, last: int, *types: Acknowledge) -> AcknowledgementBatch:
    """What is said of records: accepted, if nothing else."""
    return AcknowledgementBatch(
        first_offset=first, last_offset=last, acknowledge_types=types or (Acknowledge.ACCEPT,)
    )


def data_in(answer: ShareFetchResponse) -> PartitionData:
    """The one partition of an answer."""
    [topic] = answer.responses
    [data] = topic.partitions
    return data


def acquired(answer: ShareFetchResponse) -> list[tuple[int, int, int]]:
    """First and last offset and delivery count of all that was acquired."""
    return [
        (each.first_offset, each.last_offset, each.delivery_count)
        for topic in answer.responses
        for data in topic.partitions
        for each in data.acquired_records
    ]


def values(answers: Iterable[ShareFetchResponse]) -> list[bytes | None]:
    """The values of all records in the answers, acquired or not."""
    return [
        record.value
        for answer in answers
        for topic in answer.responses
        for data in topic.partitions
        for batch in batches_in(data.records)
        for record in batch.records
    ]
