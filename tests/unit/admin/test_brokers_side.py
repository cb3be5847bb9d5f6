"""What brokers have to do with partitions that stand still: a leader out of reach, KG124, KG321."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.admin.diagnose.checks import Diagnosis
from kgroup.admin.diagnose.doctor import Checkup
from kgroup.admin.read.readable import FIRST_BYTES
from kgroup.domain import TRANSACTION_TOPIC
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kgroup.protocol.messages.fetch import FetchRequest, FetchResponse
from tests.unit.admin.doctor_logs import (
    Held,
    commits,
    commits_up_to,
    described,
    generation,
    in_transactions,
    remembering,
    written,
)
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.test_doctor_checks import codes, examine, groups_of
from tests.unit.admin.test_in_sync import Answer, answer, finding, lagging

A, B = Held("a", "orders:0,1,4"), Held("b", "orders:2,3,5")
LED_BY_2 = "broker 2 at b2:9092"
"""It leads the odd partitions, broker 1 the even ones."""


def half_read(stopped: set[int], *, begun: bool = True) -> Checkup:
    """Of six partitions, these stand still since second 60, or were never committed."""
    still = dict.fromkeys(stopped if begun else (), 2)
    read = dict.fromkeys(set(range(6)) - stopped, 4)
    fake = remembering(
        described(A, B),
        {f"orders:{p}": at for p, at in (read | still).items()},
        (0, [generation(1, (A, B))]),
        *commits_up_to(
            range(5, 201, 5), {p: (at, 200 if p in read else 60) for p, at in (read | still).items()}
        ),
    )
    fake.topics["orders"] = 6
    groups_of(fake).ends |= {f"orders:{p}": 4 for p in range(6)}
    groups_of(fake).starts |= {f"orders:{p}": 0 for p in range(6)}
    times = {p: [1, 2, 3, 4 if p in stopped else 199] for p in range(6)}
    return examine(written(fake, times).cluster(), "g", now_ms=205_000)


@pytest.mark.parametrize(("begun", "code"), [(True, "KG310"), (False, "KG306")])
def test_a_leader_that_the_clients_do_not_reach_is_named(begun: bool, code: str) -> None:
    """advertised.listeners of one broker were wrong: its partitions stood still, and records were blamed."""
    (told,) = [each for each in half_read({1, 3, 5}, begun=begun).findings if each.code == code]
    assert told.severity == "error"
    assert told.hint is not None and told.hint.startswith(f"see whether the clients reach {LED_BY_2}; else ")
    assert told.evidence[-1] == (
        f"{LED_BY_2} leads all of them, and no partition that it leads is read; others are"
    )


@pytest.mark.parametrize("stopped", [{1, 2}, {1, 3}], ids=["they have two", "theirs leads one that is read"])
def test_leaders_that_do_not_tell_them_apart_are_not(stopped: set[int]) -> None:
    told = finding(half_read(stopped), "KG310")
    assert told.hint is not None and told.hint.startswith("look for the record")


def transacting(
    in_sync: tuple[int, ...], said: Answer, *, in_turn: bool = True, topic_hidden: bool = False
) -> Checkup:
    """A reader that committed, in transactions or not, until second 60; `said`: the broker's setting."""
    lots = [commits(s, {0: 4, 1: 2}) for s in range(5, 61, 5)]
    member = Held("a", "orders:0,1")
    fake = remembering(
        described(member),
        {"orders:0": 4, "orders:1": 2},
        (0, [generation(1, (member,))]),
        *(in_transactions(*lots) if in_turn else lots),
    )
    if not topic_hidden:
        fake.topics[TRANSACTION_TOPIC] = 2
    written(fake, {0: [1, 2, 3, 59], 1: [1, 2, 3, 4]})
    lagging(fake, in_sync, TRANSACTION_TOPIC)

    def configs(node: int, request: DescribeConfigsRequest) -> Message:
        if request.resources[0].resource_name != TRANSACTION_TOPIC:
            return DescribeConfigsResponse()
        assert said is not None
        return DescribeConfigsResponse(results=(said,))

    fake.on(DescribeConfigsRequest, configs)
    return examine(fake.cluster(), "g", now_ms=205_000)


def told_of(checkup: Checkup) -> list[Diagnosis]:
    return [each for each in checkup.findings if each.code == "KG124"]


