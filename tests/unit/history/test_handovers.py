"""What healthy groups do and what sets their rebalances off: hand-overs, rejoins, conversions to streams."""

from collections.abc import Mapping

import pytest

from kgroup.domain import TopicPartition
from kgroup.history.fold.events import Event, Kind
from kgroup.history.fold.explain import blame
from kgroup.history.replay import replay
from kgroup.protocol import group_records as r
from kgroup.protocol import streams_records as s
from kgroup.protocol.subscription import Assignment, Subscription

from .logs import GROUP, MemoryLog, batch, commit

Holding = tuple[tuple[int, ...], tuple[int, ...]]
"""What a member had when it joined, and what it was given."""


def places(numbers: tuple[int, ...]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition("t", n) for n in numbers)


def generation(number: int, holdings: Mapping[str, Holding], **more: object) -> tuple[bytes, bytes | None]:
    """A group's record; members by instance id."""
    made = []
    for name, (owned, given) in holdings.items():
        subscription = Subscription(("t",), owned=places(owned), generation=number - 1, **more)  # type: ignore[arg-type]
        made.append(member(name, subscription.encode(), Assignment(places(given)).encode()))
    return record(number, made, "consumer", "cooperative-sticky")


def member(name: str, metadata: bytes, assignment: bytes) -> r.MemberMetadata:
    return r.MemberMetadata(
        member_id=f"{name}-1",
        group_instance_id=name,
        client_id="app",
        client_host="/10.0.0.1",
        rebalance_timeout=60_000,
        session_timeout=10_000,
        subscription=metadata,
        assignment=assignment,
    )


def record(
    number: int, members: list[r.MemberMetadata], kind: str, protocol: str
) -> tuple[bytes, bytes | None]:
    leader = members[0].member_id if members else None
    value = r.GroupMetadataValue(
        protocol_type=kind, generation=number, protocol=protocol, leader=leader, members=tuple(members)
    )
    return r.encode_key(r.GroupMetadataKey(group=GROUP)), r.encode_value(value)


def told(*records: tuple[bytes, bytes | None]) -> list[Event]:
    """The events of these records, each in a batch of its own, a second apart."""
    data = b"".join(batch(n, [each], 1000 * (n + 1)) for n, each in enumerate(records))
    return replay([MemoryLog(data)]).events


def causes(events: list[Event]) -> list[str]:
    return [e.cause or "" for e in events if e.kind is Kind.REBALANCE_COMPLETED]


HAND_OVER = (
    generation(1, {"a": ((), (0, 1))}),
    commit("t", 0, 5),
    generation(2, {"a": ((0, 1), (0,)), "b": ((), ())}),
    commit("t", 1, 7),
    generation(3, {"a": ((0,), (0,)), "b": ((), (1,))}),
    commit("t", 1, 8),
)


def test_what_a_cooperative_member_commits_on_letting_go_is_not_suspicious() -> None:
    """The Javadoc's pattern: onPartitionsRevoked commits what the generation has taken already."""
    events = told(*HAND_OVER)
    assert not [event for event in events if event.suspicious]
    (letting_go,) = [e for e in events if e.offset == 3]
    assert letting_go.kind is Kind.COMMITTED and letting_go.partitions == places((1,))
    assert "onPartitionsRevoked" in (letting_go.cause or "")


def test_the_rebalance_behind_it_names_who_gave_what_up() -> None:
    first, second, third = causes(told(*HAND_OVER))
    assert (first, second) == ("a joined", "b joined")
    assert third.startswith("generation 2 took t:1 from a, which let go and rejoined")


def test_a_commit_one_generation_later_is_suspicious_again() -> None:
    records = (*HAND_OVER[:3], generation(3, {"a": ((0,), (0,)), "b": ((), ())}), commit("t", 1, 7))
    assert [e.kind for e in told(*records) if e.suspicious] == [Kind.COMMITTED_UNOWNED]


@pytest.mark.parametrize("after", [{"b": ((), ())}, {"a": ((), (0,)), "b": ((), ())}], ids=["gone", "eager"])
def test_of_a_member_that_left_or_is_eager_it_is_suspicious_as_ever(after: dict[str, Holding]) -> None:
    """An eager member has let go of everything before it joins: it has nothing to commit afterwards."""
    records = (HAND_OVER[0], generation(2, after), commit("t", 1, 7))
    assert [e.kind for e in told(*records) if e.suspicious] == [Kind.COMMITTED_UNOWNED]


