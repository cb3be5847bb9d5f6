"""What a request costs grows with its length and no faster, whatever it repeats; counted, not timed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from kgroup.broker import dispatch
from kgroup.broker.call import Call
from kgroup.broker.embedded import EmbeddedTransport
from kgroup.broker.handlers import fetch as fetching
from kgroup.domain import java_string_hash, offsets_partition_of
from kgroup.errors import ErrorCode
from kgroup.log.files import CATALOG
from kgroup.protocol import registry
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kgroup.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kgroup.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kgroup.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kgroup.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
)
from kgroup.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest
from kgroup.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kgroup.protocol.registry import ApiKey
from kgroup.protocol.requests import ANATOMY
from kgroup.protocol.shapes import Shape, slots_of
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from tests.unit.broker.brokers import create_topic
from tests.unit.broker.test_produce_fetch import BY_NAME, batch, produce_request


@pytest.fixture
def on_disk(tmp_path: Path) -> EmbeddedTransport:
    return EmbeddedTransport(Cluster(tmp_path, offsets_partitions=2, clock=ManualClock()))


def catalog_lines(folder: Path) -> list[str]:
    """Everything there was at first, then each change."""
    return (folder / CATALOG).read_text().splitlines()


def named(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in names))


def test_topics_that_one_request_creates_are_written_once(on_disk: EmbeddedTransport, tmp_path: Path) -> None:
    """1,500 of them took 23 s."""
    before = len(catalog_lines(tmp_path))
    names = [f"t{n}" for n in range(300)]
    answer = on_disk.request(None, named(*names))
    assert isinstance(answer, MetadataResponse)
    assert [t.error_code for t in answer.topics] == [0] * 300
    assert len(catalog_lines(tmp_path)) == before + 1
    assert on_disk.cluster.catalog.image.by_name.keys() >= set(names)
    wanted = tuple(CreatableTopic(name=f"c{n}", num_partitions=2, replication_factor=1) for n in range(50))
    on_disk.request(None, CreateTopicsRequest(topics=wanted))
    assert len(catalog_lines(tmp_path)) == before + 2
    configs = (AlterableConfig(name="consumer.session.timeout.ms", config_operation=0, value="50000"),)
    groups = tuple(
        AlterConfigsResource(resource_type=32, resource_name=f"g{n}", configs=configs) for n in range(50)
    )
    on_disk.request(None, IncrementalAlterConfigsRequest(resources=groups))
    assert len(catalog_lines(tmp_path)) == before + 3
    on_disk.request(
        None,
        DeleteTopicsRequest(
            timeout_ms=1, topics=tuple(DeleteTopicState(name=n, topic_id=bytes(16)) for n in names)
        ),
    )
    assert len(catalog_lines(tmp_path)) == before + 4
    assert not any(name in on_disk.cluster.catalog.topics for name in names)
    on_disk.close()


def test_a_catalog_that_cannot_be_written_changes_nothing(
    on_disk: EmbeddedTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_topic(on_disk, "there")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    before = on_disk.cluster.catalog.image
    answer = on_disk.request(None, named("a", "there", "b"))
    assert isinstance(answer, MetadataResponse)
    assert {t.error_code for t in answer.topics} == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert on_disk.cluster.catalog.image is before
    on_disk.request(
        None, DeleteTopicsRequest(timeout_ms=1, topics=(DeleteTopicState(name="there", topic_id=bytes(16)),))
    )
    assert "there" in on_disk.cluster.catalog.topics
    monkeypatch.undo()
    assert on_disk.cluster.log("there", 0) is not None
    assert on_disk.request(None, named("a")).topics[0].error_code == 0  # type: ignore[attr-defined]
    on_disk.close()


def test_no_request_creates_more_than_10000_partitions(transport: EmbeddedTransport) -> None:
    """As Kafka's controller, which refuses the whole request."""
    wanted = tuple(CreatableTopic(name=f"t{n}", num_partitions=5001, replication_factor=1) for n in range(2))
    answer = transport.request(None, CreateTopicsRequest(topics=wanted))
    assert isinstance(answer, CreateTopicsResponse)
    assert [t.error_code for t in answer.topics] == [ErrorCode.POLICY_VIOLATION] * 2
    told = transport.request(None, named(*(f"t{n}" for n in range(10_001))))
    assert isinstance(told, MetadataResponse)
    assert {t.error_code for t in told.topics} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_no_request_adds_more_than_10000_partitions(transport: EmbeddedTransport) -> None:
    """To 260 topics that took 28 s, in which nobody was served."""
    for name in ("a", "b"):
        create_topic(transport, name)
    grown = tuple(CreatePartitionsTopic(name=name, count=5002, assignments=None) for name in ("a", "b"))
    answer = transport.request(None, CreatePartitionsRequest(topics=grown, timeout_ms=1))
    assert isinstance(answer, CreatePartitionsResponse)
    assert [t.error_code for t in answer.results] == [ErrorCode.POLICY_VIOLATION] * 2
    assert {transport.cluster.catalog.topics[name].partitions for name in ("a", "b")} == {1}
    answer = transport.request(None, CreatePartitionsRequest(topics=grown[:1], timeout_ms=1))
    assert isinstance(answer, CreatePartitionsResponse)
    assert [t.error_code for t in answer.results] == [0]


