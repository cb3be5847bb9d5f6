"""A member of a streams group, heartbeat by heartbeat: what it says, and what it makes of the answers."""

from __future__ import annotations

from kgroup.domain import Topic, TopicPartition
from kgroup.errors import ErrorCode
from kgroup.members.beating import Phase
from kgroup.members.effects import (
    Assigned,
    CoordinatorMoved,
    Effect,
    Failed,
    Left,
    Lost,
    NeedTopics,
    Revoke,
    Send,
    WakeAt,
)
from kgroup.members.streams import Application, StreamsMember
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest
from kgroup.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    Topology,
)
from kgroup.protocol.streams_records import Subtopology, TopicInfo

TOPOLOGY = Topology(
    epoch=2,
    subtopologies=(
        Subtopology(subtopology_id="0", source_topics=("orders", "users")),
        Subtopology(subtopology_id="1", repartition_source_topics=(TopicInfo(name="again"),)),
    ),
)
TOPICS = {name: Topic(name, name.encode().ljust(16), size) for name, size in (("orders", 3), ("users", 1))}


def started() -> tuple[StreamsMember, StreamsGroupHeartbeatRequest]:
    member = StreamsMember("app", "m", Application("p", TOPOLOGY, rebalance_timeout_ms=9_000))
    member.update_topics(TOPICS, 0)
    return member, sent(member.start(0))


def sent(effects: list[Effect]) -> StreamsGroupHeartbeatRequest:
    (request,) = (effect.request for effect in effects if isinstance(effect, Send))
    assert isinstance(request, StreamsGroupHeartbeatRequest)
    return request


def answer(epoch: int, active: str | None = None, standby: str = "") -> StreamsGroupHeartbeatResponse:
    """Tasks as `0:1,2 1:0`; None for no news."""
    return StreamsGroupHeartbeatResponse(
        member_id="m",
        member_epoch=epoch,
        heartbeat_interval_ms=5_000,
        active_tasks=None if active is None else ids(active),
        standby_tasks=None if active is None else ids(standby),
        warmup_tasks=None if active is None else (),
    )


def ids(text: str) -> tuple[TaskIds, ...]:
    parts = (part.split(":") for part in text.split())
    return tuple(
        TaskIds(subtopology_id=name, partitions=tuple(map(int, numbers.split(","))))
        for name, numbers in parts
    )


def test_it_joins_with_all_there_is_to_say_and_later_says_only_what_changed() -> None:
    member, joins = started()
    assert (joins.member_epoch, joins.topology, joins.process_id) == (0, TOPOLOGY, "p")
    assert (joins.active_tasks, joins.standby_tasks, joins.warmup_tasks) == ((), (), ())
    effects = member.receive(joins, answer(3, "0:0,1", "1:0"), 10)
    assert effects[0] == WakeAt(5_010)
    read = (TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("users", 0))
    assert Assigned(read) in effects and member.owned == frozenset(read)
    assert NeedTopics(frozenset({"again"})) in effects
    told = sent(effects)
    assert (told.active_tasks, told.standby_tasks) == (ids("0:0,1"), ids("1:0"))
    assert (told.topology, told.process_id, told.rebalance_timeout_ms) == (None, None, -1)
    member.receive(told, answer(3), 20)
    assert member.phase is Phase.STABLE
    quiet = sent(member.wake(5_020))
    assert (quiet.member_epoch, quiet.active_tasks) == (3, None)


def test_a_task_beyond_what_its_topics_had_asks_for_them_anew() -> None:
    """The coordinator saw the topic grow, and this client did not yet."""
    member, joins = started()
    effects = member.receive(joins, answer(3, "0:2,3"), 10)
    assert member.owned == {TopicPartition("orders", 2)}
    (asked,) = (effect for effect in effects if isinstance(effect, NeedTopics))
    assert asked.names == {"orders", "users", "again"}
    grown = {**TOPICS, "orders": Topic("orders", b"orders".ljust(16), 4)}
    assert member.update_topics(grown, 20) == [Assigned((TopicPartition("orders", 3),))]


def test_it_gives_up_before_it_takes_and_a_copy_is_dropped_at_once() -> None:
    member, joins = started()
    member.receive(sent(member.receive(joins, answer(3, "0:0,1", "1:0"), 0)), answer(3), 0)
    effects = member.receive(sent(member.wake(5_000)), answer(3, "0:0", ""), 5_000)
    assert Revoke((TopicPartition("orders", 1),)) in effects
    assert not [effect for effect in effects if isinstance(effect, Send)]
    assert member.tasks.standby == frozenset() and len(member.tasks.active) == 2
    told = sent(member.revoked(5_100))
    assert (told.active_tasks, told.standby_tasks) == (ids("0:0"), ())
    assert member.owned == {TopicPartition("orders", 0), TopicPartition("users", 0)}


def test_after_a_lost_answer_it_says_all_of_it_again() -> None:
    member, joins = started()
    member.receive(sent(member.receive(joins, answer(3, "0:0"), 0)), answer(3), 0)
    lost = sent(member.wake(5_000))
    assert member.unanswered(lost, 6_000) == [CoordinatorMoved(), WakeAt(6_100)]
    assert sent(member.wake(6_100)).active_tasks == ids("0:0")


def test_a_fenced_one_loses_everything_and_joins_again() -> None:
    member, joins = started()
    told = sent(member.receive(joins, answer(3, "0:0"), 0))
    refused = StreamsGroupHeartbeatResponse(error_code=ErrorCode.FENCED_MEMBER_EPOCH)
    effects = member.receive(told, refused, 1)
    assert isinstance(effects[0], Lost) and member.owned == frozenset()
    again = sent(effects)
    assert (again.member_epoch, again.topology, again.active_tasks) == (0, TOPOLOGY, ())


def test_what_cannot_get_better_ends_it_and_what_can_does_not() -> None:
    member, joins = started()
    busy = StreamsGroupHeartbeatResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert member.receive(joins, busy, 0) == [WakeAt(100)]
    request = sent(member.wake(100))
    moved = StreamsGroupHeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)
    assert CoordinatorMoved() in member.receive(request, moved, 200)
    refused = StreamsGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST, error_message="no")
    (failed,) = member.receive(sent(member.wake(300)), refused, 400)
    assert failed == Failed(ErrorCode.INVALID_REQUEST, "no") and member.phase is Phase.DONE


def test_topics_that_grow_or_go_change_what_its_tasks_read() -> None:
    member, joins = started()
    member.receive(joins, answer(3, "0:0,1"), 0)
    grown = TOPICS | {"users": Topic("users", b"u" * 16, 2)}
    assert member.update_topics(grown, 1) == [Assigned((TopicPartition("users", 1),))]
    gone = {"orders": TOPICS["orders"]}
    assert member.update_topics(gone, 2) == [Lost((TopicPartition("users", 0), TopicPartition("users", 1)))]


def test_it_commits_as_itself_and_leaves_for_good() -> None:
    member, joins = started()
    member.receive(joins, answer(3, "0:0"), 0)
    (commit,) = member.commit({TopicPartition("orders", 0): 5}, 1)
    assert isinstance(commit, Send) and isinstance(commit.request, OffsetCommitRequest)
    assert (commit.request.member_id, commit.request.generation_id_or_member_epoch) == ("m", 3)
    effects = member.leave(2)
    assert Revoke((TopicPartition("orders", 0), TopicPartition("users", 0))) in effects
    leaves = sent(effects)
    assert leaves.member_epoch == -1
    assert member.receive(leaves, answer(-1), 3) == [Left()]
