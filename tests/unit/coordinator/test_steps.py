"""One step at a time: what a refusal leaves behind, and what each step writes to the log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from kgroup.coordinator.assignors.interface import AssignorError, GroupSpec
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.member import Current, MemberState
from kgroup.coordinator.consumer.reconcile import Goal, Owned, reconcile
from kgroup.coordinator.coordinator import Coordinator
from kgroup.coordinator.inconsistency import InconsistentLog
from kgroup.coordinator.outcome import Record
from kgroup.coordinator.sessions import awaited
from kgroup.coordinator.timer_kinds import TimerKind
from kgroup.domain import NO_EPOCH, Topic, TopicImage
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol import group_records as r
from kgroup.protocol.group_records import decode_key, decode_value
from kgroup.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.protocol.subscription import Subscription
from kgroup.runtime.shard import Shard
from kgroup.timers import TimerKey
from tests.unit.coordinator.shards import NOW_MS, TOPIC_ID, ask, shard_over


def written(shard: Shard, start: int) -> list[Record]:
    """The records of the log from an offset on."""
    found = []
    for batch in shard.log.batches(start):
        for stored in batch.records:
            key = decode_key(stored.key or b"")
            found.append(Record(key, decode_value(key, stored.value)))  # type: ignore[arg-type]
    return found


def beat(member_id: str = "m", epoch: int = 0, **said: object) -> ConsumerGroupHeartbeatRequest:
    if epoch == 0:
        said = {"rebalance_timeout_ms": 30_000, "topic_partitions": (), **said}
    return ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        **said,  # type: ignore[arg-type]
    )


def join_classic(shard: Shard, protocols: tuple[JoinGroupRequestProtocol, ...], **said: object) -> object:
    request = JoinGroupRequest(
        group_id="g",
        protocol_type="consumer",
        protocols=protocols,
        **{"member_id": "", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 20_000, **said},  # type: ignore[arg-type]
    )
    return ask(shard, request, version=5)


def protocol(name: str, metadata: bytes | None = None) -> JoinGroupRequestProtocol:
    given = Subscription(("t1",)).encode() if metadata is None else metadata
    return JoinGroupRequestProtocol(name=name, metadata=given)


def test_a_member_without_partitions_that_unsubscribes_is_written_all_the_same() -> None:
    """As Kafka's CurrentAssignmentBuilder.updateCurrentAssignment, which goes on without subscriptions."""
    shard = shard_over(image=TopicImage.of([Topic("t1", b"t" * 16, 1)]))
    ask(shard, beat("a", subscribed_topic_names=("t1",)))
    ask(shard, beat("b", subscribed_topic_names=("t1",)), now_ms=NOW_MS + 5_000)
    before = shard.log.end_offset
    answer = ask(shard, beat("b", 3, subscribed_topic_names=(), topic_partitions=()), now_ms=NOW_MS + 5_001)
    assert answer.error_code == 0  # type: ignore[union-attr]
    last = written(shard, before)[-1]
    assert last.key == r.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="b")
    assert (last.value.member_epoch, last.value.previous_member_epoch) == (3, 3)  # type: ignore[union-attr]


def test_a_member_that_names_topics_which_do_not_exist_is_not_written_anew() -> None:
    """Kafka asks whether anything is named, not whether any of it exists."""
    shard = shard_over()
    ask(shard, beat("a", subscribed_topic_names=("never-made",)))
    before = shard.log.end_offset
    ask(shard, beat("a", 2, subscribed_topic_regex="u.*", topic_partitions=()), now_ms=NOW_MS + 20_000)
    keys = [type(record.key) for record in written(shard, before)]
    assert r.ConsumerGroupCurrentMemberAssignmentKey not in keys


