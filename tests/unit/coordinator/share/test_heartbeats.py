"""What members of share groups are answered, and what the share coordinator is asked for meanwhile."""

from __future__ import annotations

from dataclasses import replace

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.outcome import Reply
from kgroup.coordinator.share import offsets, state_partitions
from kgroup.coordinator.share.group import ShareGroup, ShareState
from kgroup.coordinator.state import Step
from kgroup.coordinator.timer_kinds import TimerKind
from kgroup.domain import NO_OFFSET, Topic, TopicImage
from kgroup.errors import ErrorCode
from kgroup.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kgroup.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kgroup.protocol.releases import Release
from kgroup.runtime.shard import Shard
from kgroup.timers import TimerKey
from tests.unit.coordinator.shards import IMAGE, NOW_MS, TOPIC_ID, ask, shard_over

JOIN = JoinGroupRequest(group_id="g", member_id="", protocol_type="consumer", session_timeout_ms=10_000)
AT_ONCE = GroupConfig(share_assignment_interval_ms=0)


def beat(
    shard: Shard, member: str, epoch: int = 0, topics: tuple[str, ...] | None = None, now_ms: int = NOW_MS
) -> ShareGroupHeartbeatResponse:
    """What a member is answered; joining, it subscribes to t1."""
    names = ("t1",) if epoch == 0 and topics is None else topics
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id=member, member_epoch=epoch, subscribed_topic_names=names
    )
    answer = ask(shard, request, now_ms=now_ms)
    assert isinstance(answer, ShareGroupHeartbeatResponse)
    return answer


def group_of(shard: Shard) -> ShareGroup:
    group = shard.coordinator.state.groups["g"]
    assert isinstance(group, ShareGroup)
    return group


def begun(shard: Shard, partitions: int) -> None:
    """Report that the share coordinator has begun the state of so many partitions of t1."""
    numbers = {TOPIC_ID: set(range(partitions))}
    shard.run(lambda step: state_partitions.initialized(step, group_of(shard), numbers), NOW_MS, _nobody)


def _nobody(replies: object) -> None:
    assert replies == []


def assigned(answer: ShareGroupHeartbeatResponse) -> list[int] | None:
    if answer.assignment is None:
        return None
    return [number for topic in answer.assignment.topic_partitions for number in topic.partitions]


def test_nothing_is_assigned_before_the_share_coordinator_has_its_state() -> None:
    shard = shard_over(config=AT_ONCE)
    first = beat(shard, "a")
    assert (first.member_epoch, assigned(first)) == (2, [])
    asked = shard.coordinator.take_to_initialize("g")
    assert asked == (2, {TOPIC_ID: dict.fromkeys(range(4), NO_OFFSET)})
    assert shard.coordinator.take_to_initialize("g") is None
    assert assigned(beat(shard, "a", 2)) is None
    begun(shard, 4)
    assert assigned(beat(shard, "a", 2)) == [0, 1, 2, 3]
    assert group_of(shard).state is ShareState.STABLE


def test_a_timer_of_an_earlier_group_of_the_same_name_removes_no_member() -> None:
    shard = shard_over(config=AT_ONCE)
    beat(shard, "a")
    shard.coordinator.state.timers.arm(TimerKey(TimerKind.CONSUMER_REVOCATION, "g", "a"), NOW_MS + 1, 2)
    shard.wake(NOW_MS + 1)
    assert "a" in group_of(shard).members


def test_members_share_partitions_when_there_are_more_of_them() -> None:
    shard = shard_over(config=AT_ONCE)
    beat(shard, "a")
    begun(shard, 1)
    for member in ("a", "b", "c"):
        beat(shard, member)
    for member, known in list(group_of(shard).members.items()):
        beat(shard, member, known.epoch)
    held = {name: member.current.assigned for name, member in group_of(shard).members.items()}
    assert held == dict.fromkeys("abc", {TOPIC_ID: (0,)})


def test_what_stays_initializing_is_asked_for_again_after_a_while() -> None:
    shard = shard_over(config=AT_ONCE)
    beat(shard, "a")
    shard.coordinator.take_to_initialize("g")
    beat(shard, "a", 2, now_ms=NOW_MS + 29_999)
    assert shard.coordinator.take_to_initialize("g") is None
    beat(shard, "a", 2, now_ms=NOW_MS + 30_000)
    assert shard.coordinator.take_to_initialize("g") is not None


def test_what_failed_is_asked_for_at_the_next_heartbeat() -> None:
    shard = shard_over(config=AT_ONCE)
    beat(shard, "a")
    shard.coordinator.take_to_initialize("g")
    failed = {TOPIC_ID: {0, 1, 2, 3}}
    shard.run(lambda step: state_partitions.abandoned(step, group_of(shard), failed), NOW_MS, _nobody)
    beat(shard, "a", 2)
    assert shard.coordinator.take_to_initialize("g") == (2, {TOPIC_ID: dict.fromkeys(range(4), NO_OFFSET)})


