"""What share groups did with the records they read, out of `__share_group_state` (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgroup.domain import SHARE_STATE_TOPIC, Topic, TopicImage, TopicPartition
from kgroup.history.deliveries import DeliveryReader, add_deliveries
from kgroup.history.fold.events import Delivered, Event, Kind
from kgroup.history.fold.explain import blame
from kgroup.history.raw import raw_rows
from kgroup.history.replay import At, replay
from kgroup.history.sources.logs import segments_of, state_logs_of, topic_names_near
from kgroup.protocol import share_records as r_group
from kgroup.protocol import share_state_records as r
from kgroup.protocol.group_records import encode_key, encode_value
from kgroup.protocol.messages import write_share_group_state as writing
from kgroup.share.coordinator import Record, ShareCoordinator, ShareStateConfig, StateKey

from .incidents import INCIDENTS, log_of
from .logs import MemoryLog, batch, commit

GROUP, TOPIC, ID = "queue", "jobs", bytes(range(16))
AT = TopicPartition(TOPIC, 0)
KEY = StateKey(GROUP, ID, 0)
AVAILABLE, ACKNOWLEDGED, ARCHIVING, ARCHIVED = r.DELIVERY_STATES
Bytes = tuple[bytes, bytes | None]


def encoded(record: Record) -> Bytes:
    key = record.key.TYPE.to_bytes(2, "big") + record.key.encode(0)
    return key, encode_value(record.value)


def ended(first: int, last: int, state: int, deliveries: int) -> r.StateBatch:
    return r.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=deliveries)


def snapshot(
    start: int, *batches: r.StateBatch, epoch: int = 0, state_epoch: int = 1, leader: int = 0
) -> Bytes:
    value = r.ShareSnapshotValue(
        snapshot_epoch=epoch,
        state_epoch=state_epoch,
        leader_epoch=leader,
        start_offset=start,
        create_timestamp=1,
        write_timestamp=1,
        state_batches=batches,
    )
    return encoded(Record(KEY.snapshot, value))


def update(start: int, *batches: r.StateBatch, leader: int = 0) -> Bytes:
    value = r.ShareUpdateValue(
        snapshot_epoch=0, leader_epoch=leader, start_offset=start, state_batches=batches
    )
    return encoded(Record(KEY.update, value))


GONE: Bytes = (snapshot(0)[0], None)


def log(records: Iterable[Bytes], start: int = 0) -> MemoryLog:
    return MemoryLog(b"".join(batch(start + n, [each], 1000 + 10 * n) for n, each in enumerate(records)))


def events(
    *records: Bytes, start: int = 0, runs: bool = True, names: dict[bytes, str] | None = None
) -> list[Event]:
    known = {ID: TOPIC} if names is None else names
    return DeliveryReader(log(records, start), known, runs=runs).advance()


def told(found: Iterable[Event]) -> list[tuple[str, str]]:
    return [(event.kind.value, event.detail.removeprefix(f"{AT}: ")) for event in found]


def test_a_run_of_acknowledgements_is_one_event_and_each_its_own_on_demand() -> None:
    records = [snapshot(0)]
    records += [update(n, ended(n, n, ACKNOWLEDGED, 1)) for n in range(5)]
    made, *run = events(*records)
    assert made.kind is Kind.DELIVERY_STATE_CREATED and made.proven and made.log_topic == SHARE_STATE_TOPIC
    assert told(run) == [
        ("records-acknowledged", "5 records acknowledged after 1 delivery: 0-4"),
        ("start-offset-moved", "start offset 0 → 4 in 4 moves"),
    ]
    assert (run[0].offset, run[0].end_offset, run[0].count) == (1, 5, 5)
    assert run[0].records == (Delivered(TOPIC, 0, 0, 4, 1),) and run[0].partitions == (AT,)
    each = [event for event in events(*records, runs=False) if event.kind is Kind.RECORDS_ACKNOWLEDGED]
    assert [event.records[0].first_offset for event in each] == [0, 1, 2, 3, 4]


def test_a_record_that_is_given_up_is_told_with_its_deliveries_and_what_led_to_it() -> None:
    found = events(
        snapshot(0),
        update(0, ended(0, 1, AVAILABLE, 1)),
        update(0, ended(0, 0, AVAILABLE, 2), ended(1, 1, ACKNOWLEDGED, 2)),
        update(0, ended(0, 0, ARCHIVED, 3)),
    )
    assert told(found)[1:] == [
        ("records-released", "2 records released after 1 delivery: 0-1"),
        ("records-acknowledged", "1 record acknowledged after 2 deliveries: 1"),
        ("records-released", "1 record released after 2 deliveries: 0"),
        ("records-archived", "1 record given up after 3 deliveries: 0"),
    ]
    last = found[-1]
    assert last.records == (Delivered(TOPIC, 0, 0, 0, 3),)
    assert last.cause is not None and last.cause.endswith("the records do not say")
    (given_up,) = (b for b in blame(found, GROUP) if b.about == "given up")
    assert given_up.event == last and [e.offset for e in given_up.evidence] == [1, 2]


def test_after_one_delivery_it_can_only_have_been_rejected() -> None:
    last = events(snapshot(0), update(0, ended(3, 4, ARCHIVED, 1)))[-1]
    assert last.cause == "rejected by a member" and last.count == 2
    last = events(snapshot(0), update(0, ended(3, 4, ARCHIVING, 5)))[-1]
    assert told([last]) == [
        ("records-archiving", "2 records on the way to the dead letters after 5 deliveries: 3-4")
    ]


def test_a_snapshot_that_says_what_is_known_tells_nothing_and_one_that_says_more_does() -> None:
    known = ended(0, 4, ACKNOWLEDGED, 1)
    same = events(snapshot(0), update(0, known), snapshot(0, known, epoch=1))
    assert told(same)[1:] == [("records-acknowledged", "5 records acknowledged after 1 delivery: 0-4")]
    more = events(snapshot(0), update(0, known), snapshot(0, known, ended(5, 5, ARCHIVED, 2), epoch=1))
    assert told(more)[-1] == ("records-archived", "1 record given up after 2 deliveries: 5")


def test_a_start_offset_that_an_admin_sets_is_no_move() -> None:
    found = events(snapshot(0), update(0, ended(0, 9, ACKNOWLEDGED, 1)), snapshot(4, epoch=1, state_epoch=2))
    last = found[-1]
    assert told([last]) == [("start-offset-set", "start offset 0 → 4, deliveries begin again")]
    assert "an admin" in str(last.cause) and last.proven
    assert [b.about for b in blame(found, GROUP)] == ["rewind"]


def test_a_start_offset_that_passes_what_never_ended_is_told_and_not_proven() -> None:
    found = events(snapshot(0), update(0, ended(0, 1, ACKNOWLEDGED, 1), ended(2, 3, AVAILABLE, 1)), update(6))
    skipped = next(event for event in found if event.kind is Kind.RECORDS_SKIPPED)
    assert skipped.records == (Delivered(TOPIC, 0, 2, 5, 0),) and not skipped.proven
    assert "4 offsets without an end on record: 2-5" in skipped.detail
    begins = events(snapshot(-1), update(7, ended(7, 7, ACKNOWLEDGED, 1)))
    assert told(begins)[1:] == [
        ("records-acknowledged", "1 record acknowledged after 1 delivery: 7"),
        ("start-offset-moved", "start offset not set → 7"),
    ]


def test_a_new_leader_and_a_deletion() -> None:
    found = events(snapshot(3), update(3, leader=2), GONE, GONE)
    assert told(found) == [
        ("delivery-state-created", "reading begins at 3"),
        ("partition-leader-changed", "leader epoch 0 → 2: what members had acquired is available again"),
        ("delivery-state-deleted", "the delivery state is deleted, with start offset 3"),
    ]


def test_behind_a_gap_it_is_not_said_when_something_ended() -> None:
    first, *rest = events(update(4, ended(5, 5, ARCHIVED, 5)), start=9)
    assert (first.kind, first.proven) == (Kind.DELIVERY_STATE_CREATED, False)
    assert "first seen here, with start offset 4" in first.detail
    assert [(e.kind, e.proven) for e in rest] == [(Kind.RECORDS_ARCHIVED, False)]
    reader = DeliveryReader(log([update(4)], 9), {})
    reader.advance()
    assert (reader.coverage.first_offset, reader.coverage.from_the_start) == (9, False)


def test_a_gap_inside_costs_certainty_and_is_counted() -> None:
    data = log([snapshot(0)]).data + log([update(3, ended(3, 3, ACKNOWLEDGED, 1))], 5).data
    reader = DeliveryReader(MemoryLog(data), {ID: TOPIC})
    found = reader.advance()
    assert (reader.coverage.missing, reader.coverage.complete_from) == (4, 5)
    assert {e.proven for e in found if e.kind is Kind.RECORDS_SKIPPED} == {False}
    assert {e.proven for e in found if e.kind is Kind.RECORDS_ACKNOWLEDGED} == {True}, "an update has its own"
    known = [snapshot(0), snapshot(0, ended(0, 0, ACKNOWLEDGED, 1), ended(1, 1, ARCHIVED, 2), epoch=5)]
    late = DeliveryReader(MemoryLog(log(known[:1]).data + log(known[1:], 5).data), {ID: TOPIC}).advance()
    assert [e.proven for e in late if e.offset == 5] == [False, False]


def test_what_does_not_decode_is_named_and_does_not_end_the_story() -> None:
    key = snapshot(0)[0]
    bad = [(b"\0\7\0\5queue", b"\0\0"), (key, b"\0\7"), (b"\0", b""), (key, b"\0\0\1")]
    found = events(snapshot(0), *bad, update(0, ended(0, 0, ARCHIVED, 1)))
    assert [e.kind for e in found].count(Kind.RECORD_UNREADABLE) == len(bad)
    assert found[-1].kind is Kind.RECORDS_ARCHIVED


def test_a_topic_without_a_name_is_shown_by_its_id() -> None:
    (found,) = events(snapshot(0), names={})
    assert found.partitions[0].topic == "AAECAwQFBgcICQoLDA0ODw"


def test_groups_that_are_not_meant_are_passed_over() -> None:
    reader = DeliveryReader(log([snapshot(0)]), {}, names=["another"])
    assert reader.advance() == [] and list(reader.states) == []
    assert reader.coverage.records == 1


FIRST = r.ShareSnapshotValue(
    snapshot_epoch=0,
    state_epoch=1,
    leader_epoch=0,
    start_offset=0,
    delivery_complete_count=0,
    create_timestamp=1,
    write_timestamp=1,
)
WRITES = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 4), st.sampled_from([AVAILABLE, ACKNOWLEDGED, ARCHIVED])),
    max_size=30,
)


@given(WRITES, st.integers(1, 3), st.integers(60, 4000))
def test_the_state_is_the_share_coordinators_and_each_delivery_is_told_once(
    writes: list[tuple[int, int, int]], per_snapshot: int, chunk: int
) -> None:
    """Whatever is written, when snapshots come, and wherever the log is cut; the machine is Kafka's equal."""
    image = TopicImage.of([Topic(TOPIC, ID, 1)])
    machine = ShareCoordinator(ShareStateConfig(updates_per_snapshot=per_snapshot), image)
    records: list[Record] = [Record(KEY.snapshot, FIRST)]
    machine.replay(records[0], 0)
    counts: dict[int, int] = {}
    final: dict[int, int] = {}
    for first, length, state in writes:
        offsets = [o for o in range(first, first + length + 1) if final.get(o, AVAILABLE) == AVAILABLE]
        batches = []
        for offset in offsets:
            counts[offset] = counts.get(offset, 0) + 1
            final[offset] = state
            batches.append(
                writing.StateBatch(
                    first_offset=offset,
                    last_offset=offset,
                    delivery_state=state,
                    delivery_count=counts[offset],
                )
            )
        asked = writing.PartitionState(
            partition=0, state_epoch=1, leader_epoch=0, start_offset=0, state_batches=tuple(batches)
        )
        record, _ = machine.write(KEY, asked, 1)
        assert record is not None
        machine.replay(record, len(records))
        records.append(record)
    whole = log(map(encoded, records))
    reader = DeliveryReader(MemoryLog(whole.data, chunk), {ID: TOPIC})
    found = reader.advance()
    ((_, _, stored),) = reader.states
    assert stored.value.state_batches == machine.states[KEY].state_batches
    given_up = [e for e in found if e.kind is Kind.RECORDS_ARCHIVED]
    assert {
        offset: piece.deliveries
        for e in given_up
        for piece in e.records
        for offset in range(piece.first_offset, piece.last_offset + 1)
    } == {offset: counts[offset] for offset, state in final.items() if state == ARCHIVED}
    done = sum(e.count for e in found if e.kind is Kind.RECORDS_ACKNOWLEDGED)
    assert done == sum(state == ACKNOWLEDGED for state in final.values())
    assert not [e for e in found if not e.proven]


