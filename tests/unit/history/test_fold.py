"""The fold: same story for every cut of the input, same end state whatever compaction removed."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgroup.domain import TopicPartition, partitions_text
from kgroup.history.decode.decoder import Decoder
from kgroup.history.fold.events import Event, Kind, duration_text
from kgroup.history.fold.folding import Fold
from kgroup.history.fold.marks import Mark
from kgroup.history.replay import At, Story, chosen, replay
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import LogRecord, batches_in, encode_batch, end_marker_record, rebuild_batch
from kgroup.protocol.subscription import Assignment, Subscription

from .incidents import NAMES, log_of, story_of, text_of
from .logs import GROUP, MemoryLog, batch, commit, items, moved

PLAIN = [name for name in NAMES if name != "transactions"]
DATA = {name: log_of(name).files[0].read_bytes() for name in NAMES}


@given(st.sampled_from(NAMES), st.integers(70, 6000))
def test_the_story_does_not_depend_on_where_the_input_is_cut(name: str, chunk: int) -> None:
    assert text_of(replay([MemoryLog(DATA[name], chunk)])) == text_of(replay([MemoryLog(DATA[name])]))


@given(st.sampled_from(NAMES), st.integers(0, 40))
def test_a_fold_goes_on_from_a_snapshot(name: str, cut: int) -> None:
    """What the pipeline does from one day to the next; the decoder begins anew at a batch's start."""
    whole = Fold(0)
    expected = [event for item in items(DATA[name]) for event in whole.apply(item)] + whole.finish()
    fold = Fold(0)
    events: list[Event] = []
    for n, item in enumerate(items(DATA[name])):
        events += fold.apply(item)
        if n == cut:
            moved(fold)
    assert events + fold.finish() == expected


def lingering(data: bytes, most: int) -> bytes:
    """Return the log as a coordinator writes it that lingers: up to `most` writes in a batch."""
    batches, found = list(batches_in(data)), list[bytes]()
    waiting: list[LogRecord] = []
    for at, read in enumerate(batches):
        waiting += read.records
        following = batches[at + 1] if at + 1 < len(batches) else None
        # Within a millisecond nothing shows where one write ends.
        if (
            following is None
            or len(waiting) >= most
            or following.records[0].timestamp_ms == waiting[-1].timestamp_ms
        ):
            found.append(encode_batch(waiting, base_offset=read.last_offset + 1 - len(waiting)))
            waiting = []
    return b"".join(found)


@pytest.mark.parametrize("name", PLAIN)
def test_the_story_does_not_depend_on_which_writes_share_a_batch(name: str) -> None:
    apart = replay([MemoryLog(DATA[name])])
    together = replay([MemoryLog(lingering(DATA[name], 50))])
    assert text_of(together) == text_of(apart)


def end_state(story: Story) -> dict[str, Any]:
    return {
        state.group_id: (state.view(), {p: c.offset for p, c in state.offsets.items()})
        for _, state in story.states
    }


@st.composite
def compacted(draw: st.DrawFn) -> tuple[str, bytes]:
    """A recorded log, and what a log cleaner may have left of it: it keeps the newest record of each key."""
    name = draw(st.sampled_from(PLAIN))
    records = [(b, rec) for b in batches_in(DATA[name]) for rec in b.records]
    newest = {rec.key: rec.offset for _, rec in records}
    older = [rec.offset for _, rec in records if newest[rec.key] != rec.offset]
    gone = set(draw(st.lists(st.sampled_from(older), unique=True))) if older else set()
    for _, rec in records:
        earlier = {x.offset for _, x in records if x.key == rec.key and x.offset < rec.offset}
        if rec.value is None and newest[rec.key] == rec.offset and earlier <= gone and draw(st.booleans()):
            gone.add(rec.offset)
    out = []
    for b in batches_in(DATA[name]):
        kept = [rec for rec in b.records if rec.offset not in gone]
        if kept:
            out.append(rebuild_batch(b, kept))
    return name, b"".join(out)


@given(compacted())
def test_replay_ends_in_the_same_state_whatever_compaction_removed(case: tuple[str, bytes]) -> None:
    name, data = case
    story = replay([MemoryLog(data)])
    assert end_state(story) == end_state(replay([MemoryLog(DATA[name])]))