def test_new_partitions_of_a_topic_begin_at_its_start_from_4_4_on() -> None:
    for release, offset in ((Release(4, 4), 0), (Release(4, 3), NO_OFFSET)):
        shard = shard_over(config=replace(AT_ONCE, kafka=release))
        beat(shard, "a")
        begun(shard, 4)
        shard.topics_changed(IMAGE.changed({"t1": Topic("t1", TOPIC_ID, 5)}), NOW_MS)
        shard.coordinator.take_to_initialize("g")
        beat(shard, "a", 2)
        asked = shard.coordinator.take_to_initialize("g")
        assert asked is not None
        assert asked.offsets == {TOPIC_ID: {4: offset}}


def test_a_silent_member_is_removed_and_its_epoch_is_that_of_a_stranger() -> None:
    shard = shard_over(config=AT_ONCE)
    beat(shard, "a")
    assert shard.wake(NOW_MS + 44_999) == []
    assert not group_of(shard).is_empty
    shard.wake(NOW_MS + 45_000)
    assert group_of(shard).is_empty
    assert beat(shard, "a", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_two_epochs_are_a_members_own() -> None:
    shard = shard_over(config=AT_ONCE)
    beat(shard, "a")
    beat(shard, "b")
    assert beat(shard, "a", 2).member_epoch == 3
    assert beat(shard, "a", 2).error_code == ErrorCode.NONE
    assert beat(shard, "a", 4).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert beat(shard, "a", 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_reload_finds_the_group_as_it_was_and_sessions_begin_anew() -> None:
    shard = shard_over(config=AT_ONCE)
    beat(shard, "a")
    begun(shard, 4)
    beat(shard, "a", 2)
    before = replace(group_of(shard), refresh_deadline_ms=0, refresh_epoch=0)
    shard.load(NOW_MS + 40_000)
    assert group_of(shard) == before
    shard.wake(NOW_MS + 84_999)
    assert group_of(shard).members.keys() == {"a"}
    shard.wake(NOW_MS + 85_000)
    assert group_of(shard).is_empty


def test_other_protocols_do_not_get_into_a_share_group() -> None:
    shard = shard_over(config=AT_ONCE)
    beat(shard, "a")
    beat(shard, "a", -1)
    join = ask(shard, JOIN)
    assert isinstance(join, JoinGroupResponse)
    assert join.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    commit = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=(
            OffsetCommitRequestTopic(
                topic_id=TOPIC_ID,
                partitions=(
                    OffsetCommitRequestPartition(
                        partition_index=0, committed_offset=1, committed_metadata=""
                    ),
                ),
            ),
        ),
    )
    answer = ask(shard, commit)
    assert isinstance(answer, OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_start_offsets_make_a_group_and_it_is_deleted_with_them() -> None:
    shard = shard_over(config=AT_ONCE)
    partitions = (AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=7),)
    request = AlterShareGroupOffsetsRequest(
        group_id="g", topics=(AlterShareGroupOffsetsRequestTopic(topic_name="t1", partitions=partitions),)
    )
    _, asked = shard.run(lambda step: offsets.alter(step, request), NOW_MS, _nobody)
    assert asked == (1, {TOPIC_ID: {0: 7}})
    begun(shard, 1)
    going = shard.run(lambda step: offsets.begin_delete_group(step, "g"), NOW_MS, _nobody)
    assert going == {TOPIC_ID: {0}}
    deleted = ask(shard, DeleteGroupsRequest(groups_names=("g",)))
    assert isinstance(deleted, DeleteGroupsResponse)
    assert deleted.results[0].error_code == ErrorCode.NONE
    assert "g" not in shard.coordinator.state.groups
    shard.load(NOW_MS)
    assert "g" not in shard.coordinator.state.groups


def test_a_group_that_expired_nowhere_else_stays() -> None:
    shard = shard_over(config=GroupConfig(offsets_retention_minutes=1, retention_check_interval_ms=1000))
    beat(shard, "a")
    beat(shard, "a", -1)
    shard.wake(NOW_MS + 600_000)
    assert group_of(shard).is_empty


def test_what_an_operation_of_the_host_released_is_delivered() -> None:
    """Of an operation that changes nothing, nothing; and its result comes back."""
    shard = shard_over()
    delivered: list[Reply] = []

    def nothing(step: Step) -> str:
        return f"at {step.now_ms}"

    assert shard.run(nothing, NOW_MS, delivered.extend) == f"at {NOW_MS}"
    assert delivered == []
    assert shard.log.end_offset == 0


def test_a_deleted_topic_is_forgotten() -> None:
    shard = shard_over(config=AT_ONCE)
    beat(shard, "a")
    begun(shard, 4)
    shard.topics_changed(TopicImage.of([Topic("t2", b"u" * 16, 1)], version=2), NOW_MS)
    kept = group_of(shard).kept
    assert kept is not None
    assert (kept.initialized_topics, kept.initializing_topics) == ((), ())
