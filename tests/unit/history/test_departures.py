"""Why members are gone and offsets removed, as far as times settle what the records leave open."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kgroup.history.fold.events import Event, Kind
from kgroup.history.fold.explain import blame
from kgroup.history.fold.folding import Extras
from kgroup.history.fold.removals import Today
from kgroup.history.replay import replay
from kgroup.protocol import group_records as r
from kgroup.protocol.record_kinds import RecordKey, RecordValue
from kgroup.protocol.subscription import Assignment, Subscription

from .logs import GROUP, MemoryLog, batch, commit
from .test_handovers import places

Record = tuple[bytes, bytes | None]


def generation(number: int, *names: str, session_ms: int = 3_000, static: bool = False) -> Record:
    """A classic generation whose members have one partition each, and six seconds between two polls."""
    made = tuple(
        r.MemberMetadata(
            member_id=f"{name}-id",
            group_instance_id=name if static else None,
            client_id="app",
            client_host="/10.0.0.1",
            rebalance_timeout=6_000,
            session_timeout=session_ms,
            subscription=Subscription(("t",)).encode(),
            assignment=Assignment(places((at,))).encode(),
        )
        for at, name in enumerate(names)
    )
    value = r.GroupMetadataValue(
        protocol_type="consumer", generation=number, protocol="range", leader="x", members=made
    )
    return r.encode_key(r.GroupMetadataKey(group=GROUP)), r.encode_value(value)


def told(*at: tuple[float, Iterable[Record]], today: Today | None = None) -> list[Event]:
    """The story of records, each lot in a batch at a second."""
    data = b"".join(batch(100 * n, list(lot), int(1000 * second)) for n, (second, lot) in enumerate(at))
    return replay([MemoryLog(data)], extras=Extras(today or Today())).events


def one(events: list[Event], kind: Kind) -> Event:
    (found,) = [event for event in events if event.kind is kind]
    return found


def committed(at_s: float, offset: int = 7, topic_id: bytes = bytes(16), partition: int = 1) -> Record:
    return commit("t", partition, offset, commit_timestamp=int(1000 * at_s), topic_id=topic_id)


def gone(silent_s: float, *, session_ms: int = 3_000, static: bool = False) -> str:
    """Why b is gone 100 s after it joined, whose partition was committed so long before."""
    event = one(
        told(
            (0, [generation(1, "a", "b", session_ms=session_ms, static=static)]),
            (100 - silent_s, [committed(100 - silent_s)]),
            (100, [generation(2, "a", session_ms=session_ms, static=static)]),
        ),
        Kind.MEMBER_LEFT_OR_EXPIRED,
    )
    assert not event.proven
    return event.cause or ""


def of_group(key: RecordKey, value: RecordValue | None) -> Record:
    return r.encode_key(key), None if value is None else r.encode_value(value)


def epochs(to: int) -> list[Record]:
    reached = r.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=to)
    return [
        of_group(r.ConsumerGroupMetadataKey(group_id=GROUP), r.ConsumerGroupMetadataValue(epoch=to)),
        of_group(r.ConsumerGroupTargetAssignmentMetadataKey(group_id=GROUP), reached),
    ]


def member_of(name: str, epoch: int, classic: bool) -> list[Record]:
    spoken = r.ClassicMemberMetadata(session_timeout_ms=90_000) if classic else None
    joined = r.ConsumerGroupMemberMetadataValue(
        client_id="app", client_host="/h", rebalance_timeout_ms=6_000, classic_member_metadata=spoken
    )
    now = r.ConsumerGroupCurrentMemberAssignmentValue(member_epoch=epoch, previous_member_epoch=epoch)
    return [
        of_group(r.ConsumerGroupMemberMetadataKey(group_id=GROUP, member_id=name), joined),
        of_group(r.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id=name), now),
    ]


@pytest.mark.parametrize(
    ("classic", "at_s", "fenced"), [(True, 26, True), (True, 23, False), (False, 26, False)]
)
def test_a_classic_member_of_a_consumer_group_that_did_not_rejoin(
    classic: bool, at_s: int, fenced: bool
) -> None:
    """It had not left, and no admin had removed it: epoch 2 began 6 s before, its rebalance timeout."""
    there = (r.ConsumerGroupMemberMetadataKey, r.ConsumerGroupCurrentMemberAssignmentKey)
    events = told(
        (0, [*epochs(1), *member_of("a", 1, classic=False), *member_of("b", 1, classic=classic)]),
        (20, epochs(2)),
        (20.5, member_of("a", 2, classic=False)[1:]),
        (at_s, [of_group(key(group_id=GROUP, member_id="b"), None) for key in there]),
    )
    gone = one(events, Kind.MEMBER_LEFT_OR_EXPIRED)
    assert ("had not rejoined for" in gone.detail) == classic
    assert ("its whole rebalance timeout of 6 s" in gone.detail) == fenced
    assert (gone.cause == "removed for that, unless it left, or an admin removed it") == fenced


def test_hung_in_poll_is_named() -> None:
    """A rebalance timeout of 6 s, a session of 3 s, the last commit 6.01 s before: "silent for 3 s"."""
    assert gone(6.01) == (
        "it hung between two polls, unless it left by itself: its last commit was 6.01 s before, and "
        "max.poll.interval.ms (its rebalance timeout) is 6 s"
    )


def test_a_rebalance_timeout_that_is_the_session_says_nothing_of_polls() -> None:
    """Clients send their session as both: a killed one "hung between two polls"."""
    assert gone(6.01, session_ms=6_000).startswith("left, expired, or was removed: the records do not say")


def test_a_commit_from_before_a_member_joined_is_not_its_own() -> None:
    """It "hung": its last commit was of the member that had the partition before."""
    events = told(
        (0, [generation(1, "a")]),
        (96, [committed(96, partition=0), committed(96)]),
        (97, [generation(2, "a", "b")]),
        (102.1, [generation(3, "a")]),
    )
    assert one(events, Kind.MEMBER_LEFT_OR_EXPIRED).cause == (
        "left, expired, or was removed: the records do not say; "
        "if it expired, it was silent for its session of 3 s"
    )


@pytest.mark.parametrize("retention_ms", [None, 7 * 86_400_000])
def test_a_group_that_never_had_offsets_is_not_as_old_as_the_retention(retention_ms: int | None) -> None:
    """A group of 20 s "expired: as old as offsets.retention.minutes (168h 00m)"."""
    grave = r.encode_key(r.GroupMetadataKey(group=GROUP)), None
    events = told(
        (0, [generation(1, "a")]),
        (10, [generation(2)]),
        (20, [grave]),
        today=Today(retention_ms=retention_ms),
    )
    deleted = one(events, Kind.GROUP_DELETED)
    assert (deleted.proven, deleted.cause) == (
        False,
        "removed by the broker, as it was empty and had no offsets, or deleted by an admin",
    )


@pytest.mark.parametrize("silent_s", [4, 60])
def test_one_that_is_silent_for_less_or_for_long_may_have_gone_any_way(silent_s: float) -> None:
    assert gone(silent_s).startswith("left, expired, or was removed: the records do not say")
    assert gone(silent_s).endswith("if it expired, it was silent for its session of 3 s")


def test_a_commit_within_the_session_speaks_against_expiry() -> None:
    """55 s into a session of 120 s it "may have expired"."""
    assert gone(55, session_ms=70_000, static=True) == (
        "expired, or removed by an admin: static members do not leave when they close; what it owned was "
        "committed 55 s before, within its session of 1m 10s: if that was its own commit, it did not expire"
    )


def test_one_that_joined_less_than_a_session_ago_did_not_expire() -> None:
    assert gone(100, session_ms=120_000, static=True) == (
        "it was removed, or left for good: its session of 2m 00s had not passed since it joined"
    )


def test_one_that_is_back_under_its_member_id_lived_on() -> None:
    events = told((0, [generation(1, "a", "b")]), (10, [generation(2, "a")]), (12, [generation(3, "a", "b")]))
    back = [event for event in events if event.kind is Kind.MEMBER_JOINED][-1]
    assert back.cause == "back under its member id 2 s after it was gone: its process lived on"


OLD, NEW = bytes(15) + b"\1", bytes(15) + b"\2"


@pytest.mark.parametrize("apart", [False, True], ids=["in one run of commits", "over a change of the group"])
def test_a_topic_that_was_created_again_is_no_suspicious_rewind(apart: bool) -> None:
    """Commits carry the topic's id since Kafka 4.2, and the story said that they went back by 70."""
    between = [(11, [generation(2, "a", "b", "c")])] if apart else []
    events = told(
        (0, [generation(1, "a", "b")]),
        (10, [committed(10, 90, OLD)]),
        *between,
        (20, [committed(20, 20, NEW)]),
    )
    back = one(events, Kind.REWOUND)
    assert (back.suspicious, back.proven) == (False, True)
    assert back.detail == "t-1 begins again at 20, 90 before: t is a new topic"
    assert back.cause == (
        "t was deleted and recreated: its id was AAAAAAAAAAAAAAAAAAAAAQ and is AAAAAAAAAAAAAAAAAAAAAg"
    )


