"""KIP-1251: a commit is taken iff assignment epoch ≤ its epoch ≤ member epoch, partition by partition."""

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.member import Current
from kgroup.coordinator.outcome import Record, Request
from kgroup.domain import EndMarker, Topic, TopicImage
from kgroup.errors import ErrorCode as E
from kgroup.log.memory import MemoryLog
from kgroup.protocol import group_records as r
from kgroup.protocol.messages import offset_commit, txn_offset_commit
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kgroup.runtime.shard import Shard

T = b"t" * 16
CONSUMER_VERSION, COMMIT_VERSION, TXN_VERSION = 1, 9, 5


class World:
    """A shard with one topic of two partitions; targets are computed at every change."""

    def __init__(self):
        self.image = TopicImage.of([Topic("t", T, 2)])
        config = GroupConfig(assignment_interval_ms=0)
        self.shard = Shard(0, MemoryLog(), config, 1, self.image)
        self.shard.load(0)

    @property
    def group(self):
        return self.shard.coordinator.state.groups["g"]

    def ask(self, body, version):
        (reply,) = self.shard.submit(1, Request(body, version, "c", "/127.0.0.1"), 0)
        return reply.response

    def beat(self, member, epoch, owned=None, instance=None, names=("t",)):
        joins = epoch == 0
        listed = None if owned is None else (TopicPartitions(topic_id=T, partitions=owned),)
        return self.ask(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=member,
                member_epoch=epoch,
                instance_id=instance,
                rebalance_timeout_ms=30_000 if joins else -1,
                subscribed_topic_names=names if joins else None,
                topic_partitions=() if joins else listed,
            ),
            CONSUMER_VERSION,
        )

    def commit(self, member, epoch, *partitions, version=COMMIT_VERSION):
        partitions = tuple(
            offset_commit.OffsetCommitRequestPartition(partition_index=p, committed_offset=5)
            for p in partitions
        )
        answer = self.ask(
            offset_commit.OffsetCommitRequest(
                group_id="g",
                member_id=member,
                generation_id_or_member_epoch=epoch,
                topics=(offset_commit.OffsetCommitRequestTopic(name="t", partitions=partitions),),
            ),
            version,
        )
        return [p.error_code for p in answer.topics[0].partitions]

    def commit_in_transaction(self, member, epoch, *partitions, instance=None):
        partitions = tuple(
            txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=p, committed_offset=5)
            for p in partitions
        )
        answer = self.ask(
            txn_offset_commit.TxnOffsetCommitRequest(
                transactional_id="x",
                group_id="g",
                producer_id=9,
                producer_epoch=0,
                generation_id=epoch,
                member_id=member,
                group_instance_id=instance,
                topics=(txn_offset_commit.TxnOffsetCommitRequestTopic(name="t", partitions=partitions),),
            ),
            TXN_VERSION,
        )
        return [p.error_code for p in answer.topics[0].partitions]

    def bump(self):
        """Somebody joins without taking anything: the epoch goes up, nothing moves from m."""
        count = len(self.group.members)
        self.beat(f"other{count}", 0, names=("u",))

    def epochs(self, member="m"):
        current = self.group.members[member].current
        return dict(current.assigned.get(T, {})), dict(current.revoking.get(T, {}))


@pytest.fixture
def world():
    made = World()
    assert made.beat("m", 0).member_epoch == 2
    return made


def at_epoch(world, epoch):
    """Bring m to the epoch, with its partitions of epoch 2."""
    while world.group.members["m"].epoch < epoch:
        world.bump()
        world.beat("m", world.group.members["m"].epoch, owned=(0, 1))
    return world


def test_the_race_of_the_kip(world):
    """AE-01, AE-02, AE-03: the broker moved the member on while its commit was under way.

    The strict check would have refused it: it is counted as accepted by the relaxed one alone.
    """
    world.bump()
    world.beat("m", 2, owned=(0, 1))
    assert world.group.members["m"].epoch == 3
    assert world.commit("m", 2, 0) == [E.NONE]
    assert counted(world) == (1, 0)


