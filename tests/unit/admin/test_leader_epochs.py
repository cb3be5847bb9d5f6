"""Where leader epochs of committed offsets end: a new leader may have cut the log before them (KIP-320)."""

from __future__ import annotations

from kgroup.admin.models import Commits
from kgroup.admin.read.leader_epochs import EpochEnds, epoch_ends
from kgroup.admin.read.offsets import ListedOffset
from kgroup.admin.statuses import Epochs, PartitionFacts, PartitionStatus, Unseen, status_of
from kgroup.domain import OffsetAndMetadata, TopicPartition
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tests.unit.admin.fake_cluster import FakeCluster

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
NOW = 7
"""The epoch of all leaders."""
BEGAN = {5: 80, 6: 90, 7: 95}
"""Where the epochs of partition 0 began; the broker knows no epoch before them."""


def broker(code: int = 0) -> FakeCluster:
    fake = FakeCluster(topics={"orders": 2})

    def answer(_: int, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        (topic,) = request.topics
        ends = []
        for asked in topic.partitions:
            later = [at for epoch, at in sorted(BEGAN.items()) if epoch > asked.leader_epoch]
            known = asked.partition == A.partition
            end = EpochEndOffset(
                error_code=code,
                partition=asked.partition,
                leader_epoch=asked.leader_epoch if known else -1,
                end_offset=later[0] if known else -1,
            )
            ends.append(end)
        told = OffsetForLeaderTopicResult(topic=topic.topic, partitions=tuple(ends))
        return OffsetForLeaderEpochResponse(topics=(told,))

    return fake.on(OffsetForLeaderEpochRequest, answer)


def asked(fake: FakeCluster, *groups: dict[TopicPartition, int]) -> EpochEnds:
    """The ends of the epochs in which these groups committed the partitions."""
    stored = [Commits.of({p: OffsetAndMetadata(50, epoch) for p, epoch in each.items()}) for each in groups]
    cluster = fake.cluster()
    ends = {partition: ListedOffset(100, -1, NOW) for partition in (A, B)}
    return epoch_ends(cluster, stored, ends, cluster.topics(["orders"]))


def test_only_epochs_that_are_over_are_asked_about() -> None:
    """Most groups commit in the present epoch, and tools in none: nothing is asked then."""
    fake = broker()
    assert asked(fake, {A: NOW, B: -1}, {A: NOW + 1}) == {}
    assert fake.requests(OffsetForLeaderEpochRequest) == []


def test_each_epoch_of_a_partition_has_its_end() -> None:
    fake = broker()
    ends = asked(fake, {A: 5, B: 3}, {A: 6}, {A: 4})
    assert ends[A] == {4: 80, 5: 90, 6: 95}
    unknown = ends[B][3]
    assert isinstance(unknown, Unseen) and unknown.code == "UNKNOWN_LEADER_EPOCH"
    assert len(fake.requests(OffsetForLeaderEpochRequest)) == 4  # two leaders, three epochs of the first


def test_an_end_that_is_not_told_is_unseen() -> None:
    known = asked(broker(ErrorCode.NOT_LEADER_OR_FOLLOWER), {A: 5})[A][5]
    assert isinstance(known, Unseen) and known.code == "NOT_LEADER_OR_FOLLOWER"
    facts = PartitionFacts(100, committed=100, epochs=known)
    assert status_of(facts).name == PartitionStatus.UNKNOWN


def test_a_log_that_was_cut_and_grew_again_is_not_read_to_its_end() -> None:
    told = status_of(PartitionFacts(100, committed=100, epochs=Epochs(5, NOW, 80)))
    assert (told.name, told.weight) == (PartitionStatus.BEYOND_END, "error")
    assert told.why == "a new leader cut the log at 80, before the commit 100: what is there came since"


def test_a_commit_in_an_epoch_that_no_leader_has_reached_is_of_another_log() -> None:
    told = status_of(PartitionFacts(100, committed=100, epochs=Epochs(9, NOW)))
    assert (told.name, told.weight) == (PartitionStatus.RECREATED, "error")
    assert told.why.startswith("100 is committed in leader epoch 9, and the leader's is 7")
    assert status_of(PartitionFacts(100, committed=100, epochs=Epochs(9))).name == PartitionStatus.IDLE