@pytest.mark.parametrize("ids", [(bytes(16), NEW), (OLD, bytes(16)), (bytes(16), bytes(16))])
def test_a_commit_without_a_topic_id_may_be_of_another_topic(ids: tuple[bytes, bytes]) -> None:
    lots = ([generation(1, "a", "b")], [committed(10, 90, ids[0])], [committed(20, 20, ids[1])])
    data = b"".join(batch(n, lot, 10_000 * n) for n, lot in enumerate(lots))
    back = one(replay([MemoryLog(data)]).events, Kind.REWOUND)
    assert (back.suspicious, back.proven) == (False, False)
    assert back.detail == "t-1 went back by 70, from 90 to 20"
    assert (back.cause or "").startswith(
        "a rewind, or t was deleted and recreated: not both commits have its id; b-id owned it"
    )


@pytest.mark.parametrize("apart", [False, True], ids=["in one run of commits", "over a change of the group"])
@pytest.mark.parametrize(
    ("former", "stale", "id_now", "why"),
    [
        (
            OLD,
            90,
            NEW,
            (
                "a rewind, or 90 is an offset of the former topic: t was deleted and recreated, "
                "its id was AAAAAAAAAAAAAAAAAAAAAQ and is AAAAAAAAAAAAAAAAAAAAAg; b-id owned it"
            ),
        ),
        (
            bytes(16),
            90,
            bytes(16),
            (
                "a rewind, or 90 is an offset of a former topic: the group's offset was removed before it, "
                "as brokers do when they delete t; b-id owned it"
            ),
        ),
        (OLD, 90, OLD, None),
        (OLD, 60, NEW, None),
    ],
    ids=["ids", "no ids", "the same topic", "of the new topic"],
)
def test_an_old_commit_that_comes_after_a_topic_was_recreated(
    former: bytes, stale: int, id_now: bytes, why: str | None, apart: bool
) -> None:
    """A member that has not noticed commits its old offset: the broker stores it for the new topic's id."""
    key, _ = committed(0)
    lots = [
        [generation(1, "a", "b")],
        [committed(10, 80, former)],
        [(key, None)],
        [committed(12, stale, id_now)],
        *([[generation(2, "a", "b", "c")]] if apart else []),
        *([committed(20, offset, id_now)] for offset in (7, 50, 40)),
    ]
    data = b"".join(batch(n, lot, 10_000 * n) for n, lot in enumerate(lots))
    back, later = (e for e in replay([MemoryLog(data)]).events if e.kind is Kind.REWOUND)
    assert (back.suspicious, back.proven) == (why is None, False)
    assert back.detail.startswith("suspicious: ") == (why is None)
    assert why is None or (back.cause or "").startswith(why)
    assert later.suspicious == any(id_now), "it is explained once"