@given(compacted())
def test_a_compacted_log_proves_no_cause_that_the_whole_log_does_not(case: tuple[str, bytes]) -> None:
    """`blame` named members that had been there all the time as those that had set the rebalance off.

    Whether a rebalance was complete is seen only where nothing is missing any more.
    """
    name, data = case
    whole = set(map(caused, replay([MemoryLog(DATA[name])]).events))
    story = replay([MemoryLog(data)])
    since = story.coverage[0].complete_from
    told = {
        caused(event)
        for event in story.events
        if event.proven and (event.kind is not Kind.REBALANCE_COMPLETED or event.offset >= since)
    }
    assert told - whole <= {None}


def caused(event: Event) -> object:
    """A beginning, and what it followed from; members may have lost their names."""
    if event.kind is Kind.GROUP_CREATED:
        return event.group, event.kind, event.epoch
    if event.kind in (Kind.REBALANCE_STARTED, Kind.REBALANCE_COMPLETED):
        causes = (event.cause or "").count("; then ")
        return event.group, event.kind, event.previous_epoch, event.epoch, causes
    return None


@given(compacted())
def test_a_compacted_log_says_so_and_claims_nothing_suspicious(case: tuple[str, bytes]) -> None:
    """A tombstone may hide the log's own beginning: then it begins later than offset 0."""
    name, data = case
    story = replay([MemoryLog(data)])
    whole = replay([MemoryLog(DATA[name])])
    (covered,) = story.coverage
    if covered.last_offset < whole.coverage[0].last_offset and covered.from_the_start:
        return  # only the end is gone, which no reader of files can see
    if len(data) < len(DATA[name]) and covered.records < whole.coverage[0].records:
        assert not covered.from_the_start
    assert not [event for event in story.events if event.suspicious]


@pytest.mark.parametrize("name", NAMES)
def test_the_state_at_an_offset_is_that_of_the_log_cut_there(name: str) -> None:
    ends = [b.last_offset for b in batches_in(DATA[name])]
    starts = [b.position for b in batches_in(DATA[name])][1:]
    for end, start in zip(ends, [*starts, len(DATA[name])], strict=True):
        at = replay([MemoryLog(DATA[name])], at=At(offset=end))
        assert end_state(at) == end_state(replay([MemoryLog(DATA[name][:start])]))


def classic(
    generation: int, members: dict[str, tuple[int, ...]], topic: str = "t", since_ms: int = -1
) -> tuple[bytes, bytes | None]:
    made = tuple(
        r.MemberMetadata(
            member_id=name,
            client_id="app",
            client_host="/10.0.0.1",
            rebalance_timeout=60_000,
            session_timeout=10_000,
            subscription=Subscription((topic,)).encode(),
            assignment=Assignment(tuple(TopicPartition(topic, p) for p in parts)).encode(),
        )
        for name, parts in members.items()
    )
    value = r.GroupMetadataValue(
        protocol_type="consumer",
        generation=generation,
        protocol="range",
        leader=next(iter(members), None),
        current_state_timestamp=since_ms,
        members=made,
    )
    return r.encode_key(r.GroupMetadataKey(group=GROUP)), r.encode_value(value)


def told(*batches: bytes) -> list[Event]:
    return replay([MemoryLog(b"".join(batches))]).events


def test_a_rewind_under_an_owner_is_suspicious_and_nobody_is_accused() -> None:
    """AE-09 seen from the log: a commit has no member, so it is no more than suspicious."""
    events = told(
        batch(0, [classic(1, {"m1": (0, 1)})]),
        batch(1, [commit("t", 0, 100, topic_id=b"t" * 16)], 2000),
        batch(2, [commit("t", 0, 40, topic_id=b"t" * 16)], 3000),
    )
    (rewound,) = [e for e in events if e.kind is Kind.REWOUND]
    assert rewound.suspicious and "suspicious" in rewound.detail and not rewound.proven
    assert rewound.member_id == "m1" and "100 to 40" in rewound.detail


MARK = Mark("1f0c9a2e", "alice@ops-1", "INC-4411").text