FOLDER = INCIDENTS / "share-group"


def whole_story(at: At | None = None) -> list[Event]:
    names = topic_names_near([FOLDER])
    story = replay([log_of("share-group")], topic_names=names, at=at)
    add_deliveries(story, state_logs_of(segments_of([FOLDER])), names, at=at)
    assert story.deliveries is not None
    return story.events


def test_kafka_says_of_a_queue_which_records_were_given_up_and_after_how_many_deliveries() -> None:
    """Kafka 4.4.0: 5 was rejected, 7 was released until the limit of 3."""
    found = whole_story()
    assert [e.timestamp_ms for e in found] == sorted(e.timestamp_ms for e in found)
    given_up = [e.records for e in found if e.kind is Kind.RECORDS_ARCHIVED]
    assert given_up == [(Delivered(TOPIC, 0, 5, 5, 1),), (Delivered(TOPIC, 0, 7, 7, 3),)]
    done = [e.count for e in found if e.kind is Kind.RECORDS_ACKNOWLEDGED]
    assert done == [5, 23, 30]
    assert not [e for e in found if e.log_topic == SHARE_STATE_TOPIC and not e.proven]
    abouts = {b.about: b.event.kind for b in blame(found, "queue")}
    assert abouts["rewind"] is Kind.START_OFFSET_SET and abouts["given up"] is Kind.RECORDS_ARCHIVED


