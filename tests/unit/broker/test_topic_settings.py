"""Kafka's settings of topics: all are taken, bad values refused as Kafka does, what is in force is told."""

from __future__ import annotations

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.topic_settings import SETTINGS
from tests.unit.broker.brokers import create_topic


def create(transport: EmbeddedTransport, name: str, settings: dict[str, str]) -> int:
    configs = tuple(CreatableTopicConfig(name=key, value=value) for key, value in settings.items())
    wanted = CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
    answer = transport.request(None, CreateTopicsRequest(topics=(wanted,)))
    assert isinstance(answer, CreateTopicsResponse)
    return answer.topics[0].error_code


def told(transport: EmbeddedTransport, topic: str) -> dict[str, DescribeConfigsResourceResult]:
    wanted = DescribeConfigsResource(resource_type=2, resource_name=topic)
    answer = transport.request(None, DescribeConfigsRequest(resources=(wanted,), include_synonyms=True))
    assert isinstance(answer, DescribeConfigsResponse)
    return {entry.name: entry for entry in answer.results[0].configs}


def test_all_33_are_taken_at_their_defaults(transport: EmbeddedTransport) -> None:
    assert len(SETTINGS) == 33
    defaults = {name: row.default_text or "" for name, row in SETTINGS.items()}
    assert create(transport, "t", defaults) == ErrorCode.NONE
    entries = told(transport, "t")
    assert {name: entry.value for name, entry in entries.items()} == defaults
    assert {entry.config_source for entry in entries.values()} == {1}


@pytest.mark.parametrize(
    ("name", "value", "fine"),
    [
        ("cleanup.policy", "", True),
        ("cleanup.policy", "compact , delete", True),
        ("cleanup.policy", "delete,delete", True),
        ("cleanup.policy", "delete,", False),
        ("compression.type", "uncompressed", True),
        ("compression.type", "none", False),
        ("compression.gzip.level", "-1", True),
        ("compression.gzip.level", "0", False),
        ("compression.lz4.level", "17", True),
        ("compression.lz4.level", "18", False),
        ("compression.zstd.level", "-131072", True),
        ("compression.zstd.level", "23", False),
        ("flush.messages", "0", False),
        ("flush.messages", "1", True),
        ("leader.replication.throttled.replicas", "*", True),
        ("leader.replication.throttled.replicas", "0:1,1:0", True),
        ("leader.replication.throttled.replicas", "0-1", False),
        ("local.retention.ms", "-3", False),
        ("max.message.bytes", " 5 ", True),
        ("max.message.bytes", "+5", True),
        ("max.message.bytes", "1_0", False),
        ("max.message.bytes", "2147483648", False),
        ("max.message.bytes", "9" * 5000, False),
        ("min.cleanable.dirty.ratio", "1.1", False),
        ("min.cleanable.dirty.ratio", ".5", True),
        ("min.cleanable.dirty.ratio", "1e-1", True),
        ("min.compaction.lag.ms", "-1", False),
        ("min.insync.replicas", "0", False),
        ("preallocate", "TRUE", True),
        ("preallocate", "yes", False),
        ("remote.storage.enable", "true", False),
        ("retention.ms", "-1", True),
        ("retention.ms", "-2", False),
        ("retention.bytes", "-2", True),
        ("segment.bytes", "1048575", False),
        ("segment.ms", "0", False),
        ("internal.segment.bytes", "1", True),
    ],
)
def test_values_are_checked(transport: EmbeddedTransport, name: str, value: str, fine: bool) -> None:
    assert create(transport, "t", {name: value}) == (ErrorCode.NONE if fine else ErrorCode.INVALID_CONFIG)


def test_settings_that_contradict_each_other_are_refused(transport: EmbeddedTransport) -> None:
    lags = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "9"}
    assert create(transport, "t", lags) == ErrorCode.INVALID_CONFIG


def test_synonyms_tell_where_a_value_comes_from() -> None:
    with_settings = EmbeddedTransport(Cluster(config={"message.max.bytes": "500000"}))
    try:
        assert create(with_settings, "t", {"segment.bytes": " 2000000"}) == ErrorCode.NONE
        create_topic(with_settings, "plain")
        largest = told(with_settings, "plain")["max.message.bytes"]
        assert (largest.value, largest.config_source) == ("500000", 4)
        assert [(s.name, s.value, s.source) for s in largest.synonyms] == [
            ("message.max.bytes", "500000", 4),
            ("message.max.bytes", "1048588", 5),
        ]
        size = told(with_settings, "t")["segment.bytes"]
        assert [(s.name, s.value, s.source) for s in size.synonyms] == [
            ("segment.bytes", "2000000", 1),
            ("log.segment.bytes", "1073741824", 5),
        ]
    finally:
        with_settings.close()