def test_a_rewind_by_kgroup_names_who_and_which_plan() -> None:
    """On the recorded reset by hand, with the metadata that `kgroup reset-offsets` would have written."""
    name = "reset-by-hand"
    story = replay([MemoryLog(marked(DATA[name], range(7, 11)))])
    rewinds = [e for e in story.events if e.kind is Kind.REWOUND]
    assert [e.offset for e in rewinds] == [7, 8, 9, 10]
    told = {(e.cause, e.proven, e.suspicious) for e in rewinds}
    assert told == {("kgroup, by alice@ops-1, plan 1f0c9a2e: INC-4411", True, False)}
    (outside,) = [e for e in story.events if e.kind is Kind.COMMITTED_OUTSIDE]
    assert outside.cause == rewinds[0].cause


def marked(data: bytes, offsets: range) -> bytes:
    """The log with `MARK` as the metadata of the commits at these offsets."""
    out = []
    for b in batches_in(data):
        records = list(b.records)
        for n, rec in enumerate(records):
            if rec.offset in offsets:
                committed: Any = r.decode_value(r.decode_key(rec.key or b""), rec.value)  # type: ignore[arg-type]
                records[n] = rec._replace(value=r.encode_value(replace(committed, metadata=MARK)))
        out.append(rebuild_batch(b, records))
    return b"".join(out)


def test_a_mark_on_a_rewind_under_an_owner_does_not_clear_it() -> None:
    """A broker refuses an admin's commit while there are members, so somebody copied the metadata."""
    events = told(
        batch(0, [classic(1, {"m1": (0, 1)})]),
        batch(1, [commit("t", 0, 100)], 2000),
        batch(2, [commit("t", 0, 40, metadata=MARK)], 3000),
    )
    (rewound,) = [e for e in events if e.kind is Kind.REWOUND]
    assert rewound.suspicious and "names kgroup, by alice@ops-1, plan 1f0c9a2e" in (rewound.cause or "")


def test_each_of_several_resets_in_a_row_is_named() -> None:
    """Also where the decoder gathered them, and the commits behind them, into one run."""
    second = Mark("2222aaaa", "bob@ops-2", None).text
    log = (
        batch(0, [commit("t", 0, 100)]),
        batch(1, [classic(1, {"m1": (0,)})], 2000),
        batch(2, [classic(2, {})], 3000),
        batch(3, [commit("t", 0, 50, metadata=MARK)], 4000),
        batch(4, [commit("t", 0, 40, metadata=second)], 5000),
        batch(5, [commit("t", 0, 41)], 6000),
    )
    causes = [e.cause or "" for e in told(*log) if e.kind is Kind.REWOUND]
    assert ["1f0c9a2e" in cause for cause in causes] == [True, False]
    assert ["2222aaaa" in cause for cause in causes] == [False, True]


def test_a_rewind_by_a_transaction_is_told_with_its_mark() -> None:
    data = batch(0, [commit("t", 0, 90)])
    data += transaction(1, 1, [commit("t", 0, 50, metadata=MARK)], 1) + marker(2, 1, True)
    (rewound,) = [e for e in told(data) if e.kind is Kind.REWOUND]
    assert "by a transaction" in rewound.detail and "plan 1f0c9a2e" in (rewound.cause or "")


def test_a_commit_for_a_partition_without_an_owner_is_suspicious() -> None:
    events = told(
        batch(0, [classic(1, {"m1": (0,)})]), batch(1, [commit("t", 0, 5), commit("t", 1, 5)], 2000)
    )
    assert [(e.kind, e.suspicious) for e in events[-2:]] == [
        (Kind.COMMITTED, False),
        (Kind.COMMITTED_UNOWNED, True),
    ]


def test_a_generation_that_goes_back_is_suspicious() -> None:
    events = told(batch(0, [classic(7, {"m1": (0,)})]), batch(1, [classic(6, {"m1": (0,)})], 2000))
    assert [e.kind for e in events if e.suspicious] == [Kind.EPOCH_REGRESSED]


def test_a_generation_left_out_is_mentioned() -> None:
    events = told(batch(0, [classic(1, {"m1": (0,)})]), batch(1, [classic(4, {"m1": (0,)})], 2000))
    assert "2 before it did not complete" in events[-1].detail


