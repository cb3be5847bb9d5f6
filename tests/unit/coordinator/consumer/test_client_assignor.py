"""Client-side assignors: the coordinator picks a member, hands the group out, installs what comes back."""

from dataclasses import replace

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.outcome import Request
from kgroup.domain import Topic, TopicImage
from kgroup.errors import ErrorCode as E
from kgroup.log.memory import MemoryLog
from kgroup.protocol.messages.consumer_group_heartbeat import Assignor, ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.consumer_group_heartbeat import TopicPartitions as Owned
from kgroup.protocol.messages.consumer_group_install_assignment import (
    INVALID_ASSIGNMENT,
    ConsumerGroupInstallAssignmentRequest,
    Member,
    TopicPartitions,
)
from kgroup.protocol.messages.consumer_group_prepare_assignment import ConsumerGroupPrepareAssignmentRequest
from kgroup.runtime.shard import Shard

T = b"t" * 16
MINE = Assignor(name="mine", minimum_version=0, maximum_version=1, metadata_version=1, metadata_bytes=b"m")


class Group:
    """A shard with one topic of four partitions, and members that talk to it at a time of our own."""

    def __init__(self, enabled=True, interval_ms=0):
        config = GroupConfig(client_assignors=enabled, assignment_interval_ms=interval_ms)
        image = TopicImage.of([Topic("t", T, 4)])
        self.shard = Shard(0, MemoryLog(), config, 1, image)
        self.shard.load(0)
        self.now = 0

    def ask(self, body):
        (reply,) = self.shard.submit(1, Request(body, 1, "c", "/127.0.0.1"), self.now)
        return reply.response

    def beat(self, member, epoch, offers=None, owned=None, instance=None):
        joins = epoch == 0
        return self.ask(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=member,
                member_epoch=epoch,
                instance_id=instance,
                rebalance_timeout_ms=30_000 if joins else -1,
                subscribed_topic_names=("t",) if joins else None,
                topic_partitions=() if joins else owned,
                client_assignors=offers,
            )
        )

    @property
    def state(self):
        return self.shard.coordinator.state.groups["g"]

    def epoch_of(self, member):
        return self.state.members[member].epoch

    def prepare(self, member, epoch):
        return self.ask(
            ConsumerGroupPrepareAssignmentRequest(group_id="g", member_id=member, member_epoch=epoch)
        )

    def install(self, member, epoch, group_epoch, given=None, error=0):
        members = tuple(
            Member(
                member_id=name,
                topic_partitions=(TopicPartitions(topic_id=topic, partitions=numbers),),
                metadata_version=2,
                metadata_bytes=b"for " + name.encode(),
            )
            for name, topic, numbers in given or ()
        )
        return self.ask(
            ConsumerGroupInstallAssignmentRequest(
                group_id="g",
                member_id=member,
                member_epoch=epoch,
                group_epoch=group_epoch,
                error=error,
                members=members,
            )
        )


@pytest.fixture
def group():
    return Group()


def joined(group, *members):
    return {name: group.beat(name, 0, (MINE,)) for name in members}


def test_one_member_is_asked_to_compute_and_its_result_is_the_target(group):
    """CP-29, CP-30, CP-32, CP-37: one is chosen; metadata flows both ways."""
    answers = joined(group, "a", "b")
    assert [answers[m].should_compute_assignment for m in "ab"] == [True, False]
    handed = group.prepare("a", 1)
    assert (handed.group_epoch, handed.assignor_name) == (3, "mine")
    assert {m.member_id: m.metadata_bytes for m in handed.members} == {"a": b"m", "b": b"m"}
    assert [(t.topic_name, t.num_partitions) for t in handed.topics] == [("t", 4)]
    assert group.install("a", 1, 3, [("a", T, (0,)), ("b", T, (1, 2, 3))]).error_code == E.NONE
    answer = group.beat("b", 1)
    assert (answer.member_epoch, answer.assignment.topic_partitions[0].partitions) == (3, (1, 2, 3))
    assert (answer.assignment.metadata_version, answer.assignment.metadata_bytes) == (2, b"for b")


def test_the_result_of_an_older_epoch_is_installed_and_the_next_asked_for(group):
    """CP-34: a member that joins between Prepare and Install waits for the next round."""
    joined(group, "a")
    epoch = group.prepare("a", 1).group_epoch
    group.beat("b", 0, (MINE,))
    assert group.install("a", 1, epoch, [("a", T, (0, 1, 2, 3))]).error_code == E.NONE
    answer = group.beat("a", 1)
    assert (answer.member_epoch, answer.should_compute_assignment) == (epoch, True)


