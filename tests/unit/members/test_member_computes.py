"""A member asked to compute the group's assignment (KIP-848, client-side assignors)."""

import pytest

from kgroup.coordinator.assignors.range import RangeAssignor
from kgroup.coordinator.assignors.uniform import UniformAssignor
from kgroup.errors import ErrorCode as E
from kgroup.members.client_assignor import COMPUTATION_FAILED, OfferedAssignor
from kgroup.members.consumer import ConsumerMember
from kgroup.members.effects import Send
from kgroup.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    Assignor,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kgroup.protocol.messages.consumer_group_install_assignment import (
    ConsumerGroupInstallAssignmentRequest,
    ConsumerGroupInstallAssignmentResponse,
    TopicPartitions,
)
from kgroup.protocol.messages.consumer_group_install_assignment import Member as Given
from kgroup.protocol.messages.consumer_group_prepare_assignment import (
    ConsumerGroupPrepareAssignmentRequest,
    ConsumerGroupPrepareAssignmentResponse,
    Member,
    TopicMetadata,
)

T = b"t" * 16
OFFERED = (
    OfferedAssignor(RangeAssignor(), 1, 3, 2, reason=4, metadata=b"mine", handed_out=b"for all"),
    OfferedAssignor(UniformAssignor()),
)


def beat(**fields):
    return ConsumerGroupHeartbeatResponse(member_epoch=5, heartbeat_interval_ms=1000, **fields)


def sent(effects):
    return [effect.request for effect in effects if isinstance(effect, Send)]


def asked():
    """A member that has joined, was told to compute, and asks for the group."""
    member = ConsumerMember("g", "m", ["t"], client_assignors=OFFERED)
    (join,) = sent(member.start(0))
    (prepare,) = sent(member.receive(join, beat(should_compute_assignment=True), 0))
    return member, join, prepare


def described(assignor="range", topics=("t",)):
    members = tuple(Member(member_id=name, member_epoch=5, subscribed_topic_names=topics) for name in "mn")
    return ConsumerGroupPrepareAssignmentResponse(
        group_epoch=6,
        assignor_name=assignor,
        members=members,
        topics=(TopicMetadata(topic_id=T, topic_name="t", num_partitions=3),),
    )


def test_a_member_offers_its_assignors_when_it_joins_and_not_again():
    """CP-03"""
    member, join, _ = asked()
    assert join.client_assignors == (
        Assignor(
            name="range",
            minimum_version=1,
            maximum_version=3,
            reason=4,
            metadata_version=2,
            metadata_bytes=b"mine",
        ),
        Assignor(name="uniform"),
    )
    (second,) = sent(member.wake(1000))
    assert isinstance(second, ConsumerGroupHeartbeatRequest)
    assert second.client_assignors is None


def test_a_member_asked_to_compute_fetches_the_group_and_hands_in_a_target():
    """CP-30, CP-32, CP-37"""
    member, _, prepare = asked()
    assert prepare == ConsumerGroupPrepareAssignmentRequest(group_id="g", member_id="m", member_epoch=5)
    (install,) = sent(member.receive(prepare, described(), 0))
    assert install == ConsumerGroupInstallAssignmentRequest(
        group_id="g",
        member_id="m",
        member_epoch=5,
        group_epoch=6,
        members=tuple(
            Given(
                member_id=name,
                topic_partitions=(TopicPartitions(topic_id=T, partitions=partitions),),
                metadata_version=2,
                metadata_bytes=b"for all",
            )
            for name, partitions in (("m", (0, 1)), ("n", (2,)))
        ),
    )
    (next_beat,) = sent(member.receive(install, ConsumerGroupInstallAssignmentResponse(), 10))
    assert isinstance(next_beat, ConsumerGroupHeartbeatRequest), "to learn of its own target at once"


def test_a_computation_that_fails_is_reported():
    member, _, prepare = asked()
    (install,) = sent(member.receive(prepare, described(assignor="unheard-of"), 0))
    assert (install.error, install.members) == (COMPUTATION_FAILED, ())


def test_topics_that_vanished_meanwhile_are_left_out():
    member, _, prepare = asked()
    (install,) = sent(member.receive(prepare, described(topics=("t", "gone")), 0))
    assert install.error == 0


@pytest.mark.parametrize("code", [E.STALE_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID])
def test_a_refused_computation_waits_to_be_asked_again(code):
    member, _, prepare = asked()
    assert member.receive(prepare, ConsumerGroupPrepareAssignmentResponse(error_code=code), 0) == []
    (second,) = sent(member.wake(1000))
    (again,) = sent(member.receive(second, beat(should_compute_assignment=True), 1000))
    assert isinstance(again, ConsumerGroupPrepareAssignmentRequest)
    (install,) = sent(member.receive(again, described(), 1000))
    assert member.receive(install, ConsumerGroupInstallAssignmentResponse(error_code=code), 1000) == []


def test_a_member_computes_one_thing_at_a_time_and_forgets_a_lost_request():
    member, _, prepare = asked()
    (second,) = sent(member.wake(1000))
    assert sent(member.receive(second, beat(should_compute_assignment=True), 1000)) == []
    member.unanswered(prepare, 1500)
    (third,) = sent(member.wake(2000))
    assert len(sent(member.receive(third, beat(should_compute_assignment=True), 2000))) == 1


def test_what_the_assignor_says_reaches_the_member():
    """CP-37, CP-38"""
    member, _, _ = asked()
    (second,) = sent(member.wake(1000))
    member.receive(
        second, beat(assignment=Assignment(error=3, metadata_version=2, metadata_bytes=b"x")), 1000
    )
    assert (member.assignor_error, member.assignor_metadata) == (3, (2, b"x"))
