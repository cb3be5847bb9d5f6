"""What threads of an application are answered; Kafka's own answers are the differential's to compare."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.streams.group import Owners, StreamsGroup, StreamsState
from kgroup.coordinator.streams.member import Current, MemberState
from kgroup.coordinator.streams.reconcile import Goal, reconcile
from kgroup.coordinator.tasks.values import NO_TASK_SET, TaskSet
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.list_groups import ListGroupsRequest
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kgroup.runtime.shard import Shard
from tests.unit.coordinator.shards import NOW_MS, ask, shard_over
from tests.unit.coordinator.streams.applications import (
    AT_ONCE,
    CHANGELOG,
    active,
    beat,
    counting,
    statuses,
    topics,
)


def running(config: GroupConfig = AT_ONCE, **partitions: int) -> Shard:
    image = topics(**(partitions or {"orders": 2, "app_counts_changelog": 2}))
    return shard_over(config=config, image=image)


def group_of(shard: Shard) -> StreamsGroup:
    group = shard.coordinator.state.groups["app"]
    assert isinstance(group, StreamsGroup)
    return group


def test_the_first_thread_has_every_task_and_a_second_one_gets_its_half_when_it_is_given_up() -> None:
    """AE-32: tasks keep the epoch they were assigned at."""
    shard = running()
    first = beat(shard, "a")
    assert (first.error_code, first.member_epoch, active(first)) == (0, 2, {"0": [0, 1]})
    second = beat(shard, "b")
    assert (second.member_epoch, active(second)) == (3, {})
    told = beat(shard, "a", 2, owned={"0": [0, 1]})
    assert (told.member_epoch, len((active(told) or {})["0"])) == (2, 1)
    assert group_of(shard).state is StreamsState.RECONCILING
    kept = active(told)
    assert kept is not None
    assert beat(shard, "a", 2, owned=kept).member_epoch == 3
    given = beat(shard, "b", 3)
    assert sorted(kept["0"] + (active(given) or {})["0"]) == [0, 1]
    assert group_of(shard).state is StreamsState.STABLE
    epochs = {e for m in group_of(shard).members.values() for e in m.current.assigned.active["0"].values()}
    assert epochs == {2, 3}


def test_nothing_is_assigned_while_topics_are_missing() -> None:
    shard = running(users=1)
    first = beat(shard, "a")
    assert (active(first), statuses(first)) == ({}, {1: "Source topics orders are missing."})
    assert group_of(shard).state is StreamsState.NOT_READY
    shard.topics_changed(topics(orders=3), NOW_MS)
    missed = beat(shard, "a", group_of(shard).members["a"].epoch)
    assert statuses(missed) == {3: f"Internal topics are missing: {CHANGELOG}"}
    [missing] = shard.coordinator.take_missing_topics("app")
    assert (missing.name, missing.partitions) == (CHANGELOG, 3)
    assert shard.coordinator.take_missing_topics("app") == ()
    shard.topics_changed(topics(orders=3, app_counts_changelog=4), NOW_MS)
    [wrong] = statuses(beat(shard, "a", group_of(shard).members["a"].epoch)).values()
    assert wrong == f"Existing topic {CHANGELOG} has different number of partitions: expected 3, found 4"
    shard.topics_changed(topics(orders=3, app_counts_changelog=3), NOW_MS)
    ready = beat(shard, "a", group_of(shard).members["a"].epoch)
    assert (statuses(ready), active(ready)) == ({}, {"0": [0, 1, 2]})


def test_the_first_assignment_waits_for_more_threads() -> None:
    shard = running(GroupConfig(streams_initial_delay_ms=3000, streams_assignment_interval_ms=0))
    delayed = {5: "Assignment delayed due to the configured initial rebalance delay."}
    assert statuses(beat(shard, "a")) == statuses(beat(shard, "b")) == delayed
    beat(shard, "a", 1)
    shard.wake(NOW_MS + 2_999)
    assert not group_of(shard).targets
    shard.wake(NOW_MS + 3_000)
    assert [len(target.active["0"]) for target in group_of(shard).targets.values()] == [1, 1]


def test_the_first_assignment_is_made_though_the_last_heartbeat_before_it_was_refused() -> None:
    shard = running(GroupConfig(streams_initial_delay_ms=3000, streams_assignment_interval_ms=0))
    beat(shard, "a")
    refused = beat(shard, "a", 1, owned={"none": [0]}, at_ms=NOW_MS + 2_999)
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    shard.wake(NOW_MS + 3_000)
    assert [target.active for target in group_of(shard).targets.values()] == [{"0": frozenset({0, 1})}]


def test_a_thread_that_is_silent_goes_and_so_does_one_that_does_not_give_up() -> None:
    shard = running()
    beat(shard, "a")
    beat(shard, "b")
    beat(shard, "a", 2, at_ms=NOW_MS + 10_000)
    shard.wake(NOW_MS + 45_000)
    assert list(group_of(shard).members) == ["a"]
    beat(shard, "b", at_ms=NOW_MS + 46_000)
    for seconds in (50, 80, 105):
        beat(shard, "a", 2, at_ms=NOW_MS + seconds * 1000)
        beat(shard, "b", group_of(shard).members["b"].epoch, at_ms=NOW_MS + seconds * 1000)
    shard.wake(NOW_MS + 111_000)
    assert list(group_of(shard).members) == ["b"]


def test_standbys_are_given_where_the_active_task_is_not() -> None:
    config = GroupConfig(
        streams_initial_delay_ms=0, streams_assignment_interval_ms=0, streams_standby_replicas=1
    )
    shard = running(config)
    beat(shard, "a")
    beat(shard, "b")
    targets = group_of(shard).targets
    assert {name: (sorted(t.active["0"]), sorted(t.standby["0"])) for name, t in targets.items()} in (
        {"a": ([0], [1]), "b": ([1], [0])},
        {"a": ([1], [0]), "b": ([0], [1])},
    )


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"instance_id": "i"}, ErrorCode.INVALID_REQUEST, "Static membership is not yet supported."),
        ({"rack_id": " "}, ErrorCode.INVALID_REQUEST, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, ErrorCode.INVALID_REQUEST, "RebalanceTimeoutMs must be provided"),
        ({"epoch": 7}, ErrorCode.FENCED_MEMBER_EPOCH, "greater member epoch (7)"),
        ({"epoch": 1}, ErrorCode.FENCED_MEMBER_EPOCH, "smaller member epoch (1)"),
        ({"epoch": 2, "owned": {"0": [5]}}, ErrorCode.INVALID_REQUEST, "Task 5 for subtopology 0 is invalid"),
        ({"epoch": 2, "owned": {"9": [0]}}, ErrorCode.INVALID_REQUEST, "Subtopology 9 does not exist"),
    ],
)
def test_what_no_thread_may_say(fields: dict[str, object], code: ErrorCode, message: str) -> None:
    shard = running()
    beat(shard, "a")
    before = shard.log.end_offset
    answer = beat(shard, "a", **fields)  # type: ignore[arg-type]
    assert (answer.error_code, message in (answer.error_message or "")) == (code, True)
    assert shard.log.end_offset == before


def test_a_response_that_got_lost_is_given_again() -> None:
    shard = running()
    beat(shard, "a")
    assert beat(shard, "b").member_epoch == 3
    told = active(beat(shard, "a", 2, owned={"0": [0, 1]}))
    assert told is not None
    assert beat(shard, "a", 2, owned=told).member_epoch == 3
    assert beat(shard, "a", 2, owned=told).error_code == 0


def test_the_last_thread_leaves_an_empty_group_which_a_classic_join_may_have() -> None:
    shard = running()
    beat(shard, "a")
    join = JoinGroupRequest(
        group_id="app",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
    )
    assert ask(shard, join, 9).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # type: ignore[union-attr]
    assert beat(shard, "a", -1).member_epoch == -1
    assert group_of(shard).state is StreamsState.EMPTY
    listed = ask(shard, ListGroupsRequest(types_filter=("streams",)), 5)
    assert [(g.group_id, g.group_state, g.group_type, g.protocol_type) for g in listed.groups] == [  # type: ignore[union-attr]
        ("app", "Empty", "streams", "streams")
    ]
    ask(shard, join, 9)
    assert not isinstance(shard.coordinator.state.groups["app"], StreamsGroup)


def test_an_empty_group_can_be_deleted_and_leaves_nothing_in_the_log() -> None:
    shard = running()
    beat(shard, "a")
    delete = DeleteGroupsRequest(groups_names=("app",))
    assert ask(shard, delete).results[0].error_code == ErrorCode.NON_EMPTY_GROUP  # type: ignore[union-attr]
    beat(shard, "a", -1)
    assert ask(shard, delete).results[0].error_code == 0  # type: ignore[union-attr]
    shard.load(NOW_MS)
    assert not shard.coordinator.state.groups


def test_a_restart_finds_the_group_as_it_was() -> None:
    shard = running()
    beat(shard, "a", user_endpoint=None, rack_id="r")
    beat(shard, "b")
    beat(shard, "a", 2, owned={"0": [0, 1]})
    before = group_of(shard)
    shard.load(NOW_MS)
    after = group_of(shard)
    assert after is not before
    for name in ("epoch", "metadata_hash", "assignment_epoch", "topology", "members", "targets", "owners"):
        assert getattr(after, name) == getattr(before, name)
    shard.wake(NOW_MS + 45_000)
    assert group_of(shard).is_empty


@pytest.mark.parametrize("owned", [None, TaskSet({"0": frozenset({0})})])
def test_a_thread_in_a_state_of_a_later_version_must_own_nothing(owned: TaskSet | None) -> None:
    goal = Goal(5, NO_TASK_SET, "p", owned, Owners())
    with pytest.raises(Refused) as refused:
        reconcile(Current(4, 4, MemberState.UNKNOWN), goal)
    assert refused.value.code == ErrorCode.FENCED_MEMBER_EPOCH
    assert reconcile(Current(4, 4, MemberState.UNKNOWN), replace(goal, owned=NO_TASK_SET)).epoch == 5


def _commit(shard: Shard, member: str, epoch: int, partition: int, version: int = 9) -> int:
    place = OffsetCommitRequestPartition(partition_index=partition, committed_offset=5)
    request = OffsetCommitRequest(
        group_id="app",
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=(OffsetCommitRequestTopic(name="orders", partitions=(place,)),),
    )
    answer = ask(shard, request, version)
    code: int = answer.topics[0].partitions[0].error_code  # type: ignore[union-attr]
    return code


def test_commits_are_fenced_by_the_epoch_of_the_task() -> None:
    """AE-32: a commit at an older epoch counts for tasks that the thread has had since then."""
    shard = running()
    beat(shard, "a")
    assert _commit(shard, "a", 2, 0) == 0
    assert _commit(shard, "a", 3, 0) == ErrorCode.STALE_MEMBER_EPOCH
    assert _commit(shard, "a", 2, 0, version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert _commit(shard, "c", 2, 0) == ErrorCode.UNKNOWN_MEMBER_ID
    beat(shard, "b")
    kept = active(beat(shard, "a", 2, owned={"0": [0, 1]}))
    assert kept is not None
    beat(shard, "a", 2, owned=kept)
    [had] = kept["0"]
    beat(shard, "b", 3)
    assert _commit(shard, "a", 2, had) == 0
    assert _commit(shard, "a", 2, 1 - had) == ErrorCode.STALE_MEMBER_EPOCH
    assert _commit(shard, "b", 2, 1 - had) == ErrorCode.STALE_MEMBER_EPOCH


def test_a_shutdown_is_told_to_all_until_the_last_has_gone() -> None:
    shard = running()
    beat(shard, "a")
    beat(shard, "b")
    [told] = statuses(beat(shard, "a", 2, shutdown_application=True)).values()
    assert told.startswith("Streams group member a encountered a fatal error")
    assert statuses(beat(shard, "b", 3)) == {4: told}
    beat(shard, "a", -1)
    beat(shard, "b", -1)
    assert statuses(beat(shard, "c")) == {}


def test_a_shutdown_is_heard_even_of_a_thread_that_is_not_in_the_group() -> None:
    shard = running()
    beat(shard, "a")
    assert beat(shard, "stranger", -1, shutdown_application=True).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    [told] = statuses(beat(shard, "a", 2)).values()
    assert told.startswith("Streams group member stranger encountered a fatal error")


def test_another_topology_is_refused_and_described_is_the_one_in_use() -> None:
    shard = running()
    beat(shard, "a")
    other = beat(shard, "b", parts=(counting(), counting()))
    assert other.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    from dataclasses import replace

    changed = beat(shard, "b", parts=(replace(counting(), source_topics=("users",)),))
    assert changed.error_message == "Topology updates are not supported yet."
    beat(shard, "a", 2)
    described = ask(shard, StreamsGroupDescribeRequest(group_ids=("app", "none")), 0)
    app, none = described.groups  # type: ignore[union-attr]
    assert none.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (app.group_state, app.group_epoch, app.assignment_epoch) == ("Stable", 2, 2)
    [part] = app.topology.subtopologies
    assert (part.source_topics, part.state_changelog_topics[0].partitions) == (("orders",), 2)
    [member] = app.members
    assert member.assignment == member.target_assignment
    assert member.process_id == "process of a"