@pytest.mark.parametrize(
    ("member", "epoch", "code"),
    [("x", 1, E.UNKNOWN_MEMBER_ID), ("a", 7, E.STALE_MEMBER_EPOCH), ("b", 1, E.UNKNOWN_MEMBER_ID)],
)
def test_who_may_prepare_and_install(group, member, epoch, code):
    """CP-31, CP-33: unknown member, other epoch, not the one that was chosen."""
    joined(group, "a", "b")
    assert group.prepare(member, epoch).error_code == code
    assert group.install(member, epoch, 3).error_code == code


def test_no_group_is_told_first(group):
    """CP-31: the group is looked up before the member."""
    assert group.prepare("a", 1).error_code == E.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    "given",
    [
        [("nobody", T, (0,))],
        [("a", b"u" * 16, (0,))],
        [("a", T, (4,))],
        [("a", T, (0,)), ("b", T, (0,))],
    ],
    ids=["unknown member", "topic not subscribed to", "no such partition", "given away twice"],
)
def test_an_assignment_must_fit_what_was_handed_out(group, given):
    """CP-33: INVALID_ASSIGNMENT, and nothing is written."""
    joined(group, "a", "b")
    group.prepare("a", 1)
    before = group.shard.log.end_offset
    answer = group.install("a", 1, 3, given)
    assert (answer.error_code, bool(answer.error_message)) == (INVALID_ASSIGNMENT, True)
    assert group.shard.log.end_offset == before


def test_the_reason_of_new_metadata_reaches_the_assignor(group):
    """CP-39: a number of the assignor's own, handed on as it is."""
    group.beat("a", 0, (replace(MINE, reason=5),))
    group.beat("b", 0, (replace(MINE, reason=-3),))
    assert {m.member_id: m.reason for m in group.prepare("a", 1).members} == {"a": 5, "b": -3}


def test_partitions_others_still_hold_are_pending(group):
    """CP-19: not usable yet, and told as such until their owner has let go of them."""
    joined(group, "a")
    group.install("a", 1, group.prepare("a", 1).group_epoch, [("a", T, (0, 1, 2, 3))])
    held = group.beat("a", 1).member_epoch
    assert group.beat("b", 0, (MINE,)).should_compute_assignment
    joined_at = group.epoch_of("b")
    epoch = group.prepare("b", joined_at).group_epoch
    assert group.install("b", joined_at, epoch, [("a", T, (0, 1)), ("b", T, (2, 3))]).error_code == E.NONE
    waiting = group.beat("b", group.epoch_of("b")).assignment
    assert (waiting.topic_partitions, waiting.pending_topic_partitions[0].partitions) == ((), (2, 3))
    group.beat("a", held)
    group.beat("a", held, owned=(Owned(topic_id=T, partitions=(0, 1)),))
    given = group.beat("b", group.epoch_of("b")).assignment
    assert (given.topic_partitions[0].partitions, given.pending_topic_partitions) == ((2, 3), ())


def test_another_epoch_than_the_one_handed_out_is_not_installed(group):
    joined(group, "a")
    group.prepare("a", 1)
    assert group.install("a", 1, 9).error_code == INVALID_ASSIGNMENT


def test_another_member_computes_when_the_chosen_one_is_gone_or_silent(group):
    """CP-35: after it left, and after the session timeout without a result."""
    joined(group, "a", "b", "c")
    group.beat("a", -1)
    assert group.beat("b", 1).should_compute_assignment
    assert not group.beat("c", 1).should_compute_assignment
    group.now += 45_000
    assert group.beat("c", 1).should_compute_assignment


def test_the_server_computes_when_the_member_refuses(group):
    joined(group, "a")
    group.prepare("a", 1)
    assert group.install("a", 1, 2, error=3).error_code == E.NONE
    answer = group.beat("a", 1)
    assert answer.assignment.topic_partitions[0].partitions == (0, 1, 2, 3)
    assert not answer.should_compute_assignment


def test_a_changed_offer_asks_for_a_new_target(group):
    """CP-40: new assignor metadata raises the group epoch."""
    joined(group, "a")
    epoch = group.state.epoch
    group.beat("a", 1, (Assignor(name="mine", maximum_version=1, metadata_version=1, metadata_bytes=b"new"),))
    assert group.state.epoch == epoch + 1


