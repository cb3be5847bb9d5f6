"""The metrics of a cluster after traffic that is known."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from dataclasses import replace

import pytest

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.broker.metrics import WINDOW_MS, Activity, snapshot
from kgroup.broker.metrics_endpoint import MetricsEndpoint
from kgroup.coordinator.metrics import Counters
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import KgroupError
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from tests.unit.broker.brokers import create_topic

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "offsets.retention.minutes": "1"}


@pytest.fixture
def transport():
    transport = EmbeddedTransport(Cluster(config=SETTINGS, offsets_partitions=3, clock=ManualClock(), seed=1))
    create_topic(transport, "orders", 4)
    yield transport
    transport.close()


def numbers(cluster: Cluster) -> dict[str, float | None]:
    """Values by name, tags in braces."""
    return {m.name + "".join(f"{{{value}}}" for value in m.tags.values()): m.value for m in snapshot(cluster)}


def commit(
    transport: EmbeddedTransport, group: str, *partitions: int, epoch: int = -1, member_id: str = ""
) -> None:
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        topics=(
            OffsetCommitRequestTopic(
                name="orders",
                partitions=tuple(
                    OffsetCommitRequestPartition(partition_index=p, committed_offset=5) for p in partitions
                ),
            ),
        ),
    )
    transport.request(None, request, max_version=9)


def join(transport: EmbeddedTransport, group: str, member_id: str = "", instance: str | None = "one"):
    return transport.request(
        None,
        JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=b"x"),),
        ),
    )


def stable_group(transport: EmbeddedTransport, group: str) -> None:
    joined = join(transport, group)
    synced = transport.request(
        None,
        SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id="one",
            protocol_type="consumer",
            protocol_name="range",
        ),
    )
    assert synced.error_code == 0


MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


def beat(transport: EmbeddedTransport, group: str, epoch: int, topics: tuple[str, ...] | None) -> int:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=MEMBER,
        member_epoch=epoch,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=topics,
        topic_partitions=() if epoch == 0 else None,
    )
    answer = transport.request(None, request)
    assert answer.error_code == 0
    return int(answer.member_epoch)


def test_groups_by_type_and_state_cp_56_cp_59(transport: EmbeddedTransport) -> None:
    """CP-56, CP-59; CP-63, an older wish for counts by type and by state, asks for no more."""
    commit(transport, "simple", 0)
    stable_group(transport, "settled")
    join(transport, "forming")
    epoch = beat(transport, "modern", 0, ("orders",))
    found = numbers(transport.cluster)
    assert {name: found[name] for name in found if name.startswith("NumGroups")} == {
        "NumGroups": 3,
        "NumGroupsEmpty": 1,
        "NumGroupsPreparingRebalance": 0,
        "NumGroupsCompletingRebalance": 1,
        "NumGroupsStable": 1,
        "NumGroupsDead": 0,
    }
    assert [found[f"group-count{{{p}}}"] for p in ("classic", "consumer", "share", "streams")] == [3, 1, 0, 0]
    states = ("Empty", "Assigning", "Reconciling", "Stable", "Dead")
    assert [found[f"consumer-group-count{{{s}}}"] for s in states] == [0, 0, 0, 1, 0]
    beat(transport, "modern", -1, None)
    assert epoch > 0
    assert numbers(transport.cluster)["consumer-group-count{Empty}"] == 1


def test_commits_by_the_check_that_took_or_refused_them(transport: EmbeddedTransport) -> None:
    """AE-02: under names of our own, for Kafka counts neither."""
    names = "commits-only-relaxed-check-accepted-count", "commits-both-checks-refused-count"
    epoch = beat(transport, "modern", 0, ("orders",))
    commit(transport, "modern", 0, 1, epoch=epoch, member_id=MEMBER)
    commit(transport, "modern", 0, 1, epoch=epoch + 1, member_id=MEMBER)
    beat(transport, "modern", epoch, ("orders", "payments"))
    transport.cluster.clock.advance(2_000)
    assert beat(transport, "modern", epoch, None) > epoch
    commit(transport, "modern", 3, epoch=epoch, member_id=MEMBER)
    found = {metric.name: metric for metric in snapshot(transport.cluster) if metric.name in names}
    assert [found[name].value for name in names] == [1, 2]
    assert all(metric.total and metric.mbean.startswith("kgroup:") for metric in found.values())


def test_offsets_committed_deleted_and_expired(transport: EmbeddedTransport) -> None:
    commit(transport, "g", 0, 1, 2)
    commit(transport, "g", 0)
    found = numbers(transport.cluster)
    assert (found["NumOffsets"], found["offset-commit-count"]) == (3, 4)
    topic = OffsetDeleteRequestTopic(
        name="orders", partitions=(OffsetDeleteRequestPartition(partition_index=1),)
    )
    transport.request(None, OffsetDeleteRequest(group_id="g", topics=(topic,)))
    transport.run_until(transport.cluster.clock.now_ms() + 20 * 60_000)
    found = numbers(transport.cluster)
    counts = [found[f"offset-{what}-count"] for what in ("commit", "deletion", "expiration")]
    assert (found["NumOffsets"], counts) == (0, [4, 1, 2])


def test_rebalances_are_counted_leaves_are_not_cp_60(transport: EmbeddedTransport) -> None:
    stable_group(transport, "classic")
    create_topic(transport, "more", 2)
    epoch = beat(transport, "modern", 0, ("orders",))
    epoch = beat(transport, "modern", epoch, ("orders", "more"))
    epoch = beat(transport, "modern", epoch, ("more",))
    before = numbers(transport.cluster)
    beat(transport, "modern", -1, None)
    after = numbers(transport.cluster)
    assert before["group-completed-rebalance-count"] == 1
    assert before["consumer-group-rebalance-count"] == after["consumer-group-rebalance-count"] == 3


def test_partitions_by_state_and_load_times_cp_57_cp_61(transport: EmbeddedTransport) -> None:
    cluster = transport.cluster
    found = numbers(cluster)
    assert [found[f"num-partitions{{{s}}}"] for s in ("loading", "active", "failed")] == [0, 3, 0]
    assert (found["partition-load-time-max"], found["partition-load-time-avg"]) == (0, 0)
    cluster.load_times_ms[:] = [10, 20]
    found = numbers(cluster)
    assert (found["partition-load-time-max"], found["partition-load-time-avg"]) == (20, 15)
    cluster.shards[1] = None
    assert numbers(cluster)["num-partitions{failed}"] == 1


def test_counting_goes_on_after_a_reload(transport: EmbeddedTransport) -> None:
    commit(transport, "g", 0, 1)
    cluster = transport.cluster
    for partition in range(len(cluster.shards)):
        cluster.reload(partition, cluster.clock.now_ms())
    commit(transport, "g", 0)
    assert numbers(cluster)["offset-commit-count"] == 3
    assert cluster.log(OFFSETS_TOPIC, 0) is not None


def test_a_rate_covers_two_windows_cp_60() -> None:
    counters = Counters()
    activity = Activity(0, counters, 0.0)
    counters.offset_commit = 60
    assert activity.rate("offset_commit", 1_000, counters) == 60 / (WINDOW_MS / 1000)
    activity.mark(WINDOW_MS, replace(counters), 0.0)
    assert activity.rate("offset_commit", 60_000, counters) == 1.0
    activity.mark(60_000, replace(counters), 0.0)
    assert activity.rate("offset_commit", 61_000, counters) == 0.0


def test_the_thread_is_idle_when_it_uses_no_processor_cp_62() -> None:
    activity = Activity(0, Counters(), 5.0)
    assert activity.idle_ratio(0, 5.0) is None
    assert activity.idle_ratio(10_000, 5.0) == 1.0
    assert activity.idle_ratio(10_000, 12.5) == 0.25
    assert activity.idle_ratio(10_000, 15.1) == 0.0


def test_without_a_host_nothing_looks_back(transport: EmbeddedTransport) -> None:
    found = numbers(transport.cluster)
    assert found["offset-commit-rate"] is None
    assert found["thread-idle-ratio-min"] is None


def test_the_endpoint_speaks_prometheus_and_json(transport: EmbeddedTransport) -> None:
    def get(address: str, path: str) -> str:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=100) as answer:
            return str(answer.read().decode())

    async def scrape() -> tuple[str, str]:
        endpoint = MetricsEndpoint(transport.cluster)
        address = endpoint.start(0)
        try:
            with pytest.raises(KgroupError, match="cannot be used"):
                MetricsEndpoint(transport.cluster).start(int(address.rpartition(":")[2]))
            return await asyncio.to_thread(get, address, "/metrics"), await asyncio.to_thread(
                get, address, "/metrics.json"
            )
        finally:
            await endpoint.stop()

    commit(transport, "g", 0, 1)
    text, document = asyncio.run(scrape())
    lines = text.splitlines()
    assert "kafka_coordinator_group_groupmetadatamanager_numoffsets 2.0" in lines
    assert 'kafka_server_group_coordinator_metrics_group_count{protocol="classic"} 1.0' in lines
    assert "kafka_server_group_coordinator_metrics_offset_commit_count 2.0" in lines
    assert 'kafka_server_group_coordinator_metrics_num_partitions{state="active"} 3.0' in lines
    found = {metric["name"]: metric for metric in json.loads(document)}
    assert found["NumOffsets"]["mbean"] == "kafka.coordinator.group:type=GroupMetadataManager"
    assert found["offset-commit-count"]["value"] == 2
