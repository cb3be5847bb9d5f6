"""Records and topics, put into a cluster and taken away as producers and admins would."""

import time

from kgroup.protocol.batches import encode_batch
from kgroup.protocol.log_records import LogRecord
from kgroup.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kgroup.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def append(client, topic, partition, values, timestamps=None):
    """Append one batch; timestamps in ms, by default all now."""
    now = int(time.time() * 1000)
    records = [
        LogRecord(None, value.encode(), (), when)
        for value, when in zip(values, timestamps or [now] * len(values), strict=True)
    ]
    data = PartitionProduceData(index=partition, records=encode_batch(records))
    request = ProduceRequest(
        acks=1, timeout_ms=10_000, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
    )
    answer = client.transport.request(None, request, max_version=12)
    assert {p.error_code for t in answer.responses for p in t.partition_responses} == {0}


def delete_topic(client, name):
    request = DeleteTopicsRequest(
        topics=(DeleteTopicState(name=name, topic_id=bytes(16)),), topic_names=(name,), timeout_ms=10_000
    )
    answer = client.transport.request(None, request)
    assert {told.error_code for told in answer.responses} == {0}