def test_whose_metadata_changed_is_named() -> None:
    before = generation(1, {"a": ((0,), (0,)), "b": ((1,), (1,))})
    metadata = Subscription(("t",), owned=places((1,)), generation=1, rack="r2").encode()
    still = Subscription(("t",), owned=places((0,)), generation=1).encode()
    given = [Assignment(places((n,))).encode() for n in (0, 1)]
    members = [member("a", still, given[0]), member("b", metadata, given[1])]
    *_, cause = causes(told(before, record(2, members, "consumer", "cooperative-sticky")))
    assert (
        "other metadata: b (rack r2, None before)" in cause and "it, or the leader, asked to rejoin" in cause
    )


@pytest.mark.parametrize(
    ("protocol_type", "says"),
    [
        ("connect", "w1 (metadata undecoded, 8 bytes, version 28518: newer than 2)"),
        ("other", "w1 (8 bytes, not the consumer protocol's, so not decoded)"),
    ],
)
def test_metadata_that_is_not_decoded_is_called_so(protocol_type: str, says: str) -> None:

    def workers(number: int, state: bytes) -> tuple[bytes, bytes | None]:
        return record(
            number, [member("w1", state, b"x"), member("w2", b"same", b"x")], protocol_type, "sessioned"
        )

    *_, cause = causes(told(workers(1, b"offset 5"), workers(2, b"offset 7")))
    assert says in cause and "w2" not in cause


def test_a_rejoin_that_leaves_no_trace_is_still_not_explained() -> None:
    same = {"a": ((0,), (0,))}
    event = told(generation(1, same), generation(2, same))[-1]
    assert not event.proven and "the records do not say which" in (event.cause or "")


def test_new_partitions_of_a_topic_explain_a_rebalance() -> None:
    records = generation(1, {"a": ((), (0,))}), generation(2, {"a": ((), (0, 1))})
    assert causes(told(*records))[-1].startswith("t:1 came: no member ever had them")


MEMBER_KEY = r.encode_key(s.StreamsGroupMemberMetadataKey(group_id=GROUP, member_id="m"))
GROUP_KEY = r.encode_key(s.StreamsGroupMetadataKey(group_id=GROUP))
STREAMS = (
    (MEMBER_KEY, r.encode_value(s.StreamsGroupMemberMetadataValue(process_id="p"))),
    (GROUP_KEY, r.encode_value(s.StreamsGroupMetadataValue(epoch=1))),
)
STREAMS_GONE = ((MEMBER_KEY, None), (GROUP_KEY, None))


def classic_gone() -> tuple[bytes, bytes | None]:
    return r.encode_key(r.GroupMetadataKey(group=GROUP)), None


CLASSIC = batch(0, [generation(1, {"a": ((), (0,))})]) + batch(1, [commit("t", 0, 5)])
TO_STREAMS = batch(2, [record(2, [], "consumer", "")]) + batch(3, [classic_gone(), *STREAMS])


def test_a_classic_group_turned_into_a_streams_group_is_not_deleted() -> None:
    story = replay([MemoryLog(CLASSIC + TO_STREAMS)])
    kinds = [event.kind for event in story.events]
    assert Kind.GROUP_DELETED not in kinds
    (event,) = (event for event in story.events if event.kind is Kind.UPGRADED)
    assert (event.protocol, event.proven) == ("streams", True)
    assert event.detail == "classic → streams: the group was empty"
    assert kinds[-2:] == [Kind.MEMBER_JOINED, Kind.REBALANCE_STARTED], kinds
    ((_, state),) = story.states
    assert state.kind == "streams" and state.offsets[TopicPartition("t", 0)].offset == 5
    assert "conversion" in {b.about for b in blame(story.events, GROUP)}
    assert "deletion" not in {b.about for b in blame(story.events, GROUP)}


def test_the_way_back_and_the_deletion_of_a_streams_group_are_told() -> None:
    back = [*STREAMS_GONE, generation(3, {"a": ((), (0,))})]
    events = replay([MemoryLog(CLASSIC + TO_STREAMS + batch(6, back))]).events
    assert [e.kind for e in events if e.offset >= 6][0] is Kind.DOWNGRADED
    offset = commit("t", 0, 5)[0]
    gone = batch(6, [(offset, None), *STREAMS_GONE])
    events = replay([MemoryLog(CLASSIC + TO_STREAMS + gone)]).events
    assert events[-1].kind is Kind.GROUP_DELETED and events[-1].protocol == "streams"