def test_a_member_without_an_assignment_yet_gets_none_for_naming_nothing() -> None:
    """Kafka leaves such a member as it is; one that has had an assignment is moved."""

    def moved(current: Current) -> Current:
        goal = Goal(0, {}, set(), {}, True, lambda *_: NO_EPOCH, names_nothing=True)
        return reconcile(current, goal)

    assert moved(Current()) == Current()
    assert moved(Current(0, 0)) == Current(0, 0)
    assert moved(Current(0, 5)) == Current(0, 0)


@pytest.mark.parametrize("owned", [None, {b"t" * 16: frozenset({0})}])
def test_a_member_in_a_state_of_a_later_version_must_own_nothing(owned: Owned | None) -> None:
    """Nor does one that does not say what it owns go on, as it may own what somebody else has by now."""
    goal = Goal(5, {}, set(), owned, False, lambda *_: NO_EPOCH)
    with pytest.raises(Refused) as refused:
        reconcile(Current(4, 4, MemberState.UNKNOWN), goal)
    assert refused.value.code == ErrorCode.FENCED_MEMBER_EPOCH
    assert reconcile(Current(4, 4, MemberState.UNKNOWN), replace(goal, owned={})).epoch == 5


def test_who_has_left_for_a_while_is_fenced_although_it_says_what_it_said_before() -> None:
    """The group is as it was, the member is not: another process may take its place by now."""
    shard = shard_over(image=TopicImage.of([Topic("t1", b"t" * 16, 1)]))
    static = {"instance_id": "i"}
    ask(shard, beat("a", subscribed_topic_names=("t1",), **static))
    same = beat("a", 1, topic_partitions=(TopicPartitions(topic_id=b"t" * 16, partitions=(0,)),))
    epoch = shard.coordinator.state.groups["g"].members["a"].epoch  # type: ignore[union-attr]
    same = replace(same, member_epoch=epoch)
    codes = [ask(shard, same).error_code for _ in range(3)]  # type: ignore[union-attr]
    left = ask(shard, beat("a", -2, **static))
    codes += [left.error_code, ask(shard, same).error_code]  # type: ignore[union-attr]
    assert codes == [0, 0, 0, 0, ErrorCode.FENCED_MEMBER_EPOCH]


def test_the_session_of_a_member_whose_place_is_taken_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    shard = shard_over()
    ask(shard, beat("a", subscribed_topic_names=("t1",)))
    join_classic(shard, (protocol("range"),), group_instance_id="B")
    join_classic(shard, (protocol("range"),), group_instance_id="B", session_timeout_ms=40_000)
    group = shard.coordinator.state.groups["g"]
    members = set(group.members)
    assert len(members) == 2
    shard.wake(NOW_MS + 10_000)
    assert (set(group.members), shard.coordinator.state.groups["g"]) == (members, group)
    assert not caplog.records


def test_leaving_a_group_that_is_not_there_is_refused_in_kafkas_words() -> None:
    shard = shard_over()
    assert ask(shard, beat("a", -1)).error_message == "Group g not found."  # type: ignore[union-attr]
    stay = ask(shard, beat("a", 3))
    assert stay.error_message == "Consumer group g not found."  # type: ignore[union-attr]


def test_no_timer_waits_for_syncs_when_all_have_come() -> None:
    shard = shard_over()
    join_classic(shard, (protocol("range"),), group_instance_id="A")
    (reply,) = shard.wake(NOW_MS + 3_000)
    joined = reply.response
    timers = shard.coordinator.state.timers
    sync = TimerKey(TimerKind.CLASSIC_SYNC, "g")
    assert sync in timers
    request = SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,  # type: ignore[attr-defined]
    )
    ask(shard, request, version=4, now_ms=NOW_MS + 3_001)
    assert sync not in timers