def test_a_cluster_has_100000_partitions_at_most(transport: EmbeddedTransport) -> None:
    """The metadata of a million kept everybody waiting for 10 s."""
    codes = []
    for n in range(11):
        wanted = CreatableTopic(name=f"t{n}", num_partitions=10_000, replication_factor=1)
        answer = transport.request(None, CreateTopicsRequest(topics=(wanted,)))
        assert isinstance(answer, CreateTopicsResponse)
        codes += [t.error_code for t in answer.topics]
    # The topics of groups take some of them.
    assert codes == [0] * 9 + [ErrorCode.POLICY_VIOLATION] * 2


def test_what_is_named_too_often_is_answered_once(transport: EmbeddedTransport) -> None:
    create_topic(transport, "t")
    topic = DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=None)
    shared = DescribeShareGroupOffsetsRequestGroup(group_id="s", topics=None)
    for request, place in (
        (named("t", "t"), "topics"),
        (DescribeGroupsRequest(groups=("g",) * 12), "groups"),
        (ConsumerGroupDescribeRequest(group_ids=("g",) * 12), "groups"),
        (DescribeConfigsRequest(resources=(topic,) * 12), "results"),
        (DescribeShareGroupOffsetsRequest(groups=(shared,) * 12), "groups"),
    ):
        assert len(getattr(transport.request(None, request), place)) == 1


SHORT_ANSWERS = {
    ApiKey.FIND_COORDINATOR,
    ApiKey.LEAVE_GROUP,
    ApiKey.DELETE_TOPICS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.ALTER_CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
}
"""Their answer about an entry is not longer than the entry, whatever it names."""


@pytest.mark.parametrize(
    "key",
    [k for k, row in ANATOMY.items() if row.entries and row.entries.inner is None and k not in SHORT_ANSWERS],
)
def test_no_request_multiplies_what_one_name_is_answered(key: ApiKey, transport: EmbeddedTransport) -> None:
    """DescribeShareGroupOffsets did: 25 s for a group that one request named thousands of times."""
    request, array = registry.request_class(key), ANATOMY[key].entries
    assert array is not None
    entry = plain(next(slot.shape.item for slot in slots_of(request) if slot.name == array.asked))
    fields = {slot.name: plain(slot.shape) for slot in slots_of(request)}
    body = request(**{**fields, array.asked: (entry,) * 50})
    answers: list[Any] = []
    answer = transport.dispatcher.handle(Call(body, request.VERSIONS[-1], node=0, answer=answers.append))
    assert len(getattr(answer or answers[0], array.answered)) <= 1


def plain(shape: Shape | None) -> Any:
    """Return a value of a shape: nothing in arrays, one name."""
    assert shape is not None
    if shape.struct is not None and shape.kind != "array":
        return shape.struct(**{slot.name: plain(slot.shape) for slot in slots_of(shape.struct)})
    return {"array": (), "string": "x", "fixed": 0, "uuid": bytes(16), "bytes": b""}[shape.kind]


