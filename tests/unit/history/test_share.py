"""Share groups (KIP-932) out of their records in `__consumer_offsets`: what happened, and what there is."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from kgroup.admin.models import Assignment
from kgroup.admin.read.replayed import description
from kgroup.domain import TopicPartition
from kgroup.history.fold.events import Event, Kind
from kgroup.history.fold.explain import blame
from kgroup.history.fold.state import GroupState
from kgroup.history.replay import Story, replay
from kgroup.history.verify import differences, uncompared
from kgroup.protocol import group_records as g
from kgroup.protocol import share_records as r
from kgroup.protocol.record_kinds import RecordKey, RecordValue

from .incidents import story_of
from .logs import MemoryLog, batch

GROUP, TOPIC, ID = "queue", "jobs", bytes(range(16))
Record = tuple[bytes, bytes | None]


def rec(key: RecordKey, value: RecordValue | None) -> Record:
    return g.encode_key(key), g.encode_value(value)


def epoch(number: int, metadata_hash: int = 1) -> Record:
    value = r.ShareGroupMetadataValue(epoch=number, metadata_hash=metadata_hash)
    return rec(r.ShareGroupMetadataKey(group_id=GROUP), value)


def member(name: str, topics: tuple[str, ...] = (TOPIC,)) -> Record:
    value = r.ShareGroupMemberMetadataValue(
        client_id=name, client_host="/10.0.0.1", subscribed_topic_names=topics
    )
    return rec(r.ShareGroupMemberMetadataKey(group_id=GROUP, member_id=name), value)


def listed(*numbers: int) -> tuple[r.TopicPartitions, ...]:
    return (r.TopicPartitions(topic_id=ID, partitions=numbers),) if numbers else ()


def target(name: str, *numbers: int) -> Record:
    value = r.ShareGroupTargetAssignmentMemberValue(topic_partitions=listed(*numbers))
    return rec(r.ShareGroupTargetAssignmentMemberKey(group_id=GROUP, member_id=name), value)


def target_epoch(number: int) -> Record:
    value = r.ShareGroupTargetAssignmentMetadataValue(assignment_epoch=number)
    return rec(r.ShareGroupTargetAssignmentMetadataKey(group_id=GROUP), value)


def current(name: str, at: int, *numbers: int, before: int = 0) -> Record:
    value = r.ShareGroupCurrentMemberAssignmentValue(
        member_epoch=at, previous_member_epoch=before, assigned_partitions=listed(*numbers)
    )
    return rec(r.ShareGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id=name), value)


def kept(
    initializing: tuple[int, ...] = (), initialized: tuple[int, ...] = (), *, deleting: bool = False
) -> Record:
    def of(numbers: tuple[int, ...]) -> tuple[r.TopicPartitionsInfo, ...]:
        info = r.TopicPartitionsInfo(topic_id=ID, topic_name=TOPIC, partitions=numbers)
        return (info,) if numbers else ()

    value = r.ShareGroupStatePartitionMetadataValue(
        initializing_topics=of(initializing),
        initialized_topics=of(initialized),
        deleting_topics=(r.TopicInfo(topic_id=ID, topic_name=TOPIC),) if deleting else (),
    )
    return rec(r.ShareGroupStatePartitionMetadataKey(group_id=GROUP), value)


def gone(record: Record) -> Record:
    return record[0], None


def story(*batches: list[Record], start: int = 0) -> Story:
    """Batches in order, 10 ms apart."""
    data, base = b"", start
    for n, records in enumerate(batches):
        data += batch(base, records, 1000 + 10 * n)
        base += len(records)
    return replay([MemoryLog(data)])


def state_of(found: Story) -> GroupState:
    ((_, state),) = found.states
    return state


def texts(found: Story, *kinds: Kind) -> list[str]:
    return [event.detail for event in found.events if event.kind in kinds]


def only(found: Story, kind: Kind) -> Event:
    (event,) = (event for event in found.events if event.kind is kind)
    return event


BEGUN = [member("a"), epoch(1), target("a"), target_epoch(1), current("a", 1), kept((0, 1))]
READS = [epoch(2), target("a", 0, 1), target_epoch(2), current("a", 2, 0, 1, before=1)]
BOTH = [
    *(member("b"), epoch(3), target("a", 0, 1), target("b", 0, 1)),
    *(target_epoch(3), current("b", 3, 0, 1)),
]


def test_two_members_read_the_same_partitions_and_no_step_is_a_suspicion() -> None:
    found = story(BEGUN, [kept((), (0, 1))], READS, BOTH, [current("a", 3, 0, 1, before=2)])
    assert {event.protocol for event in found.events} == {"share"}
    assert all(event.proven and not event.suspicious for event in found.events)
    assert texts(found, Kind.MEMBER_RECONCILED) == [
        "a reads - at epoch 1",
        "a reads jobs:0-1 at epoch 2",
        "b reads jobs:0-1 at epoch 3",
        "a reads jobs:0-1 at epoch 3",
    ]
    assert texts(found, Kind.TARGET_COMPUTED)[-1] == "target of epoch 3: a jobs:0-1; b jobs:0-1"
    last = found.events[-1]
    assert (last.kind, last.cause) == (Kind.REBALANCE_COMPLETED, "b joined")
    assert last.detail == "all 2 members reached epoch 3, 10 ms after it began"
    assert [b.event for b in blame(found.events, GROUP)] == [last]
    view = state_of(found).view()
    assert (view.state, view.epoch, view.assignment_epoch) == ("Stable", 3, 3)
    assert {m.client_id: len(m.assigned) for m in view.members.values()} == {"a": 2, "b": 2}


def test_what_is_initialized_and_read_by_no_member_raises_the_epoch() -> None:
    found = story(BEGUN, [kept((), (0, 1))], READS)
    assert texts(found, Kind.DELIVERY_STATE_INITIALIZED) == ["members may read jobs:0-1"]
    why = [e.cause for e in found.events if e.kind is Kind.REBALANCE_STARTED]
    assert why == ["a joined", "the delivery state of jobs:0-1 exists, but no member was assigned it"]


def test_an_epoch_that_nothing_in_the_records_explains_is_not_called_proven() -> None:
    found = story(BEGUN, [kept((), (0, 1))], READS, [epoch(3)])
    assert not [e for e in found.events if e.kind is Kind.REBALANCE_STARTED][-1].proven
    changed = story(BEGUN, [kept((), (0, 1))], READS, [epoch(3, metadata_hash=2)])
    assert only(changed, Kind.TOPICS_CHANGED).proven


def test_start_offsets_that_an_admin_sets_are_told_by_the_state_that_begins_again() -> None:
    found = story(BEGUN, [kept((), (0, 1))], [kept((0,), (0, 1))], [kept((), (0, 1))])
    first, again = (e for e in found.events if e.kind is Kind.DELIVERY_STATE_INITIALIZING)
    assert first.cause is None and first.partitions == (TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1))
    assert again.detail == "the delivery state begins again of jobs:0" and again.cause is not None
    assert "an admin set start offsets" in again.cause
    assert len(texts(found, Kind.DELIVERY_STATE_INITIALIZED)) == 1


def test_a_topic_whose_state_is_deleted_and_a_group_that_is() -> None:
    left = [gone(current("a", 2)), gone(target("a")), gone(member("a")), epoch(3), target_epoch(3)]
    end = [gone(target_epoch(3)), gone(kept()), gone(epoch(3))]
    found = story(BEGUN, [kept((), (0, 1))], READS, left, [kept(deleting=True)], [kept()], end)
    assert only(found, Kind.GROUP_EMPTIED).cause == "a left or expired"
    deleting = only(found, Kind.DELIVERY_STATE_DELETING)
    assert deleting.detail == "the delivery state of jobs is being deleted" and len(deleting.partitions) == 2
    last = found.events[-1]
    assert (last.kind, last.proven) == (Kind.GROUP_DELETED, True) and "an admin" in str(last.cause)
    assert list(found.states) == []


def test_names_that_a_later_record_tells_name_what_members_had_before() -> None:
    """Types 13 and 14 have ids; only type 15 has the names."""
    found = story([member("a"), epoch(1), current("a", 1, 0)], [kept((), (0,))])
    (one,) = state_of(found).members.values()
    assert one.assigned == {TopicPartition(TOPIC, 0)}


def test_a_step_back_in_an_epoch_is_suspicious() -> None:
    found = story(BEGUN, READS, [epoch(1)], [current("a", 1, 0)])
    assert [e.suspicious for e in found.events if e.kind is Kind.EPOCH_REGRESSED] == [True, True]


def test_behind_a_gap_nothing_is_said_of_how_it_began() -> None:
    found = story(READS, start=7)
    (event,) = (e for e in found.events if e.kind is not Kind.LOG_COMPACTED)
    assert (event.kind, event.proven) == (Kind.GROUP_CREATED, False)
    assert event.detail == "first seen here, with 1 member: earlier records are gone"


def test_a_share_group_takes_the_place_of_an_empty_classic_one() -> None:
    classic = g.GroupMetadataKey(group=GROUP)
    was = rec(classic, g.GroupMetadataValue(protocol_type="consumer", generation=4))
    found = story([was], [(was[0], None), *BEGUN])
    upgraded = only(found, Kind.UPGRADED)
    assert upgraded.detail == "classic → share: the group was empty"
    assert state_of(found).view().protocol_type == "share"


def said_of(state: GroupState, **changed: Any) -> dict[str, Any]:
    """What `kgroup describe -o json` says of the same group."""
    return {**asdict(description(state, 0)), "errors": [], "offsets": [], **changed}


def test_the_state_at_a_moment_is_compared_member_by_member() -> None:
    state = state_of(story(BEGUN, [kept((), (0, 1))], READS, BOTH))
    said = said_of(state)
    assert (said["type"], said["state"], said["group_epoch"]) == ("share", "Stable", 3)
    reads: Assignment = said["members"][1]["assignment"]
    assert [(e["topic"], e["partitions"]) for e in reads] == [(TOPIC, (0, 1))]  # type: ignore[index]
    assert list(differences(state, said)) == []
    (left_out,) = uncompared(state, said, starts_read=False)
    assert "__share_group_state" in left_out and uncompared(state, said) == []
    row = {"topic": TOPIC, "partition": 0, "committed_offset": 7, "leader_epoch": 0, "metadata": None}
    told, here = {**said, "offsets": [row]}, TopicPartition(TOPIC, 0)
    assert list(differences(state, told, starts={here: 7, TopicPartition(TOPIC, 1): -1})) == []
    assert [each.text for each in differences(state, told, starts={here: 6})] == [
        "offset of jobs-0: replayed 6, the cluster reports 7"
    ]
    assert [each.text for each in differences(state, told, starts={})] == [
        "offset of jobs-0: replayed None, the cluster reports 7"
    ]
    other = [{**said["members"][0], "member_epoch": 9}, said["members"][1]]
    assert [each.text for each in differences(state, {**said, "members": other})] == [
        "member a, epoch: replayed 2, the cluster reports 9"
    ]
    assert [each.text for each in differences(state, {**said, "group_epoch": 4, "state": "Empty"})] == [
        "state: replayed Stable, the cluster reports Empty",
        "group_epoch: replayed 3, the cluster reports 4",
    ]
    assert [each.text for each in differences(state, {**said, "members": said["members"][:1]})] == [
        "member b: in the log only"
    ]


@pytest.mark.parametrize("topics", [{ID: TOPIC}, {}], ids=["there", "gone"])
def test_partitions_of_a_topic_that_is_gone_are_left_out_of_what_is_compared(
    topics: dict[bytes, str],
) -> None:
    state = state_of(story(BEGUN, [kept((), (0, 1))], READS))
    (one,) = state.members_by(topics).values()
    assert len(one.assigned) == (2 if topics else 0)


def test_kafka_says_of_a_queue_what_the_script_did() -> None:
    """Kafka 4.4.0, `tests/data/incidents/share-group`."""
    events = story_of("share-group").events
    joined = [e.detail.split(" as client ")[1] for e in events if e.kind is Kind.MEMBER_JOINED]
    assert joined == [f"{name} from 127.0.0.1" for name in ("first", "second", "third")]
    again = [e for e in events if e.kind is Kind.DELIVERY_STATE_INITIALIZING][1]
    assert "an admin" in str(again.cause)
    assert not [e for e in events if e.suspicious or e.kind is Kind.RECORD_UNREADABLE]
    assert {e.kind for e in events if not e.proven} == {Kind.MEMBER_LEFT_OR_EXPIRED, Kind.GROUP_EMPTIED}
    assert events[-1].kind is Kind.GROUP_DELETED