def test_the_groups_record_says_when_its_members_had_joined_not_when_the_leader_synced() -> None:
    shard = shard_over()
    joined = join_classic(shard, (protocol("range"),), group_instance_id="A")
    assert joined is None
    (reply,) = shard.wake(NOW_MS + 3_000)
    member_id, generation = reply.response.member_id, reply.response.generation_id  # type: ignore[attr-defined]
    sync = SyncGroupRequest(
        group_id="g",
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
    )
    ask(shard, sync, now_ms=NOW_MS + 4_000)
    assert written(shard, 0)[-1].value.current_state_timestamp == NOW_MS + 3_000  # type: ignore[union-attr]
    assert shard.coordinator.state.groups["g"].state_since_ms == NOW_MS + 4_000  # type: ignore[union-attr]


class Failing:
    """An assignor that fails for two members."""

    def assign(self, spec: GroupSpec) -> dict[str, object]:
        if len(spec.members) > 1:
            raise AssignorError("too many members")
        return {member_id: {} for member_id in spec.members}


def test_an_assignor_that_fails_names_the_epoch_it_was_asked_for_and_writes_nothing() -> None:
    shard = shard_over()
    state = shard.coordinator.state
    state.assignors = {"uniform": Failing(), "range": Failing()}  # type: ignore[dict-item]
    ask(shard, beat("a", subscribed_topic_names=("t1",)))
    end, wakes, count = shard.log.end_offset, shard.next_wake_ms(), state.counters.consumer_group_rebalance
    answer = ask(shard, beat("b", subscribed_topic_names=("t1",)), now_ms=NOW_MS + 2_000)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR  # type: ignore[union-attr]
    text = "Failed to compute a new target assignment for epoch 3: too many members"
    assert answer.error_message == text  # type: ignore[union-attr]
    assert (shard.log.end_offset, shard.next_wake_ms()) == (end, wakes)
    assert state.counters.consumer_group_rebalance == count
    # As in Kafka the epoch that was not written has the next heartbeat look at the topics again.
    group = state.groups["g"]
    assert (group.epoch, group.refresh_epoch) == (2, 3)  # type: ignore[union-attr]


def test_an_instance_id_that_is_not_released_is_refused_in_kafkas_words() -> None:
    shard = shard_over()
    ask(shard, beat("a", instance_id="A", subscribed_topic_names=("t1",)))
    answer = ask(shard, beat("b", instance_id="A", subscribed_topic_names=("t1",)))
    assert answer.error_message == (  # type: ignore[union-attr]
        "Static member b with instance id A cannot join the group because the instance id is owned "
        "by a member."
    )


