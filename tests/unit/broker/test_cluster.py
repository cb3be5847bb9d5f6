"""What a cluster keeps in its folder, and what it refuses to start with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.broker.metrics import snapshot
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ConfigError, ErrorCode, StorageError
from kgroup.log.partition import PartitionLog
from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.runtime.claim import Claim
from kgroup.runtime.cleaning import compact_one
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.settings import BrokerSettings
from tests.unit.broker.brokers import create_topic


def opened(folder: Path, **options: int) -> Cluster:
    return Cluster(folder, clock=ManualClock(), **options)  # type: ignore[arg-type]


def test_a_folder_keeps_the_cluster(tmp_path: Path) -> None:
    """SM-71: what was there before a restart is there after it."""
    cluster = opened(tmp_path, offsets_partitions=3)
    transport = EmbeddedTransport(cluster)
    create_topic(transport, "t", 2)
    before = cluster.cluster_id, dict(cluster.catalog.topics), cluster.catalog.image
    log = cluster.log("t", 1)
    assert log is not None
    log.append_batches(encode_batch([LogRecord(b"k", b"v")]))
    transport.close()

    again = opened(tmp_path)
    assert (again.cluster_id, dict(again.catalog.topics)) == before[:2]
    assert again.catalog.image.version == before[2].version
    assert len(again.shards) == 3
    kept = again.log("t", 1)
    assert kept is not None
    assert kept.end_offset == 1
    again.close()


def test_producer_ids_are_not_given_again_after_a_restart(tmp_path: Path) -> None:
    ids = []
    for _ in range(3):
        transport = EmbeddedTransport(opened(tmp_path, offsets_partitions=1))
        answer = transport.request(None, InitProducerIdRequest(transaction_timeout_ms=1))
        assert isinstance(answer, InitProducerIdResponse)
        ids.append(answer.producer_id)
        transport.close()
    assert len(set(ids)) == 3


def test_the_number_of_offsets_partitions_stays(tmp_path: Path) -> None:
    opened(tmp_path, offsets_partitions=3).close()
    with pytest.raises(ConfigError, match="has 3 offsets partitions, not 4"):
        opened(tmp_path, offsets_partitions=4)
    opened(tmp_path, offsets_partitions=3).close()


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    holder = Cluster(Claim(tmp_path, "first"), offsets_partitions=1)
    with pytest.raises(StorageError, match="in use by process .* \\(first"):
        opened(tmp_path)
    holder.announce({0: ("127.0.0.1", 9092)})
    with pytest.raises(StorageError, match="serving at 127.0.0.1:9092"):
        opened(tmp_path)
    holder.close()
    opened(tmp_path).close()


def test_a_deleted_topic_leaves_no_files(tmp_path: Path) -> None:
    cluster = opened(tmp_path, offsets_partitions=1)
    transport = EmbeddedTransport(cluster)
    for name in ("t", "t-1"):
        create_topic(transport, name)
        log = cluster.log(name, 0)
        assert log is not None
        log.append([LogRecord(b"k", b"v")])
    cluster.delete_topic("t")
    assert sorted(p.name for p in tmp_path.glob("t*")) == ["t-1-0"]
    assert cluster.log("t", 0) is None
    create_topic(transport, "t")
    found = cluster.log("t", 0)
    assert found is not None
    assert found.end_offset == 0
    transport.close()


def test_a_copy_of_kafkas_folder_is_taken_over(tmp_path: Path) -> None:
    """Segments without a catalog: topics, their ids and the number of partitions come from the folders."""
    for partition in range(4):
        offsets = PartitionLog(tmp_path / f"{OFFSETS_TOPIC}-{partition}")
        offsets.create()
        offsets.close()
    log = PartitionLog(tmp_path / "orders-eu-0")
    log.append([LogRecord(b"k", b"v")])
    log.close()
    (tmp_path / "orders-eu-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ\n"
    )
    cluster = opened(tmp_path)
    assert len(cluster.shards) == 4
    topic = cluster.catalog.topics["orders-eu"]
    assert (topic.partitions, topic.topic_id) == (1, bytes(15) + b"\5")
    found = cluster.log("orders-eu", 0)
    assert found is not None
    assert found.end_offset == 1
    cluster.close()


def test_a_damaged_catalog_is_told(tmp_path: Path) -> None:
    opened(tmp_path, offsets_partitions=1).close()
    (tmp_path / "catalog").write_text("{")
    with pytest.raises(StorageError, match=r"catalog is not a kgroup catalog"):
        opened(tmp_path)


def test_a_damaged_offsets_log_stops_only_its_groups(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened(tmp_path, offsets_partitions=2).close()
    log = PartitionLog(tmp_path / f"{OFFSETS_TOPIC}-1")
    log.append([LogRecord(b"\0\1\0", b"junk")])
    log.close()
    cluster = opened(tmp_path)
    assert [shard is not None for shard in cluster.shards] == [True, False]
    assert "__consumer_offsets-1 cannot be loaded" in caplog.text
    cluster.close()


@pytest.mark.parametrize(("dirt", "compacted"), [("0.5", True), ("1", False)])
def test_history_is_compacted_at_the_start(tmp_path: Path, dirt: str, compacted: bool) -> None:
    """A thousand commits of one offset are one commit after a restart, unless the topic bears more dirt."""
    small = {"offsets.topic.segment.bytes": "4096"}
    cluster = Cluster(tmp_path, offsets_partitions=1, config=small)
    transport = EmbeddedTransport(cluster)
    create_topic(transport, "t")
    for offset in range(1000):
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
        commit = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=(OffsetCommitRequestTopic(name="t", partitions=(part,)),),
        )
        transport.request(0, commit, max_version=9)
    before = cluster.log(OFFSETS_TOPIC, 0)
    assert before is not None
    assert sum(1 for _ in before.batches()) == 1000
    transport.close()

    again = Cluster(tmp_path, config={**small, "log.cleaner.min.cleanable.ratio": dirt})
    after = again.log(OFFSETS_TOPIC, 0)
    assert after is not None
    assert after.end_offset == 1000
    assert (sum(1 for _ in after.batches()) < 100) is compacted
    again.close()


def test_an_offsets_log_that_cannot_be_opened_stops_only_its_groups(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opened(tmp_path, offsets_partitions=2).close()
    folder = tmp_path / f"{OFFSETS_TOPIC}-1"
    shutil.rmtree(folder)
    folder.write_text("not a folder")
    cluster = opened(tmp_path)
    assert [shard is not None for shard in cluster.shards] == [True, False]
    assert "__consumer_offsets-1 cannot be loaded" in caplog.text
    cluster.close()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("group.max.sise", "1", "no such setting: group.max.sise"),
        ("num.partition", "1", "no such setting: num.partition"),
        ("num.partitions", "0", "Value must be at least 1"),
        ("num.partitions", "many", "Not a number of type INT"),
        ("num.partitions", "1_0", "Not a number of type INT"),
        ("num.partitions", "9" * 30, "num.partitions"),
        ("auto.create.topics.enable", "maybe", "either true or false"),
        ("group.max.size", "0", "group.max.size"),
    ],
)
def test_settings_that_make_no_sense(name: str, value: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Cluster(None, config={name: value})


@pytest.mark.parametrize(
    ("wrong", "right"), [("num.partition", "num.partitions"), ("group.max.sise", "group.max.size")]
)
def test_near_misses_are_named(wrong: str, right: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Cluster(None, config={wrong: "1"})
    assert right in (caught.value.hint or "")


def test_a_cluster_needs_a_broker() -> None:
    with pytest.raises(ConfigError, match="at least one broker"):
        Cluster(None, brokers=0)


def test_settings_tell_themselves() -> None:
    told = BrokerSettings.of({"num.partitions": "7"}).as_text()
    assert (told["num.partitions"], told["auto.create.topics.enable"]) == ("7", "true")
    assert BrokerSettings.of(told).num_partitions == 7


def test_the_same_seed_gives_the_same_ids() -> None:
    """Rule 2 of the design: chance is an argument."""
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff")
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, member_id="", protocol_type="consumer", protocols=(protocol,)
    )

    def ids(seed: int) -> list[str]:
        transport = EmbeddedTransport(Cluster(None, offsets_partitions=2, seed=seed, clock=ManualClock()))
        return [transport.request(0, request).member_id for _ in range(2)]  # type: ignore[attr-defined]

    assert ids(1) == ids(1)
    assert ids(1) != ids(2)


def test_the_offsets_log_stays_short_while_the_cluster_runs(tmp_path: Path) -> None:
    """Ten thousand commits of one partition leave little more than the last of them."""
    settings = {"offsets.topic.segment.bytes": "65536"}
    cluster = Cluster(tmp_path, clock=ManualClock(), offsets_partitions=1, config=settings)
    transport = EmbeddedTransport(cluster)
    create_topic(transport, "t", 1)
    longest = 0
    for offset in range(10_000):
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        topic = OffsetCommitRequestTopic(name="t", partitions=(partition,))
        transport.request(
            None, OffsetCommitRequest(group_id="g", member_id="", topics=(topic,)), max_version=9
        )
        if offset % 500 == 0:
            compact_one(cluster)
            longest = max(longest, sum(path.stat().st_size for path in tmp_path.rglob("*.log")))
    assert longest < 4 * 65536
    (shard,) = cluster.live_shards()
    stored = shard.coordinator.state.offsets.get("g", "t", 0)
    assert stored is not None
    assert stored.value.offset == 9999
    shard.load(0)
    assert shard.coordinator.state.offsets.get("g", "t", 0) == stored
    transport.close()


def commit(transport: EmbeddedTransport, group: str) -> None:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="t", partitions=(part,))
    request = OffsetCommitRequest(
        group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=(topic,)
    )
    transport.request(0, request, max_version=9)


def test_a_torn_tail_is_said_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """SM-71: what a kill interrupted is cut, with a word and with the bytes kept."""
    transport = EmbeddedTransport(opened(tmp_path, offsets_partitions=1))
    create_topic(transport, "t")
    commit(transport, "g")
    left = tmp_path.parent / "left"
    shutil.copytree(tmp_path, left)  # as a kill leaves it
    transport.close()
    path = left / f"{OFFSETS_TOPIC}-0" / f"{0:020d}.log"
    with path.open("ab") as file:
        file.write(b"half of an append")
    cluster = opened(left)
    assert cluster.torn_tails == 1
    assert f"{path} ended in 17 bytes that are no whole append" in caplog.text
    (metric,) = (m for m in snapshot(cluster) if m.name == "torn-tails-cut-count")
    assert metric.value == 1
    (shard,) = cluster.live_shards()
    assert shard.coordinator.state.offsets.get("g", "t", 0) is not None
    cluster.close()
    shutil.rmtree(left)


def test_a_damaged_offsets_partition_is_offline_and_the_others_serve(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    transport = EmbeddedTransport(opened(tmp_path, offsets_partitions=2))
    create_topic(transport, "t")
    groups = ["a", "b", "c", "d"]
    by_partition = {transport.dispatcher.partition_of(group): group for group in groups}
    for group in groups:
        commit(transport, group)
    transport.close()
    path = tmp_path / f"{OFFSETS_TOPIC}-1" / f"{0:020d}.log"
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)

    again = EmbeddedTransport(opened(tmp_path))
    assert f"{OFFSETS_TOPIC}-1 cannot be loaded, its groups are not served: {path} is damaged" in caplog.text
    assert "restore the file from a backup" in caplog.text
    assert path.read_bytes() == raw
    told = again.request(0, MetadataRequest(topics=(MetadataRequestTopic(name=OFFSETS_TOPIC),)))
    assert isinstance(told, MetadataResponse)
    assert [(p.error_code, p.leader_id) for p in told.topics[0].partitions] == [(0, 0), (5, -1)]
    keys = (by_partition[0], by_partition[1])
    found = again.request(0, FindCoordinatorRequest(key_type=0, coordinator_keys=keys))
    assert isinstance(found, FindCoordinatorResponse)
    assert [c.error_code for c in found.coordinators] == [0, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    again.close()


@pytest.mark.parametrize("gone", ["catalog", "meta.properties"])
def test_a_folder_that_lost_what_it_knows_of_itself_is_not_taken_for_a_new_one(
    tmp_path: Path, gone: str
) -> None:
    transport = EmbeddedTransport(opened(tmp_path, offsets_partitions=1))
    create_topic(transport, "t")
    transport.close()
    (tmp_path / gone).unlink()
    with pytest.raises(StorageError, match=f"{gone} is missing") as caught:
        opened(tmp_path)
    assert "restore it from a backup" in (caught.value.hint or "")


def test_a_flipped_bit_in_the_catalog_is_noticed(tmp_path: Path) -> None:
    transport = EmbeddedTransport(opened(tmp_path, offsets_partitions=1))
    create_topic(transport, "t", 4)
    transport.close()
    path = tmp_path / "catalog"
    changed = path.read_text().replace('"partitions":4', '"partitions":5')
    assert changed != path.read_text()
    path.write_text(changed)
    with pytest.raises(StorageError, match="the checksum of the line at byte 0 is wrong"):
        opened(tmp_path)


def test_the_folder_of_a_partition_of_groups_that_is_gone_is_not_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """An empty log in its place would show every group of the partition as one that never was."""
    opened(tmp_path, offsets_partitions=2).close()
    shutil.rmtree(tmp_path / f"{OFFSETS_TOPIC}-1")
    again = opened(tmp_path)
    assert [shard is not None for shard in again.shards] == [True, False]
    assert f"{OFFSETS_TOPIC}-1 is missing: what the partition held is gone" in caplog.text
    again.close()
    assert not (tmp_path / f"{OFFSETS_TOPIC}-1").exists()
    (tmp_path / f"{OFFSETS_TOPIC}-1").mkdir()
    given_up = opened(tmp_path)
    assert all(shard is not None for shard in given_up.shards)
    given_up.close()


def test_a_damaged_topic_is_refused_and_the_server_lives(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    transport = EmbeddedTransport(opened(tmp_path, offsets_partitions=1))
    create_topic(transport, "t", 2)
    for partition in (0, 1):
        log = transport.cluster.log("t", partition)
        assert log is not None
        log.append([LogRecord(b"k", b"v")])
    transport.close()
    (tmp_path / "t-0" / f"{0:020d}.log").unlink()
    cluster = opened(tmp_path)
    for _ in range(2):
        with pytest.raises(StorageError, match="t-0/0+.log is missing"):
            cluster.log("t", 0)
    assert caplog.text.count("t-0 is not served") == 1
    assert cluster.offline("t", 0)
    whole = cluster.log("t", 1)
    assert whole is not None
    assert whole.end_offset == 1
    cluster.close()
