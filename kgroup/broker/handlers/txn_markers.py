"""WriteTxnMarkers and DescribeProducers: the ends of transactions on a partition, and its producers."""

from __future__ import annotations

from kgroup.broker.call import Answer, Call
from kgroup.broker.dispatch import Api, Dispatcher, Work
from kgroup.broker.handlers.partitions import code_of, partition_log
from kgroup.broker.topics import check_name
from kgroup.domain import EndMarker, TopicPartition
from kgroup.errors import ErrorCode, Refused, StorageError
from kgroup.protocol.messages import describe_producers as described
from kgroup.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kgroup.transactions.state import LATEST_VERSION


def write_markers(broker: Dispatcher, call: Call[WriteTxnMarkersRequest]) -> Answer:
    """Write every marker to each of its partitions that this broker leads, each with a code of its own."""
    return broker.in_turns(call, _write_markers(broker, call))


def _write_markers(broker: Dispatcher, call: Call[WriteTxnMarkersRequest]) -> Work:
    markers = []
    for marker in call.body.markers:
        producer = marker.producer_id, marker.producer_epoch
        end = EndMarker(*producer, marker.transaction_result, marker.coordinator_epoch)
        newer = marker.transaction_version >= LATEST_VERSION
        topics = []
        for topic in marker.topics:
            results = []
            for partition in topic.partition_indexes:
                code = ErrorCode.NONE
                try:
                    _, log = partition_log(broker, call.node, topic.name, partition)
                    broker.producers.of(topic.name, partition, log).check_marker(*producer, newer=newer)
                    broker.transactions.write_marker(TopicPartition(topic.name, partition), end)
                except (Refused, StorageError) as error:
                    code = code_of(broker, call, error)
                results.append(WritableTxnMarkerPartitionResult(partition_index=partition, error_code=code))
                yield
            topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=tuple(results)))
        markers.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=tuple(topics)))
    return WriteTxnMarkersResponse(markers=tuple(markers))


def describe_producers(
    broker: Dispatcher, call: Call[described.DescribeProducersRequest]
) -> described.DescribeProducersResponse:
    """Return the known producers of each partition, with the start of their open transactions."""
    topics = []
    for topic in call.body.topics:
        of_topic = []
        for number in topic.partition_indexes:
            try:
                check_name(topic.name)
                _, log = partition_log(broker, call.node, topic.name, number)
                producers = broker.producers.of(topic.name, number, log)
            except (Refused, StorageError) as error:
                code = code_of(broker, call, error)
                of_topic.append(described.PartitionResponse(partition_index=number, error_code=code))
                continue
            active = tuple(
                described.ProducerState(
                    producer_id=producer_id,
                    producer_epoch=known.epoch,
                    last_sequence=known.last_sequence,
                    last_timestamp=known.last_timestamp,
                    coordinator_epoch=known.coordinator_epoch,
                    current_txn_start_offset=producers.transaction_start(producer_id),
                )
                for producer_id, known in producers.known.items()
            )
            of_topic.append(described.PartitionResponse(partition_index=number, active_producers=active))
        topics.append(described.TopicResponse(name=topic.name, partitions=tuple(of_topic)))
    return described.DescribeProducersResponse(topics=tuple(topics))


APIS = (
    Api(WriteTxnMarkersRequest, write_markers),
    Api(described.DescribeProducersRequest, describe_producers),
)