def parked(transport: EmbeddedTransport, *partitions: int, min_bytes: int = 1) -> list[Message | None]:
    """What a waiting fetch of these partitions is answered with, once it is."""
    answers: list[Message | None] = []
    wanted = tuple(
        FetchTopic(
            topic="t", partitions=(FetchPartition(partition=p, fetch_offset=0, partition_max_bytes=1000),)
        )
        for p in partitions
    )
    request = FetchRequest(max_wait_ms=5000, min_bytes=min_bytes, topics=wanted)
    assert transport.dispatcher.handle(Call(request, BY_NAME, node=0, answer=answers.append)) is None
    return answers


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The partitions that fetches have read."""
    found: list[int] = []
    real = fetching._partition

    def counted(broker, node, name, wanted, left, **options):  # type: ignore[no-untyped-def]
        found.append(wanted.partition)
        return real(broker, node, name, wanted, left, **options)

    monkeypatch.setattr(fetching, "_partition", counted)
    return found


def test_a_partition_named_300_times_is_read_once(transport: EmbeddedTransport, visited: list[int]) -> None:
    """10 kB of Fetch cost 0.7 s of the loop for each produce, 330 kB minutes."""
    create_topic(transport, "t")
    answers = parked(transport, *([0] * 300))
    assert visited == [0]
    transport.request(0, produce_request(batch(b"v")), max_version=BY_NAME)
    assert visited == [0, 0]  # when it came, and for the answer
    (answer,) = answers
    assert isinstance(answer, FetchResponse)
    assert [[p.partition_index for p in t.partitions] for t in answer.responses] == [[0]]


def test_a_waiting_fetch_looks_only_at_what_has_grown(
    transport: EmbeddedTransport, visited: list[int]
) -> None:
    """However many partitions it names; what was there when it came counts, too."""
    create_topic(transport, "t", 300)
    there = range(0, 300, 3)  # led by the broker that is asked
    value = batch(b"v" * 100)
    transport.request(0, produce_request(value, there[7]), max_version=BY_NAME)
    answers = parked(transport, *there, min_bytes=len(value) * 3)
    assert len(visited) == 100
    transport.request(0, produce_request(value, there[3]), max_version=BY_NAME)
    assert len(visited) == 101
    assert not answers
    transport.request(0, produce_request(value, there[3]), max_version=BY_NAME)
    assert len(visited) == 202
    (answer,) = answers
    assert isinstance(answer, FetchResponse)
    assert sum(len(p.records or b"") for t in answer.responses for p in t.partitions) == len(value) * 3


def test_long_ids_are_not_remembered(transport: EmbeddedTransport) -> None:
    """100,000 ids of 32 kB were: 3.2 GB."""
    ids = tuple(f"{n}" + "x" * 20_000 for n in range(5))
    transport.request(None, FindCoordinatorRequest(coordinator_keys=(*ids, "short")))
    assert list(transport.dispatcher._partitions) == ["short"]


def test_the_partition_of_a_long_id_is_computed_once(
    transport: EmbeddedTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice and slowly, 100 of them held everybody up for half a second."""
    computed: list[str] = []

    def noted(group_id: str, partitions: int) -> int:
        computed.append(group_id)
        return offsets_partition_of(group_id, partitions)

    monkeypatch.setattr(dispatch, "offsets_partition_of", noted)
    ids = tuple(f"{n}" + "x" * 20_000 for n in range(5))
    transport.request(None, FindCoordinatorRequest(coordinator_keys=ids))
    assert computed == list(ids)


@pytest.mark.parametrize("units", ["group", "group-é😀", "\0", "\x7f", "\uffff", "\ud800"])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 8, 9, 15, 16, 17, 511, 512, 513, 1024, 1500, 32_767])
def test_the_hash_of_an_id_is_java_s(length: int, units: str) -> None:
    text = (units * length)[:length]
    expected = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(data[::2], data[1::2], strict=True):
        expected = (31 * expected + (high << 8 | low)) & 0xFFFFFFFF
    assert java_string_hash(text) & 0xFFFFFFFF == expected