def test_what_both_checks_refuse_is_counted_and_a_commit_refused_for_one_partition_is_not_accepted(world):
    """AE-02: a request is refused as a whole; each of its partitions that exist counts."""
    at_epoch(world, 3)
    member = world.group.members["m"]
    member.current.assigned[T][1] = 3
    assert world.commit("m", 2, 0, 1, 7) == [E.UNKNOWN_TOPIC_OR_PARTITION, *[E.STALE_MEMBER_EPOCH] * 2]
    assert counted(world) == (0, 2)
    assert world.commit_in_transaction("m", 2, 0, 1) == [E.ILLEGAL_GENERATION] * 2
    assert counted(world) == (0, 4)
    assert world.commit("m", 4, 0) == [E.STALE_MEMBER_EPOCH]
    assert counted(world) == (0, 5)
    assert world.commit("m", 3, 0, 1) == [E.NONE] * 2
    assert world.commit("nobody", 3, 0) == [E.UNKNOWN_MEMBER_ID]
    assert counted(world) == (0, 5)
    assert world.commit_in_transaction("m", 2, 0) == [E.NONE]
    assert counted(world) == (1, 5)


def counted(world):
    """How many commits only the relaxed check accepted, and how many both checks refused."""
    counters = world.shard.coordinator.state.counters
    return counters.commits_only_relaxed_check_accepted, counters.commits_both_checks_refused


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(1, E.STALE_MEMBER_EPOCH), (2, E.NONE), (3, E.NONE), (4, E.NONE), (5, E.STALE_MEMBER_EPOCH)],
)
def test_both_limits(world, epoch, code):
    """AE-04, AE-05, AE-12: assigned at 2, member at 4; transactions are told ILLEGAL_GENERATION."""
    at_epoch(world, 4)
    assert world.commit("m", epoch, 0) == [code]
    in_transaction = E.ILLEGAL_GENERATION if code else E.NONE
    assert world.commit_in_transaction("m", epoch, 0) == [in_transaction]


def test_a_partition_that_went_away_and_came_back(world):
    """AE-06: what was committed before it went is refused, at every epoch in between too."""
    world.beat("n", 0)
    world.beat("m", 2, owned=(0, 1))
    (kept,) = world.epochs()[0]
    moved = 1 - kept
    world.beat("m", 2, owned=(kept,))
    assert world.beat("n", 3, owned=()).assignment.topic_partitions[0].partitions == (moved,)
    world.beat("n", -1)
    world.beat("m", 3, owned=(kept,))
    assert world.epochs()[0] == {kept: 2, moved: 4}
    codes = [world.commit("m", epoch, moved) for epoch in (2, 3, 4)]
    assert codes == [[E.STALE_MEMBER_EPOCH], [E.STALE_MEMBER_EPOCH], [E.NONE]]
    assert world.commit("m", 2, kept) == [E.NONE]


def test_an_unowned_partition_passes_only_at_the_member_epoch(world):
    """AE-07, AE-08: as under the strict check."""
    world.beat("n", 0)
    world.beat("m", 2, owned=(0, 1))
    (kept,) = world.epochs()[0]
    world.beat("m", 2, owned=(kept,))
    world.beat("n", 3, owned=())
    assert world.commit("m", 3, 1 - kept) == [E.NONE]
    assert world.commit("m", 2, 1 - kept) == [E.STALE_MEMBER_EPOCH]


def test_a_member_that_is_gone_commits_at_no_epoch(world):
    """AE-11."""
    world.beat("n", 0)
    world.beat("m", -1)
    assert [world.commit("m", epoch, 0) for epoch in (1, 2, 3)] == [[E.UNKNOWN_MEMBER_ID]] * 3


def test_a_bump_between_send_and_commit_aborts_no_transaction(world):
    """AE-13: the epoch moves on between sendOffsetsToTransaction and the commit, again and again."""
    for epoch in (3, 4, 5):
        at_epoch(world, epoch)
        assert world.commit_in_transaction("m", epoch - 1, 0, 1) == [E.NONE, E.NONE]
    world.shard.end_transaction(EndMarker(9, 0, True, 0), 0)
    assert world.shard.coordinator.state.offsets.get("g", "t", 0).value.offset == 5


def test_a_partition_keeps_the_epoch_it_was_given_at(world):
    """AE-14, AE-15, AE-17: five epochs later still the first one."""
    at_epoch(world, 7)
    assert world.epochs() == ({0: 2, 1: 2}, {})
    member = world.group.members["m"]
    assert member.epoch <= world.group.assignment_epoch <= world.group.epoch


