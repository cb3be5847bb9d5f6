"""What a consumer group's coordinator hands to a server-side assignor, and what it makes of the answer."""

from dataclasses import replace

import pytest

from kgroup.coordinator.assignors.interface import AssignorError, MemberSpec
from kgroup.coordinator.assignors.range import RangeAssignor
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.outcome import Request
from kgroup.domain import Topic, TopicImage
from kgroup.errors import ErrorCode as E
from kgroup.log.memory import MemoryLog
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.runtime.shard import Shard

T = b"t" * 16
VERSION = 1


class Mine(RangeAssignor):
    """An assignor of a user's own: shares as range does, remembers what it saw, fails when told to."""

    name = "mine"

    def __init__(self):
        self.seen = []
        self.fails = False

    def assign(self, group):
        self.seen.append(group)
        if self.fails:
            raise AssignorError("no idea")
        return super().assign(group)


class World:
    """A shard with one topic; targets are computed at every change."""

    def __init__(self, *assignors, partitions=4):
        names = tuple(assignor.name for assignor in assignors) or ("uniform",)
        self.config = GroupConfig(assignment_interval_ms=0, consumer_assignors=names)
        self.topic = Topic("t", T, partitions)
        self.shard = Shard(0, MemoryLog(), self.config, 1, TopicImage.of([self.topic]))
        self.shard.load(0)
        if assignors:
            self.shard.coordinator.state.assignors = {assignor.name: assignor for assignor in assignors}

    @property
    def group(self):
        return self.shard.coordinator.state.groups["g"]

    def beat(self, member, epoch, instance=None, rack=None, assignor=None):
        joins = epoch == 0
        body = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id=member,
            member_epoch=epoch,
            instance_id=instance,
            rack_id=rack,
            server_assignor=assignor,
            rebalance_timeout_ms=30_000 if joins else -1,
            subscribed_topic_names=("t",) if joins else None,
            topic_partitions=() if joins else None,
        )
        (reply,) = self.shard.submit(1, Request(body, VERSION, "c", "/127.0.0.1"), 0)
        return reply.response

    def grow(self, partitions):
        self.topic = replace(self.topic, partitions=partitions)
        self.shard.topics_changed(TopicImage.of([self.topic], partitions), 0)

    def owners(self):
        """Partition → instance id of the member whose target it is."""
        instance_of = {member: instance for instance, member in self.group.static.items()}
        return {
            number: instance_of[member]
            for member, target in self.group.targets.items()
            for numbers in target.values()
            for number in numbers
        }


def test_an_assignor_is_plugged_in_by_its_name_and_sees_the_whole_group():
    """CP-42, CP-43, CP-44, CP-45: members with instance, rack, topics and target; topics with their size."""
    mine = Mine()
    world = World(mine)
    world.beat("a", 0, instance="A", rack="r1", assignor="mine")
    world.beat("b", 0)
    spec = mine.seen[-1]
    assert spec.members == {
        "a": MemberSpec(frozenset([T]), {T: (0, 1, 2, 3)}, "A", "r1"),
        "b": MemberSpec(frozenset([T])),
    }
    assert {topic_id: (t.name, t.partitions) for topic_id, t in spec.topics.items()} == {T: ("t", 4)}
    assert world.group.targets == {"a": {T: (0, 1)}, "b": {T: (2, 3)}}


def test_without_a_wish_the_first_assignor_computes():
    """CP-47: the default is the first of group.consumer.assignors; a member's wish outvotes it."""
    first, second = Mine(), Mine()
    second.name = "second"
    world = World(first, second)
    world.beat("a", 0)
    assert (len(first.seen), len(second.seen)) == (1, 0)
    world.beat("b", 0, assignor="second")
    assert (len(first.seen), len(second.seen)) == (1, 1)
    assert world.beat("c", 0, assignor="third").error_code == E.UNSUPPORTED_ASSIGNOR


def test_an_assignor_that_fails_leaves_the_old_target():
    """CP-47: the heartbeat that asked is told UNKNOWN_SERVER_ERROR, and nothing is written."""
    mine = Mine()
    world = World(mine)
    world.beat("a", 0)
    mine.fails = True
    before, targets = world.shard.log.end_offset, dict(world.group.targets)
    refused = world.beat("b", 0)
    assert (refused.error_code, "no idea" in refused.error_message) == (E.UNKNOWN_SERVER_ERROR, True)
    assert (world.shard.log.end_offset, world.group.targets) == (before, targets)
    assert world.beat("a", world.group.members["a"].epoch).error_code == E.NONE


@pytest.mark.parametrize("first", ["a", "b"])
def test_partitions_stay_with_an_instance_through_restarts(first):
    """SM-45: all static members restart and the topic grows; only the new partitions find an owner."""
    world = World()
    world.beat("a", 0, instance="A")
    world.beat("b", 0, instance="B")
    before = world.owners()
    assert sorted(before.values()) == ["A", "A", "B", "B"]
    for member in "ab":
        world.beat(member, -2, instance=member.upper())
    world.grow(6)
    for member in (first, "ab".replace(first, "")):
        world.beat(f"{member}-again", 0, instance=member.upper())
    after = world.owners()
    assert after.keys() == set(range(6))
    assert {p: after[p] for p in before} == before