def test_assignors_nobody_shares_are_refused(group):
    """CP-36: nothing in common, by name or by version."""
    joined(group, "a")
    for other in (Assignor(name="other"), Assignor(name="mine", maximum_version=9, metadata_version=9)):
        assert group.beat("b", 0, (other,)).error_code == E.UNSUPPORTED_ASSIGNOR


def test_a_member_without_assignors_makes_the_server_compute(group):
    joined(group, "a")
    answer = group.beat("b", 0)
    assert answer.member_epoch == 3
    assert not answer.should_compute_assignment


def test_a_late_result_does_not_replace_a_newer_target(group):
    """The server computed epoch 3 meanwhile, as a member without assignors joined."""
    joined(group, "a")
    epoch = group.prepare("a", 1).group_epoch
    group.beat("b", 0)
    targets = dict(group.state.targets)
    answer = group.install("a", 1, epoch, [("a", T, (0, 1, 2, 3))])
    assert (answer.error_code, answer.error_message) == (
        INVALID_ASSIGNMENT,
        f"computed for epoch {epoch}, but epoch 3 has its target",
    )
    assert (group.state.assignment_epoch, group.state.targets) == (3, targets)


def test_a_static_member_that_came_back_gets_what_was_computed_for_it(group):
    """It holds the target of its old id until then: nobody else may be given that, and it stays."""
    group.beat("a", 0, (MINE,))
    group.beat("b", 0, (MINE,), instance="i")
    epoch = group.prepare("a", 1).group_epoch
    group.install("a", 1, epoch, [("a", T, (0, 1)), ("b", T, (2, 3))])
    group.beat("a", 1, (replace(MINE, metadata_bytes=b"new"),))
    epoch = group.prepare("a", group.epoch_of("a")).group_epoch
    group.beat("b", -2, instance="i")
    group.beat("c", 0, (MINE,), instance="i")
    given = [("a", T, (2, 3)), ("b", T, (0, 1))]
    assert group.install("a", group.epoch_of("a"), epoch, given).error_code == E.NONE
    assert {m: dict(group.state.target_of(m)) for m in ("a", "c")} == {"a": {T: (2, 3)}, "c": {T: (0, 1)}}


def test_a_member_the_assignor_has_an_error_for_keeps_its_partitions_to_itself(group):
    joined(group, "a", "b")
    group.install("a", 1, group.prepare("a", 1).group_epoch, [("a", T, (0, 1)), ("b", T, (2, 3))])
    group.beat("a", 1, (replace(MINE, metadata_bytes=b"new"),))
    at = group.epoch_of("a")
    epoch = group.prepare("a", at).group_epoch
    failed = Member(member_id="b", error=7)
    for numbers, code in (((0, 1, 2), INVALID_ASSIGNMENT), ((0, 1), E.NONE)):
        mine = Member(member_id="a", topic_partitions=(TopicPartitions(topic_id=T, partitions=numbers),))
        request = ConsumerGroupInstallAssignmentRequest(
            group_id="g", member_id="a", member_epoch=at, group_epoch=epoch, members=(mine, failed)
        )
        assert group.ask(request).error_code == code
    assert dict(group.state.target_of("b")) == {T: (2, 3)}


def test_prepare_within_the_assignment_interval_after_a_member_without_assignors_joined():
    group = Group(interval_ms=1000)
    group.now = 10_000
    joined(group, "a")
    group.install("a", 1, group.prepare("a", 1).group_epoch, [("a", T, (0, 1))])
    group.now += 1000
    group.beat("a", 1, (replace(MINE, metadata_bytes=b"new"),))
    at = group.epoch_of("a")
    group.beat("b", 0)
    assert group.prepare("a", at).error_code == E.UNSUPPORTED_ASSIGNOR


def test_switched_off_offers_mean_nothing():
    group = Group(enabled=False)
    answer = group.beat("a", 0, (MINE,))
    assert (answer.should_compute_assignment, answer.member_epoch) == (False, 2)


def test_what_was_installed_survives_a_restart(group):
    joined(group, "a")
    group.install("a", 1, group.prepare("a", 1).group_epoch, [("a", T, (0, 1))])
    before = group.shard.coordinator.state.groups["g"]
    group.shard.load(0)
    after = group.shard.coordinator.state.groups["g"]
    assert (after.targets, after.assignor_says) == (before.targets, before.assignor_says)
