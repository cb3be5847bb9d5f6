"""DeleteRecords: raise the start of partitions' logs (KIP-107)."""

from __future__ import annotations

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import Api, Dispatcher, Work
from kgroup.broker.handlers.partitions import code_of, partition_log
from kgroup.domain import INTERNAL_TOPICS, NO_OFFSET
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

HIGH_WATERMARK = -1


def delete_records(broker: Dispatcher, call: Call[DeleteRecordsRequest]) -> Answer:
    """Return the start of each log afterwards; an error of one partition stops no other."""
    return broker.in_turns(call, _delete_records(broker, call))


def _delete_records(broker: Dispatcher, call: Call[DeleteRecordsRequest]) -> Work:
    request = call.body
    # as in Kafka, a partition named again counts once, with what was asked for last
    topics: dict[str, dict[int, DeleteRecordsPartition]] = {}
    for topic in request.topics:
        topics.setdefault(topic.name, {}).update((p.partition_index, p) for p in topic.partitions)
    results = []
    for name, partitions in topics.items():
        of_topic = []
        for number, requested in partitions.items():
            try:
                if broker.cluster.log(name, number) is None:
                    raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                if name in INTERNAL_TOPICS:
                    raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION)
                _, log = partition_log(broker, call.node, name, number)
                settings = broker.cluster.topic_settings(name, call.node)
                if settings.compact and not settings.delete:
                    raise Refused(ErrorCode.POLICY_VIOLATION)
                offset = log.end_offset if requested.offset == HIGH_WATERMARK else requested.offset
                if offset < 0:
                    raise Refused(ErrorCode.OFFSET_OUT_OF_RANGE)
                broker.producers.of(name, number, log)  # they outlive their records
                log.delete_before(offset)
                broker.watchers.notify((name, number))
                start = log.start_offset
                of_topic.append(DeleteRecordsPartitionResult(partition_index=number, low_watermark=start))
            except (Refused, StorageError) as error:
                of_topic.append(_failed(number, code_of(broker, call, error)))
            yield
        if of_topic:
            results.append(DeleteRecordsTopicResult(name=name, partitions=tuple(of_topic)))
    return DeleteRecordsResponse(topics=tuple(results))


def _failed(partition: int, code: ErrorCode) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(partition_index=partition, low_watermark=NO_OFFSET, error_code=code)


APIS = (Api(DeleteRecordsRequest, delete_records),)