def test_all_partitions_of_a_reset_are_blamed() -> None:
    """The last of them was named alone."""
    events = told(
        (0, [generation(1, "a", "b", "c")]),
        (1, [committed(1, 90, partition=n) for n in range(3)]),
        (50, [committed(50, 0, partition=n) for n in range(3)]),
    )
    (found,) = [each for each in blame(events, GROUP) if each.about == "rewind"]
    assert found.event.detail.startswith("3 partitions went back, t:0-2; the last of them: t-2 went back")
    assert [each.partitions[0].partition for each in found.evidence if each.kind is Kind.REWOUND] == [0, 1]


def removed(after_s: float, today: Today | None) -> tuple[str, bool, str]:
    key, _ = committed(0)
    events = told((0, [committed(0)]), (after_s, [(key, None)]), today=today)
    event = next(e for e in events if e.kind in (Kind.OFFSETS_DELETED, Kind.OFFSETS_EXPIRED_OR_DELETED))
    return event.kind.value, event.proven, event.cause or ""


def test_what_the_cluster_says_settles_why_offsets_are_gone() -> None:
    """ "Expired or deleted": the broker's retention was one question away."""
    hour, week = 3600, 7 * 24 * 3_600_000
    assert removed(hour, None)[:2] == ("offsets-expired-or-deleted", False)
    kind, proven, cause = removed(hour, Today({"t": ""}, week))
    assert (kind, proven) == ("offsets-deleted", True)
    assert cause.startswith("younger than offsets.retention.minutes (168h 00m), so they did not expire")
    assert removed(2 * hour, Today({"t": ""}, 3_600_000))[:2] == ("offsets-expired-or-deleted", False)
    kind, proven, cause = removed(hour, Today({"other": ""}, week))
    assert (kind, proven) == ("offsets-deleted", True)
    assert cause == "topic t was deleted: it no longer exists: brokers delete the offsets with a topic"
    assert removed(hour, Today({}, None))[2].endswith("unless they had expired before")