def test_transactions_that_cannot_be_stored_are_named_and_no_member_is_blamed() -> None:
    """It was called dead, with the line that removes it: its transactions could not begin."""
    checkup = transacting((1,), answer("2", topic=TRANSACTION_TOPIC))
    (told,) = told_of(checkup)
    assert (told.severity, told.message, told.hint) == (
        "error",
        (
            "__transaction_state-0 has 1 of 3 replicas in sync, and min.insync.replicas is 2: "
            "no transaction begins or ends, and so it is with 1 more of its partitions"
        ),
        "start brokers 2, 3, or wait until they have caught up",
    )
    assert finding(checkup, "KG310").hint == (
        "see KG124 first: while nothing is stored, what members do does not show"
    )


@pytest.mark.parametrize(
    ("in_sync", "said", "in_turn"),
    [
        ((1,), None, False),
        ((1, 2, 3), None, True),
        ((1, 2), answer("2", topic=TRANSACTION_TOPIC), True),
        ((1,), answer(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED, TRANSACTION_TOPIC), True),
    ],
    ids=["it commits in no transaction", "all are in sync", "enough are", "the minimum is hidden"],
)
def test_otherwise_its_member_is_looked_at(in_sync: tuple[int, ...], said: Answer, in_turn: bool) -> None:
    checkup = transacting(in_sync, said, in_turn=in_turn)
    assert not told_of(checkup)
    assert "remove-members" in str(finding(checkup, "KG310").hint)


def test_where_it_is_hidden_whether_transactions_can_be_stored_the_verdict_is_unknown() -> None:
    """With a warning only, the group was healthy: whoever saw less was more certain."""
    denied = answer(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED, TRANSACTION_TOPIC)
    checkup = transacting((1,), denied)
    assert [(each.look, each.code) for each in checkup.unseen] == [
        ("min.insync.replicas", "TOPIC_AUTHORIZATION_FAILED")
    ]
    hidden = transacting((1,), None, topic_hidden=True)
    assert [(each.look, each.code) for each in hidden.unseen] == [
        (TRANSACTION_TOPIC, "UNKNOWN_TOPIC_OR_PARTITION")
    ]


def damaged(at: int, committed: int) -> FakeCluster:
    """A log of four records whose batch at `at` fails its checksum."""
    member = Held("a", "orders:0,1")
    lots = [commits(s, {0: committed, 1: 4}) for s in range(5, 201, 5)]
    fake = remembering(
        described(member),
        {"orders:0": committed, "orders:1": 4},
        (0, [generation(1, (member,))]),
        *lots,
    )
    groups_of(fake).damaged["orders:0"] = at
    return written(fake, {0: [1, 2, 3, 4], 1: [1, 2, 3, 199]})


def test_a_reader_at_a_damaged_batch_does_not_get_beyond_it() -> None:
    """A disk changed a byte: its clients crashed with each poll, and its status was unknown."""
    checkup = examine(damaged(2, committed=2).cluster(), "g", now_ms=205_000)
    told = finding(checkup, "KG321")
    assert (checkup.verdict, told.message) == (
        "sick",
        "partition orders-0: the log is damaged where its reader goes on",
    )
    assert told.evidence == (
        "orders-0: the batch at offset 2 fails its checksum: readers that verify it stop there",
    )


def test_a_damaged_batch_is_seen_where_it_does_not_fit_the_first_answer() -> None:
    """A batch that does not fit counts as one with records: only its time is read from the whole of it."""
    fake = damaged(2, committed=2)
    whole = fake.handlers[FetchRequest]

    def cut(node: int, request: FetchRequest) -> Message:
        answer = whole(node, request)
        assert isinstance(answer, FetchResponse)
        if request.topics[0].partitions[0].partition_max_bytes > FIRST_BYTES:
            return answer
        return FetchResponse(
            responses=tuple(
                replace(topic, partitions=tuple(replace(p, records=(p.records or b"")[:50]) for p in those))
                for topic in answer.responses
                for those in (topic.partitions,)
            )
        )

    checkup = examine(fake.on(FetchRequest, cut).cluster(), "g", now_ms=205_000)
    assert finding(checkup, "KG321").message == (
        "partition orders-0: the log is damaged where its reader goes on"
    )


@pytest.mark.parametrize(
    ("at", "committed"), [(1, 2), (3, 2)], ids=["it has passed it", "it is not there yet"]
)
def test_a_damaged_batch_elsewhere_does_not_stop_it(at: int, committed: int) -> None:
    assert "KG321" not in codes(examine(damaged(at, committed).cluster(), "g", now_ms=205_000))