def test_records_that_cannot_be_replayed_never_reach_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka replays first, then appends: what is in the log can be read after a restart."""
    shard = shard_over()
    ask(shard, beat("a", subscribed_topic_names=("t1",)))
    end = shard.log.end_offset

    def stumble(self: Coordinator, records: object, base: int, producer_id: int = -1) -> None:
        raise InconsistentLog("planted")

    monkeypatch.setattr(Coordinator, "replay_all", stumble)
    with pytest.raises(InconsistentLog):
        ask(shard, beat("a", 2, subscribed_topic_names=("t2",), topic_partitions=()))
    assert shard.log.end_offset == end


def test_a_downgrade_that_meets_a_malformed_subscription_is_refused_and_its_timer_comes_again() -> None:
    """GROUP_ID_NOT_FOUND from Kafka; the session timer that wanted it is tried again every 500 ms."""
    shard = shard_over()
    ask(shard, beat("a", subscribed_topic_names=("t1",)))
    longer = {"session_timeout_ms": 60_000, "rebalance_timeout_ms": 60_000}
    join_classic(shard, (protocol("x"), protocol("range", b"?")), group_instance_id="B", **longer)
    join_classic(shard, (protocol("range"), protocol("x", b"?")), group_instance_id="C", **longer)
    group = shard.coordinator.state.groups["g"]
    assert sorted(group.static) == ["B", "C"]
    answer = ask(shard, beat("a", -1))
    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND  # type: ignore[union-attr]
    assert answer.error_message.startswith("Cannot downgrade the classic group g: ")  # type: ignore[union-attr]
    timers = shard.coordinator.state.timers
    of_a = TimerKey(TimerKind.CONSUMER_SESSION, "g", "a")
    ends_ms = timers.deadline(of_a)
    assert ends_ms is not None
    while (due_ms := shard.next_wake_ms()) is not None and due_ms <= ends_ms:
        shard.wake(due_ms)
    assert "a" in group.members
    assert timers.deadline(of_a) == ends_ms + 500


@pytest.mark.parametrize(("retention", "expires"), [(1, NOW_MS + 1), (2**63 - 1, NOW_MS - 2**63 - 1)])
def test_a_retention_beyond_all_times_wraps_as_kafkas_does(retention: int, expires: int) -> None:
    """Such an offset is in the log and goes with the next sweep; nobody else is any the worse."""
    shard = shard_over()
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = OffsetCommitRequest(
        group_id="g",
        member_id="",
        retention_time_ms=retention,
        topics=(OffsetCommitRequestTopic(name="t1", partitions=(partition,)),),
    )
    answer = ask(shard, request, version=2)
    assert answer.topics[0].partitions[0].error_code == 0  # type: ignore[union-attr]
    assert written(shard, 0)[-1].value.expire_timestamp == expires  # type: ignore[union-attr]


def test_whoever_has_not_synced_is_awaited_though_the_leader_has() -> None:
    """Where time was moved, a member was put out that had no time to sync: the group was Stable by then."""
    shard = shard_over(config=GroupConfig(initial_rebalance_delay_ms=0))
    for name in ("a", "b"):
        join_classic(shard, (protocol("range"),), group_instance_id=name)
    for now_ms in (NOW_MS, NOW_MS + 1):  # the second member prolongs the initial delay
        shard.wake(now_ms)
    first, second = shard.coordinator.state.groups["g"].members
    synced = SyncGroupRequest(group_id="g", generation_id=1, member_id=first)
    assert ask(shard, synced, version=3) is not None
    assert ("g", second) in awaited(shard.coordinator.state, NOW_MS + 30_000)
    assert ask(shard, replace(synced, member_id=second), version=3) is not None
    assert ("g", second) not in awaited(shard.coordinator.state, NOW_MS + 30_000)


@pytest.mark.parametrize("count", [1, 64, 65, 300])
@pytest.mark.parametrize("version", [9, 10])
def test_each_partition_of_a_commit_is_answered_however_many_there_are(count: int, version: int) -> None:
    """Answers to commits of up to 64 are kept; a commit of the same partitions may be refused."""
    shard = shard_over(image=TopicImage.of([Topic("wide", TOPIC_ID, count)]))

    def answered(numbers: Iterable[int], member_id: str = "") -> list[tuple[int, int]]:
        places = tuple(
            OffsetCommitRequestPartition(partition_index=n, committed_offset=7 + n) for n in numbers
        )
        wanted = OffsetCommitRequestTopic(name="wide", topic_id=TOPIC_ID, partitions=places)
        epoch = 1 if member_id else -1
        request = OffsetCommitRequest(
            group_id="g", generation_id_or_member_epoch=epoch, member_id=member_id, topics=(wanted,)
        )
        answer = ask(shard, request, version=version)
        return [(p.partition_index, p.error_code) for t in answer.topics for p in t.partitions]  # type: ignore[union-attr]

    backwards = [*reversed(range(count))]
    for _ in range(2):
        assert answered(backwards) == [(n, 0) for n in backwards]
    # Kafka's API layer answers for what does not exist, and first.
    unknown = (count, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert answered([*backwards, count]) == [unknown, *((n, 0) for n in backwards)]
    assert {code for _, code in answered(backwards, member_id="nobody")} == {ErrorCode.UNKNOWN_MEMBER_ID}
    assert answered(backwards) == [(n, 0) for n in backwards]
