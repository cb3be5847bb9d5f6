"""SM-51: static members that come back after their session has ended, and how long the log says it took."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kgroup.history.fold.restarts import MAX_AWAY, Restart
from kgroup.history.replay import replay
from kgroup.protocol import group_records as r
from kgroup.protocol.subscription import Assignment, Subscription

from .logs import GROUP, MemoryLog, batch, commit
from .test_handovers import places

Record = tuple[bytes, bytes | None]
SESSION_MS = 10_000


def classic(
    number: int, members: Iterable[tuple[str, str | None]], session_ms: int = SESSION_MS, group: str = GROUP
) -> Record:
    """A generation, of member ids with their instance ids."""
    made = tuple(
        r.MemberMetadata(
            member_id=member_id,
            group_instance_id=instance_id,
            client_id="app",
            client_host="/10.0.0.1",
            rebalance_timeout=60_000,
            session_timeout=session_ms,
            subscription=Subscription(("t",)).encode(),
            assignment=Assignment(()).encode(),
        )
        for member_id, instance_id in members
    )
    value = r.GroupMetadataValue(
        protocol_type="consumer", generation=number, protocol="range", leader="x", members=made
    )
    return r.encode_key(r.GroupMetadataKey(group=group)), r.encode_value(value)


def restarts(*at: tuple[int, Iterable[Record]]) -> tuple[Restart, ...]:
    """What records, each lot in a batch at a second, tell of restarts."""
    data = b"".join(batch(100 * n, lot, 1000 * second) for n, (second, lot) in enumerate(at))
    return replay([MemoryLog(data)]).folds[0].restarts(GROUP)


BOTH, ONE = (("a1", "a"), ("b1", "b")), (("b1", "b"),)


def test_a_classic_member_was_away_for_its_session_and_what_came_after() -> None:
    again = (("a2", "a"), ("b1", "b"))
    (found,) = restarts((0, [classic(1, BOTH)]), (20, [classic(2, ONE)]), (32, [classic(3, again)]))
    assert found == Restart("a", 32_000, late_ms=12_000, session_ms=10_000, took_ms=22_000, offset=200)


def test_one_that_is_back_within_its_session_is_none_of_them() -> None:
    again = (("a2", "a"), ("b1", "b"))
    assert restarts((0, [classic(1, BOTH)]), (8, [classic(1, again)])) == ()


def test_a_commit_is_a_sign_of_life_so_that_no_session_had_ended() -> None:
    """`remove-members` ended one that had committed 549 ms before: "away for 48 s, a longer session"."""
    own = Subscription(("t",)).encode()

    def generation(number: int, *instances: str) -> Record:
        made = tuple(
            r.MemberMetadata(
                member_id=f"{name}{number}",
                group_instance_id=name,
                client_id="app",
                client_host="/10.0.0.1",
                rebalance_timeout=60_000,
                session_timeout=45_000,
                subscription=own,
                assignment=Assignment(places((0,))).encode(),
            )
            for name in instances
        )
        value = r.GroupMetadataValue(
            protocol_type="consumer", generation=number, protocol="range", leader="x", members=made
        )
        return r.encode_key(r.GroupMetadataKey(group=GROUP)), r.encode_value(value)

    def story(committed_s: int) -> tuple[Restart, ...]:
        return restarts(
            (0, [generation(1, "a")]),
            (committed_s, [commit("t", 0, 7, commit_timestamp=1000 * committed_s)]),
            (200, [generation(2)]),
            (204, [generation(3, "a")]),
        )

    assert story(committed_s=199) == ()
    (found,) = story(committed_s=150)
    assert found.took_ms == 49_000


def test_dynamic_members_and_those_that_stay_away_are_none_of_them() -> None:
    dynamic = [classic(1, (("d", None),)), classic(2, ()), classic(3, (("d", None),))]
    assert restarts(*((n, [each]) for n, each in enumerate(dynamic))) == ()
    assert restarts((0, [classic(1, BOTH)]), (20, [classic(2, ONE)])) == ()


def test_what_is_remembered_is_bounded() -> None:
    crowd = [(f"m{n}", f"i{n}") for n in range(MAX_AWAY + 1)]
    again = [("m0", "i0"), ("m1", "i1")]
    found = restarts((0, [classic(1, crowd)]), (1, [classic(2, ())]), (2, [classic(3, again)]))
    assert [each.instance_id for each in found] == ["i1"]


def member(member_id: str, instance_id: str | None = "a") -> list[Record]:
    """A member of a consumer group: what it subscribes to, and where it is."""
    key = r.ConsumerGroupMemberMetadataKey(group_id=GROUP, member_id=member_id)
    value = r.ConsumerGroupMemberMetadataValue(
        instance_id=instance_id, client_id="app", client_host="/h", subscribed_topic_names=("t",)
    )
    return [(r.encode_key(key), r.encode_value(value)), at_epoch(member_id, 1)]


def at_epoch(member_id: str, epoch: int) -> Record:
    key = r.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id=member_id)
    value = r.ConsumerGroupCurrentMemberAssignmentValue(member_epoch=epoch, previous_member_epoch=0)
    return r.encode_key(key), r.encode_value(value)


def gone(member_id: str) -> list[Record]:
    keys = (
        r.ConsumerGroupMemberMetadataKey(group_id=GROUP, member_id=member_id),
        r.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id=member_id),
    )
    return [(r.encode_key(key), None) for key in keys]


def test_a_consumer_protocol_member_tells_when_it_leaves() -> None:
    other = member("y", "b")
    left = (5, [at_epoch("x", -2)])
    (found,) = restarts((0, [*member("x"), *other]), left, (50, gone("x")), (57, member("z")))
    assert found == Restart("a", 57_000, late_ms=7000, session_ms=45_000, took_ms=52_000, offset=300)
    assert restarts((0, [*member("x"), *other]), left, (30, [at_epoch("x", 1)])) == ()


@pytest.mark.parametrize("back_s", [52, 40])
def test_one_that_crashed_tells_only_how_late_it_was(back_s: int) -> None:
    """No record has a consumer-protocol session; a return before the end has a clock that went back."""
    found = restarts((0, [*member("x"), *member("y", "b")]), (45, gone("x")), (back_s, member("z")))
    known = [(each.late_ms, each.session_ms, each.took_ms) for each in found]
    assert known == ([(7000, None, None)] if back_s > 45 else [])