def test_a_topic_recreated_by_now_is_why_its_offsets_are_gone() -> None:
    """Its id in the removed commits is another than the topic's now."""
    key, _ = committed(0)
    data = [(0, [committed(0, 90, OLD)]), (30, [(key, None)]), (40, [committed(40, 20, NEW)])]
    event = one(told(*data, today=Today({"t": "AAAAAAAAAAAAAAAAAAAAAg"}, None)), Kind.OFFSETS_DELETED)
    assert (event.cause or "").startswith(
        "topic t was deleted and recreated: its id was AAAAAAAAAAAAAAAAAAAAAQ and is AAAAAAAAAAAAAAAAAAAAAg"
    )
    same = one(told(*data, today=Today({"t": "AAAAAAAAAAAAAAAAAAAAAQ"}, None)), Kind.OFFSETS_DELETED)
    assert (same.cause or "").startswith("younger than the shortest retention a broker allows: deleted by")


def test_a_transaction_that_was_overtaken_by_a_reset_is_not_the_offsets_author() -> None:
    """It ended after a plain commit of the same partition, which counts."""
    from kgroup.protocol.batches import end_marker_record

    data = batch(0, [committed(1, 5)], 1000, producer_id=7, producer_epoch=0, transactional=True)
    data += batch(1, [committed(2, 90)], 2000)
    marker = end_marker_record(committed=True)
    data += batch(
        2,
        [(marker.key or b"", marker.value)],
        3000,
        producer_id=7,
        producer_epoch=0,
        transactional=True,
        control=True,
    )
    event = one(replay([MemoryLog(data)]).events, Kind.TRANSACTION_COMMITTED)
    assert event.detail == (
        "producer 7 committed the offsets of t:1; without effect on t:1, where a later commit counts"
    )


def test_who_joined_is_named_with_the_client_where_its_id_says_nothing() -> None:
    value = r.MemberMetadata(
        member_id="q83vEjRWeJCrze8SNFZ4kA",
        client_id="web-a",
        client_host="/10.0.0.1",
        rebalance_timeout=6_000,
        session_timeout=6_000,
        subscription=Subscription(("t",)).encode(),
        assignment=Assignment(places((0,))).encode(),
    )
    made = r.GroupMetadataValue(
        protocol_type="consumer", generation=1, protocol="range", leader="x", members=(value,)
    )
    key = r.encode_key(r.GroupMetadataKey(group=GROUP))
    event = one(
        replay([MemoryLog(batch(0, [(key, r.encode_value(made))], 1000))]).events, Kind.REBALANCE_COMPLETED
    )
    assert event.cause == "q83vEjRWeJCrze8SNFZ4kA of client web-a joined"