def test_commits_of_a_group_nobody_ever_joined_are_plain() -> None:
    events = told(batch(0, [commit("t", 0, 5)]), batch(1, [commit("t", 0, 6)], 2000))
    (event,) = events
    assert (event.kind, event.protocol, event.count, event.detail) == (
        Kind.COMMITTED,
        "simple",
        2,
        "2 commits on t:0, offset 5 → 6",
    )


def test_unowned_time_runs_from_the_record_that_freed_to_the_one_that_gave() -> None:
    events = told(
        batch(0, [classic(1, {"m1": (0, 1)})], 1000),
        batch(1, [classic(2, {})], 4000),
        batch(2, [classic(3, {"m2": (0,)})], 9500),
    )
    assert [tuple(u) for u in events[-1].unowned] == [("t", 0, 5500)]


def transaction(base: int, producer: int, records: list[tuple[bytes, bytes | None]], ts: int) -> bytes:
    made = [LogRecord(k, v, timestamp_ms=ts) for k, v in records]
    more: dict[str, Any] = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
    return encode_batch(made, base_offset=base, transactional=True, **more)


def marker(base: int, producer: int, committed: bool) -> bytes:
    more: dict[str, Any] = {"producer_id": producer, "producer_epoch": 0}
    record = end_marker_record(committed)
    return encode_batch([record], base_offset=base, transactional=True, control=True, **more)


def test_a_plain_commit_after_a_transactional_one_wins() -> None:
    """Rule of the coordinator's replay: the larger log offset counts when the marker arrives."""
    data = transaction(0, 1, [commit("t", 0, 50)], 1) + batch(1, [commit("t", 0, 9)]) + marker(2, 1, True)
    ((_, state),) = replay([MemoryLog(data)]).states
    assert state.offsets[TopicPartition("t", 0)].offset == 9


def test_a_tombstone_clears_what_a_transaction_has_pending() -> None:
    key, value = commit("t", 0, 50)
    data = transaction(0, 1, [(key, value)], 1) + batch(1, [(key, None)]) + marker(2, 1, True)
    assert not list(replay([MemoryLog(data)]).states)


def test_a_marker_of_an_unknown_producer_is_ignored() -> None:
    assert told(marker(0, 77, True)) == []


def test_topic_ids_get_their_names_from_later_commits() -> None:
    story = replay([log_of("upgrade-for-good")])
    members = {m.label: m for _, state in story.states for m in state.members.values()}
    assert partitions_text(members["pay-0"].assigned | members["pay-1"].assigned) == "orders:0-3"


def test_filters_choose_by_time_instance_and_kind() -> None:
    events = story_of("crashed-static-member").events
    middle = events[4].timestamp_ms
    assert chosen(events, until_ms=middle - 1) == events[:3]
    assert chosen(events, since_ms=middle)[0] == events[3]
    assert {e.instance_id for e in chosen(events, instances=frozenset({"pay-1"}))} == {"pay-1"}
    assert {e.kind for e in chosen(events, kinds=frozenset({Kind.COMMITTED}))} == {Kind.COMMITTED}


def test_every_commit_is_an_event_of_its_own_when_asked_for() -> None:
    events = story_of("crashed-static-member", runs=False).events
    assert [e.count for e in events if e.kind is Kind.COMMITTED] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("ms", "text"), [(0, "0 ms"), (3470, "3.47 s"), (6000, "6 s"), (250_000, "4m 10s"), (7_500_000, "2h 05m")]
)
def test_durations_read_well(ms: int, text: str) -> None:
    assert duration_text(ms) == text


@pytest.mark.parametrize("known", [True, False])
def test_a_commit_is_no_suspicion_while_the_names_of_owned_topics_are_unknown(known: bool) -> None:
    """Members own topic ids, commits name topics: without the name both may be one topic."""
    topic_id = bytes(15) + b"\7"
    member = r.ConsumerGroupMemberMetadataValue(
        subscribed_topic_names=("t",), client_id="c", client_host="/h"
    )
    current = r.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=1,
        previous_member_epoch=0,
        assigned_partitions=(r.TopicPartitions(topic_id=topic_id, partitions=(0,)),),
    )
    records = [
        (r.ConsumerGroupMemberMetadataKey(group_id=GROUP, member_id="m"), member),
        (r.ConsumerGroupMetadataKey(group_id=GROUP), r.ConsumerGroupMetadataValue(epoch=1)),
        (r.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id="m"), current),
    ]
    data = batch(0, [(r.encode_key(k), r.encode_value(v)) for k, v in records])
    data += batch(3, [commit("elsewhere", 1, 5)], 2000)
    story = replay([MemoryLog(data)], topic_names={topic_id: "t"} if known else {})
    (event,) = [e for e in story.events if e.kind in (Kind.COMMITTED, Kind.COMMITTED_UNOWNED)]
    assert event.suspicious is known