def test_a_deletion_within_one_millisecond_ends_with_the_group() -> None:
    """The coordinator deletes the group once the share coordinator has deleted its state."""
    epoch = r_group.ShareGroupMetadataValue(epoch=1, metadata_hash=1)
    key = encode_key(r_group.ShareGroupMetadataKey(group_id=GROUP))
    story = replay([log([(key, encode_value(epoch)), (key, None)])], topic_names={ID: TOPIC})
    add_deliveries(story, [log([snapshot(0), GONE])], {ID: TOPIC})
    assert [(e.timestamp_ms, e.kind) for e in story.events[-2:]] == [
        (1010, Kind.DELIVERY_STATE_DELETED),
        (1010, Kind.GROUP_DELETED),
    ]


@pytest.mark.parametrize("offset", [10, 25, 37])
def test_a_moment_is_the_same_for_both_topics(offset: int) -> None:
    """An offset is one of `__consumer_offsets`: of the other topic it is what was written by then."""
    upto = whole_story(At(offset=offset))
    members = [e for e in upto if e.log_topic != SHARE_STATE_TOPIC]
    last_ms = max(e.timestamp_ms for e in members)
    assert all(e.timestamp_ms <= last_ms for e in upto)
    later = [e for e in whole_story() if e.log_topic == SHARE_STATE_TOPIC and e.timestamp_ms > last_ms]
    assert (offset == 37) == (not [e for e in later if e.kind is not Kind.DELIVERY_STATE_DELETED])


