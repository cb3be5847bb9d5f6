"""Topics: creation, growth, deletion, what is told about them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import OFFSETS_TOPIC, ZERO_UUID
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kgroup.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kgroup.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from kgroup.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from kgroup.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    RequestCursor,
    TopicRequest,
)
from kgroup.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kgroup.runtime.cluster import Cluster
from tests.unit.broker.brokers import create_topic


def created(
    transport: EmbeddedTransport, wanted: CreatableTopic, check: bool = False
) -> CreatableTopicResult:
    answer = transport.request(None, CreateTopicsRequest(topics=(wanted,), validate_only=check))
    assert isinstance(answer, CreateTopicsResponse)
    return answer.topics[0]


def new(name: str, partitions: int = -1, factor: int = -1, **config: str) -> CreatableTopic:
    entries = tuple(CreatableTopicConfig(name=k.replace("_", "."), value=v) for k, v in config.items())
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, configs=entries)


def asked(transport: EmbeddedTransport, wanted: MetadataRequestTopic, create: bool) -> MetadataResponseTopic:
    request = MetadataRequest(topics=(wanted,), allow_auto_topic_creation=create)
    answer = transport.request(None, request)
    assert isinstance(answer, MetadataResponse)
    return answer.topics[0]


def names(transport: EmbeddedTransport) -> set[str | None]:
    answer = transport.request(None, MetadataRequest(topics=None))
    assert isinstance(answer, MetadataResponse)
    return {topic.name for topic in answer.topics}


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (new("fine"), ErrorCode.NONE),
        (new("fine", 4, 3), ErrorCode.NONE),
        (new("x" * 249), ErrorCode.NONE),
        (new("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new(".."), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new("a b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new("is_there"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (new("is.there"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (new(OFFSETS_TOPIC), ErrorCode.TOPIC_ALREADY_EXISTS),
        (new("t", 0), ErrorCode.INVALID_PARTITIONS),
        (new("t", -2), ErrorCode.INVALID_PARTITIONS),
        (new("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (new("t", cleanup_policy="compact"), ErrorCode.NONE),
        (new("t", cleanup_policy="shred"), ErrorCode.INVALID_CONFIG),
        (new("t", retention_ms="soon"), ErrorCode.INVALID_CONFIG),
        (new("t", retention_hours="1"), ErrorCode.INVALID_CONFIG),
    ],
    ids=lambda value: value.name[:20] if hasattr(value, "name") else "",
)
def test_creation(transport: EmbeddedTransport, wanted: CreatableTopic, code: ErrorCode) -> None:
    create_topic(transport, "is.there")
    before = names(transport)
    assert created(transport, wanted, check=True).error_code == code
    assert names(transport) == before
    found = created(transport, wanted)
    assert found.error_code == code
    assert (wanted.name in names(transport)) == (code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS))
    if code == ErrorCode.NONE:
        assert found.topic_id != ZERO_UUID


def test_a_topic_named_twice_is_not_created(transport: EmbeddedTransport) -> None:
    answer = transport.request(None, CreateTopicsRequest(topics=(new("t"), new("t"))))
    assert isinstance(answer, CreateTopicsResponse)
    assert [t.error_code for t in answer.topics] == [ErrorCode.INVALID_REQUEST]


def test_where_folders_have_no_case_topics_do_not_differ_in_it_alone(tmp_path: Path) -> None:
    """On macOS and Windows the new topic took, and first removed, the other's folder."""
    with closing(Cluster(tmp_path / "as-here")) as cluster:
        transport = EmbeddedTransport(cluster)
        assert [created(transport, new(name, 1)).error_code for name in ("orders", "Orders")] == [0, 0]
    (tmp_path / "as-there").mkdir()
    (tmp_path / "as-there" / ".LOCK").touch()
    with closing(Cluster(tmp_path / "as-there")) as cluster:
        transport = EmbeddedTransport(cluster)
        assert created(transport, new("orders", 1)).error_code == 0
        refused = created(transport, new("Orders", 1))
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert refused.error_message == "Topic 'Orders' collides with existing topic: orders"


def test_topics_are_created_when_asked_for(transport: EmbeddedTransport) -> None:
    wanted = MetadataRequestTopic(name="fresh")
    assert asked(transport, wanted, create=False).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    found = asked(transport, wanted, create=True)
    assert (found.error_code, len(found.partitions)) == (0, 1)
    assert asked(transport, wanted, create=False).topic_id == found.topic_id
    by_id = asked(transport, MetadataRequestTopic(name=None, topic_id=found.topic_id), create=False)
    assert by_id.name == "fresh"
    odd = asked(transport, MetadataRequestTopic(name="no/good"), create=True)
    assert odd.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    unknown = asked(transport, MetadataRequestTopic(name=None, topic_id=b"\2" * 16), create=False)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_leaders_go_round_the_brokers(transport: EmbeddedTransport) -> None:
    created(transport, new("t", 4, 2))
    found = asked(transport, MetadataRequestTopic(name="t"), create=False)
    assert [p.leader_id for p in found.partitions] == [0, 1, 2, 0]
    assert [p.replica_nodes for p in found.partitions] == [(0, 1), (1, 2), (2, 0), (0, 1)]


