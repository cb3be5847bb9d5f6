"""Rebalances of Connect, Streams and Schema Registry out of the log: who runs what, and what set them off."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.history.fold.events import Event, Kind
from kgroup.history.fold.explain import blame
from kgroup.history.replay import replay
from kgroup.protocol import group_records as r
from kgroup.protocol.subscription import Assignment, Subscription
from tests.embedded_written import (
    Units,
    connect_assignment,
    connect_metadata,
    streams_assignment,
    streams_subscription,
)

from .logs import GROUP, MemoryLog, batch

Record = tuple[bytes, bytes | None]
A, B = "http://a:8083/", "http://b:8083/"


def member(name: str, metadata: bytes, assignment: bytes, client_id: str = "c") -> r.MemberMetadata:
    return r.MemberMetadata(
        member_id=name,
        group_instance_id=None,
        client_id=client_id,
        client_host="/10.0.0.1",
        rebalance_timeout=60_000,
        session_timeout=10_000,
        subscription=metadata,
        assignment=assignment,
    )


def generation(number: int, speaks: tuple[str, str], *members: r.MemberMetadata, at_ms: int = -1) -> Record:
    value = r.GroupMetadataValue(
        protocol_type=speaks[0],
        generation=number,
        protocol=speaks[1],
        leader=members[0].member_id if members else None,
        current_state_timestamp=at_ms,
        members=members,
    )
    return r.encode_key(r.GroupMetadataKey(group=GROUP)), r.encode_value(value)


def worker(
    name: str,
    url: str,
    had: Units,
    given: Units = (),
    revoked: Units = (),
    offset: int = 5,
    delay_ms: int = 0,
) -> r.MemberMetadata:
    assignment = connect_assignment(2, given, revoked, delay_ms, offset, ("a-1", A))
    return member(name, connect_metadata(2, url, offset, had), assignment)


def connect(number: int, *workers: r.MemberMetadata, at_ms: int = -1) -> Record:
    return generation(number, ("connect", "sessioned"), *workers, at_ms=at_ms)


def rebalances(*records: Record) -> list[Event]:
    """The rebalances these records tell of, each in a batch of its own, a second apart."""
    data = b"".join(batch(n, [each], 1000 * (n + 1)) for n, each in enumerate(records))
    return [e for e in replay([MemoryLog(data)]).events if e.kind is Kind.REBALANCE_COMPLETED]


ALL = (("s", -1), ("s", 0), ("s", 1))
ALONE = connect(1, worker("a-1", A, (), ALL))


def test_workers_are_told_with_what_they_run() -> None:
    (event,) = rebalances(ALONE)
    assert event.detail == "generation 1, 1 member, sessioned: a:8083 s, s-0, s-1"


HAND_OVER = (
    ALONE,
    connect(2, worker("a-1", A, ALL, revoked=(("s", 1),)), worker("b-1", B, ())),
    connect(3, worker("a-1", A, ALL[:2]), worker("b-1", B, (), (("s", 1),))),
)


def test_a_cooperative_hand_over_is_told_in_both_of_its_generations() -> None:
    _, second, third = rebalances(*HAND_OVER)
    assert second.detail.endswith(": a:8083 s, s-0; b:8083 nothing")
    assert third.detail.endswith(": a:8083 s, s-0; b:8083 s-1")
    assert (second.cause, third.proven) == ("b-1 joined", True)
    assert third.cause == (
        "generation 2 took s-1 from a:8083, which stopped them and rejoined (a cooperative hand-over)"
    )


def test_blame_names_who_joined_and_the_hand_over_that_followed() -> None:
    """It named the hand-over alone: who had set it off was one line up in replay-log."""
    data = b"".join(batch(n, [each], 1000 * (n + 1)) for n, each in enumerate(HAND_OVER))
    (found,) = blame(replay([MemoryLog(data)]).events, GROUP)
    assert (found.about, found.event.cause) == (
        "rebalance",
        f"b-1 joined; what followed from it: {rebalances(*HAND_OVER)[-1].cause}",
    )
    assert ["b-1 joined" in (each.cause or "") for each in found.evidence].count(True) == 1


def test_a_new_connector_is_the_cause_where_the_configuration_is_newer() -> None:
    more = (("t", -1), ("t", 0))
    event = rebalances(ALONE, connect(2, worker("a-1", A, ALL, more, offset=9)))[-1]
    assert (event.cause, event.proven) == (
        "t, t-0 came, with a newer configuration of the connectors (config offset 5 → 9)",
        True,
    )
    gone = rebalances(ALONE, connect(2, worker("a-1", A, ALL, revoked=(("s", 1),), offset=9)))[-1]
    assert (gone.cause or "").startswith("s-1 went, with a newer configuration")


def test_work_that_comes_without_a_newer_configuration_proves_nothing() -> None:
    event = rebalances(ALONE, connect(2, worker("a-1", A, ALL, (("t", 0),))))[-1]
    assert (event.cause, event.proven) == (
        "t-0 came, and the members are as before: the records do not say why",
        False,
    )


def test_the_end_of_the_leaders_delay_is_a_cause_once_it_is_over() -> None:
    lost = connect(2, worker("a-1", A, ALL[:2], delay_ms=4000), at_ms=1000)
    for began, due in ((5000, True), (4999, False)):
        event = rebalances(lost, connect(3, worker("a-1", A, ALL[:2], ALL[2:]), at_ms=began))[-1]
        assert ("generation 2 held back work of lost workers for 4 s" in (event.cause or "")) is due


def test_a_newer_config_offset_that_changes_nothing_is_named_but_proves_nothing() -> None:
    event = rebalances(ALONE, connect(2, worker("a-1", A, ALL, offset=6)))[-1]
    assert "other metadata: a-1 (config offset 5 → 6)" in (event.cause or "") and not event.proven


def test_who_leaves_is_told_with_what_it_ran() -> None:
    data = b"".join(
        batch(n, [each], 1000 * (n + 1))
        for n, each in enumerate((*HAND_OVER, connect(4, worker("a-1", A, ALL[:2], delay_ms=9))))
    )
    (left,) = [e for e in replay([MemoryLog(data)]).events if e.kind is Kind.MEMBER_LEFT_OR_EXPIRED]
    assert left.detail == "b-1 is gone (b:8083 s-1)"


def test_damaged_assignments_are_unknown_and_stop_nothing() -> None:
    broken = replace(worker("a-1", A, ALL), assignment=b"\0\x09")
    event = rebalances(ALONE, connect(2, broken))[-1]
    assert event.detail.endswith(": a:8083 unknown")


def streams(number: int, *threads: tuple[str, bytes, bytes], at_ms: int = -1) -> Record:
    made = [
        member(
            name,
            Subscription(("t",), joined).encode(),
            Assignment((), given).encode(),
            f"app-StreamThread-{at}-consumer",
        )
        for at, (name, joined, given) in enumerate(threads, 1)
    ]
    return generation(number, ("consumer", "stream"), *made, at_ms=at_ms)


def test_threads_are_told_with_their_tasks() -> None:
    given = streams_assignment([(0, 0), (0, 10), (0, 2)], [(1, 0)])
    (event,) = rebalances(streams(1, ("m", streams_subscription(1), given)))
    assert event.detail.endswith(", stream: app-StreamThread-1 0_0, 0_2, 0_10 (standby 1_0)")


def test_which_tasks_a_thread_had_is_part_of_the_cause() -> None:
    given = streams_assignment([(0, 0)])
    before = streams(1, ("m", streams_subscription(1, [(0, 0, -2)]), given))
    after = streams(2, ("m", streams_subscription(2, [(0, 0, -2), (0, 1, 7)]), given))
    event = rebalances(before, after)[-1]
    process = "process 00000000-0000-0000-0000-000000000002, 00000000-0000-0000-0000-000000000001 before"
    assert f"m ({process}, standby 0_1, nothing before)" in (event.cause or "") and not event.proven


@pytest.mark.parametrize(
    ("when", "began", "says"),
    [
        (0, 5, "generation 1 asked for it: a task must be freed before another member runs it"),
        (5000, 5000, "generation 1 scheduled it for 1970-01-01T00:00:05Z: Streams looks again (KIP-441)"),
        (5001, 5000, None),
        (0, -1, None),
    ],
)
def test_a_rebalance_that_streams_scheduled_is_told(when: int, began: int, says: str | None) -> None:
    joined = streams_subscription(1)
    first = streams(1, ("m", joined, streams_assignment([(0, 0)], next_ms=when)), at_ms=1)
    event = rebalances(first, streams(2, ("m", joined, streams_assignment([(0, 0)])), at_ms=began))[-1]
    assert event.cause == says if says else not event.proven


def test_an_election_is_told() -> None:
    def instance(name: str) -> r.MemberMetadata:
        identity = f'{{"version":1,"host":"{name}","port":8081,"scheme":"http","master_eligibility":true}}'
        return member(name, identity.encode(), b'{"version":1,"error":0,"master":"x"}')

    (event,) = rebalances(generation(1, ("sr", "v0"), instance("x"), instance("y")))
    assert event.detail == "generation 1, 2 members, v0: http://x:8081 leads; http://y:8081 follows"