def test_a_moment_that_is_an_offset_is_that_of_a_partition_with_share_groups() -> None:
    """Offsets of other partitions are later or earlier: they say nothing of when this one was."""
    key = encode_key(r_group.ShareGroupMetadataKey(group_id=GROUP))
    value = encode_value(r_group.ShareGroupMetadataValue(epoch=1, metadata_hash=1))
    ours = MemoryLog(batch(0, [(key, value)], 1015))
    others = MemoryLog(batch(0, [commit("t", 0, 5)], 9999), partition=1)
    story = replay([ours, others], topic_names={ID: TOPIC}, at=At(offset=0))
    states = [log([snapshot(0), update(0, ended(0, 0, ACKNOWLEDGED, 1)), update(7)])]
    add_deliveries(story, states, {ID: TOPIC}, at=At(offset=0))
    found = [e.kind for e in story.events if e.log_topic == SHARE_STATE_TOPIC]
    assert found == [Kind.DELIVERY_STATE_CREATED, Kind.RECORDS_ACKNOWLEDGED]


def test_after_a_gap_a_first_record_proves_no_creation() -> None:
    whole = b"".join(batch(n, [snapshot(0)], 1000) for n in (0,))
    other = encoded(
        Record(
            StateKey("another", ID, 0).snapshot, r.decode_value(r.decode_key(snapshot(0)[0]), snapshot(0)[1])
        )
    )
    later = batch(9, [other], 2000)
    first, second = DeliveryReader(MemoryLog(whole + later), {ID: TOPIC}).advance()
    assert (first.kind, first.proven) == (Kind.DELIVERY_STATE_CREATED, True)
    assert (second.group, second.proven) == ("another", False)


def test_each_record_is_shown_raw(tmp_path: Path) -> None:
    (state,) = state_logs_of(segments_of([FOLDER]))
    rows = list(raw_rows(state, topic_names=topic_names_near([FOLDER]), topic=SHARE_STATE_TOPIC))
    assert [row["type_name"] for row in rows] == [
        *("ShareSnapshot", *["ShareUpdate"] * 6, "ShareSnapshot", "ShareUpdate", "ShareSnapshot")
    ]
    assert rows[1]["value"]["state_batches"] == [
        {"first_offset": 0, "last_offset": 4, "delivery_state": 2, "delivery_count": 1}
    ]
    assert rows[-1]["value"] is None and rows[0]["key"]["topic"] == TOPIC