def test_the_oldest_metadata_request_asks_for_all_topics(transport: EmbeddedTransport) -> None:
    for version, count in ((0, 1), (1, 0)):
        answer = transport.request(None, MetadataRequest(topics=()), max_version=version)
        assert isinstance(answer, MetadataResponse)
        assert len(answer.topics) == count


@pytest.mark.parametrize(
    ("name", "count", "code"),
    [
        ("t", 3, ErrorCode.NONE),
        ("t", 2, ErrorCode.INVALID_PARTITIONS),
        ("t", 1, ErrorCode.INVALID_PARTITIONS),
        ("nope", 3, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (OFFSETS_TOPIC, 60, ErrorCode.INVALID_PARTITIONS),
    ],
)
def test_growth(transport: EmbeddedTransport, name: str, count: int, code: ErrorCode) -> None:
    create_topic(transport, "t", 2)
    wanted = CreatePartitionsTopic(name=name, count=count, assignments=None)
    answer = transport.request(None, CreatePartitionsRequest(topics=(wanted,), timeout_ms=1))
    assert isinstance(answer, CreatePartitionsResponse)
    assert answer.results[0].error_code == code
    partitions = asked(transport, MetadataRequestTopic(name="t"), create=False).partitions
    assert len(partitions) == (count if code == ErrorCode.NONE else 2)


def test_deletion(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t")
    create_topic(transport, "u")
    topic_id = asked(transport, MetadataRequestTopic(name="u"), create=False).topic_id
    states = (
        DeleteTopicState(name="t", topic_id=ZERO_UUID),
        DeleteTopicState(name=None, topic_id=topic_id),
        DeleteTopicState(name="t", topic_id=ZERO_UUID),
        DeleteTopicState(name=None, topic_id=topic_id),
        DeleteTopicState(name="t", topic_id=topic_id),
        DeleteTopicState(name=OFFSETS_TOPIC, topic_id=ZERO_UUID),
    )
    answer = transport.request(None, DeleteTopicsRequest(topics=states, timeout_ms=1))
    assert isinstance(answer, DeleteTopicsResponse)
    assert [result.error_code for result in answer.responses] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    ]
    assert names(transport) == {OFFSETS_TOPIC}


def test_a_topic_made_again_is_another_topic(transport: EmbeddedTransport) -> None:
    first = created(transport, new("t")).topic_id
    transport.request(None, DeleteTopicsRequest(topic_names=("t",), timeout_ms=1), max_version=5)
    assert created(transport, new("t")).topic_id != first


def test_pages_of_partitions(transport: EmbeddedTransport) -> None:
    """KIP-966: a cursor leads through topics of any size."""
    create_topic(transport, "a", 3)
    create_topic(transport, "b", 2)
    wanted = tuple(TopicRequest(name=name) for name in ("b", "a", "zz"))
    found: list[tuple[str | None, int]] = []
    cursor: RequestCursor | None = None
    for _ in range(10):
        request = DescribeTopicPartitionsRequest(topics=wanted, response_partition_limit=2, cursor=cursor)
        page = transport.request(None, request)
        assert isinstance(page, DescribeTopicPartitionsResponse)
        found += [(t.name, p.partition_index) for t in page.topics for p in t.partitions]
        if page.next_cursor is None:
            break
        nxt = page.next_cursor
        cursor = RequestCursor(topic_name=nxt.topic_name, partition_index=nxt.partition_index)
    assert found == [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)]


def test_describe_cluster(transport: EmbeddedTransport) -> None:
    answer = transport.request(None, DescribeClusterRequest())
    assert isinstance(answer, DescribeClusterResponse)
    assert [b.broker_id for b in answer.brokers] == [0, 1, 2]
    assert answer.cluster_id == transport.cluster.cluster_id
    odd = transport.request(None, DescribeClusterRequest(endpoint_type=2))
    assert isinstance(odd, DescribeClusterResponse)
    assert odd.error_code == ErrorCode.MISMATCHED_ENDPOINT_TYPE


def test_describe_configs(transport: EmbeddedTransport) -> None:
    created(transport, new("t", cleanup_policy="compact"))
    resources = (
        DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=("cleanup.policy",)),
        DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None),
        DescribeConfigsResource(resource_type=2, resource_name="nope", configuration_keys=None),
        DescribeConfigsResource(resource_type=4, resource_name="9", configuration_keys=None),
    )
    answer = transport.request(None, DescribeConfigsRequest(resources=resources))
    assert isinstance(answer, DescribeConfigsResponse)
    topic, broker, missing, odd = answer.results
    assert [(e.name, e.value, e.config_source) for e in topic.configs] == [("cleanup.policy", "compact", 1)]
    told = {entry.name: (entry.value, entry.config_source) for entry in broker.configs}
    assert told["group.initial.rebalance.delay.ms"] == ("0", 4)
    assert told["group.min.session.timeout.ms"] == ("6000", 5)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert odd.error_code == ErrorCode.INVALID_REQUEST