CHANGED = (
    "the metadata of subscribed topics changed (created, deleted, more partitions or racks): "
    "the next target shows which partitions"
)


@pytest.mark.parametrize(
    ("metadata_hash", "proven", "cause"),
    [
        (8, True, CHANGED),
        (6, True, CHANGED),
        (7, False, "nothing else changed in these records: the records do not say"),
    ],
)
def test_topics_are_named_as_the_cause_only_where_their_metadata_changed(
    metadata_hash: int, proven: bool, cause: str
) -> None:
    def epoch(number: int, hashed: int) -> tuple[bytes, bytes | None]:
        value = r.ConsumerGroupMetadataValue(epoch=number, metadata_hash=hashed)
        return r.encode_key(r.ConsumerGroupMetadataKey(group_id=GROUP)), r.encode_value(value)

    events = told(batch(0, [epoch(1, 7)]), batch(1, [epoch(2, metadata_hash)], 2000))
    (event,) = [e for e in events if e.kind is Kind.REBALANCE_STARTED and e.epoch == 2]
    assert (event.proven, event.cause) == (proven, cause)


@pytest.mark.parametrize(("since_ms", "waited"), [(-1, ""), (1000, ""), (999, "1 s"), (0, "2 s")])
def test_how_long_a_leader_took_is_said_where_it_is_recorded_and_more_than_a_second(
    since_ms: int, waited: str
) -> None:
    record = classic(1, {"m1": (0,)}, since_ms=since_ms)
    (event,) = [e for e in told(batch(0, [record], 2000)) if e.kind is Kind.REBALANCE_COMPLETED]
    assert event.detail.partition("; ")[2] == (
        f"{waited} from the last join to the leader's assignment (m1)" if waited else ""
    )


@pytest.mark.parametrize(("generation", "skipped"), [(2, ""), (3, "1 before it"), (5, "3 before it")])
def test_generations_without_a_record_are_counted(generation: int, skipped: str) -> None:
    events = told(batch(0, [classic(1, {"m1": (0,)})]), batch(1, [classic(generation, {"m1": (0,)})], 2000))
    newest = [e for e in events if e.kind is Kind.REBALANCE_COMPLETED][-1]
    assert newest.detail.partition("; ")[2].partition(" did not")[0] == skipped


@pytest.mark.parametrize("count", [8, 9])
def test_eight_members_are_named_and_more_are_not_left_out_in_silence(count: int) -> None:
    record = classic(1, {f"m{number}": (number,) for number in range(count)})
    (event,) = [e for e in told(batch(0, [record])) if e.kind is Kind.REBALANCE_COMPLETED]
    assert (event.detail.count(" t:"), event.detail.endswith("; …")) == (8, count > 8)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=12), st.sets(st.integers(0, 11)), st.booleans())
def test_since_when_an_offset_stands_does_not_depend_on_where_the_input_is_cut(
    offsets: list[int], cuts: set[int], later: bool
) -> None:
    """A reader that is paused commits the same offset again: it last got on when that was new."""
    fold, decoder = Fold(0, starts_at=int(later)), Decoder()
    data = b""
    for n, offset in enumerate(offsets):
        data += batch(n + later, [commit("t", 0, offset)], 1_000 * n)
        if n in cuts or n + 1 == len(offsets):
            for item in items(data, decoder=decoder):
                fold.apply(item)
            data = b""
            moved(fold)
    changed = [n for n, offset in enumerate(offsets) if not n or offset != offsets[n - 1]][-1]
    since_ms = -1 if later and not changed else 1_000 * changed
    stands = since_ms < 1_000 * (len(offsets) - 1)
    assert fold.repeated(GROUP) == ({TopicPartition("t", 0): since_ms} if stands else {})