def test_revoking_members_commit_what_they_still_process(world):
    """AE-16, AE-19: the epoch goes along into pending revocation, and into the record."""
    world.beat("n", 0)
    world.beat("m", 2, owned=(0, 1))
    assigned, revoking = world.epochs()
    assert (sorted(assigned.values()), sorted(revoking.values())) == ([2], [2])
    (partition,) = revoking
    assert world.commit("m", 2, partition) == [E.NONE]
    world.shard.load(0)
    assert world.epochs() == (assigned, revoking)


@pytest.mark.parametrize("epochs", [None, (), (2,)], ids=["null", "empty", "too few"])
def test_records_without_epochs_mean_the_strict_check(world, epochs):
    """AE-20, AE-22, AE-23: older brokers' records; as Kafka, also where the numbers do not fit."""
    key = r.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    listed = r.TopicPartitions(topic_id=T, partitions=(0, 1), assignment_epochs=epochs)
    value = r.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=2, previous_member_epoch=1, assigned_partitions=(listed,)
    )
    world.shard.coordinator.replay(Record(key, value), 99)
    assert world.epochs() == ({0: 2, 1: 2}, {})
    assert world.commit("m", 1, 0) == [E.STALE_MEMBER_EPOCH]


def test_the_next_record_has_the_epochs(world):
    """AE-18, AE-21: always written, one for each partition, also when all are 0."""
    for current in (world.group.members["m"].current, Current(2, 2, assigned={T: {0: 0, 1: 0}})):
        for listed in current.value().assigned_partitions:
            assert len(listed.assignment_epochs) == len(listed.partitions)
    data = r.encode_value(world.group.members["m"].current.value())
    key = r.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m")
    assert r.decode_value(key, data).assigned_partitions[0].assignment_epochs == (2, 2)


def test_a_static_member_that_leaves_for_a_while_and_comes_back():
    """AE-24, AE-25: epochs become 0, the new id commits at any epoch, the old id at none."""
    world = World()
    world.beat("old", 0, instance="i")
    world.beat("old", -2, instance="i")
    assert world.epochs("old") == ({0: 0, 1: 0}, {})
    assert world.commit("old", 2, 0) == [E.STALE_MEMBER_EPOCH]
    world.beat("new", 0, instance="i")
    assert world.epochs("new") == ({0: 0, 1: 0}, {})
    assert [world.commit("new", epoch, 0, 1) for epoch in (0, 1, 2)] == [[E.NONE, E.NONE]] * 3
    assert world.commit("old", 2, 0) == [E.UNKNOWN_MEMBER_ID]


def test_commits_of_nobody(world):
    """AE-28, AE-29: without an epoch only for empty or missing groups, and in transactions without ids."""
    assert world.commit("", -1, 0) == [E.UNKNOWN_MEMBER_ID]
    assert world.commit_in_transaction("", -1, 0) == [E.NONE]
    assert world.commit_in_transaction("", -1, 0, instance="i") == [E.UNKNOWN_MEMBER_ID]
    world.beat("m", -1)
    assert world.commit("", -1, 0) == [E.NONE]


def test_fetching_is_not_relaxed(world):
    """AE-31: an older epoch may commit, and still not fetch."""
    at_epoch(world, 3)
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    for epoch, code in ((2, E.STALE_MEMBER_EPOCH), (3, E.NONE)):
        asked = OffsetFetchRequestGroup(group_id="g", member_id="m", member_epoch=epoch, topics=topics)
        assert world.ask(OffsetFetchRequest(groups=(asked,)), 9).groups[0].error_code == code


def test_one_partition_refused_refuses_the_request(world):
    """AE-35: as Kafka 4.3.1, and nothing is written."""
    world.beat("n", 0)
    world.beat("m", 2, owned=(0, 1))
    (kept,) = world.epochs()[0]
    world.beat("m", 2, owned=(kept,))
    before = world.shard.log.end_offset
    assert world.commit("m", 2, kept, 1 - kept) == [E.STALE_MEMBER_EPOCH] * 2
    assert world.shard.log.end_offset == before


def test_members_of_an_older_api_are_told(world):
    """AE-30 and the API: versions before 9 know no member epochs."""
    assert world.commit("m", 2, 0, version=8) == [E.UNSUPPORTED_VERSION]
