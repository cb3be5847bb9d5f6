"""KG123: too few replicas of `__consumer_offsets` are in sync, so the coordinator can store nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kgroup.admin.diagnose.checks import Diagnosis
from kgroup.admin.diagnose.doctor import Checkup
from kgroup.domain import OFFSETS_TOPIC
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.unit.admin.doctor_logs import Held, commits_up_to, described, generation, remembering, written
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.test_doctor_checks import codes, examine

A, B = Held("a", "orders:0"), Held("b", "orders:1")
REPLICAS = (1, 2, 3)
Answer = DescribeConfigsResult | None
"""What the broker says of the topic's settings; None: it must not be asked."""


def answer(minimum: str | None, error: int = 0, topic: str = OFFSETS_TOPIC) -> DescribeConfigsResult:
    told = DescribeConfigsResourceResult(name="min.insync.replicas", value=minimum)
    return DescribeConfigsResult(
        resource_type=2,
        resource_name=topic,
        error_code=error,
        configs=() if minimum is None else (told,),
    )


def seen(in_sync: tuple[int, ...], said: Answer) -> Checkup:
    """A group of which one member was killed two minutes ago, as far as its commits show."""
    fake = remembering(
        described(A, B),
        {"orders:0": 4, "orders:1": 2},
        (0, [generation(1, (A, B))]),
        *commits_up_to(range(5, 201, 5), {0: (4, 200), 1: (2, 60)}),
    )
    written(fake, {0: [1, 2, 3, 199], 1: [1, 2, 3, 4]})
    lagging(fake, in_sync)

    usual = fake.handlers[DescribeConfigsRequest]

    def configs(node: int, request: DescribeConfigsRequest) -> Message:
        if request.resources[0].resource_name != OFFSETS_TOPIC:
            return usual(node, request)
        assert said is not None
        return DescribeConfigsResponse(results=(said,))

    fake.on(DescribeConfigsRequest, configs)
    return examine(fake.cluster(), "g", now_ms=205_000)


def lagging(fake: FakeCluster, in_sync: tuple[int, ...], of: str = OFFSETS_TOPIC) -> None:
    usual = fake.handlers[MetadataRequest]

    def metadata(node: int, request: MetadataRequest) -> Message:
        told = usual(node, request)
        assert isinstance(told, MetadataResponse)
        topics = [
            replace(
                topic,
                partitions=tuple(
                    replace(p, replica_nodes=REPLICAS, isr_nodes=in_sync if topic.name == of else REPLICAS)
                    for p in topic.partitions
                ),
            )
            for topic in told.topics
        ]
        return replace(told, topics=tuple(topics))

    fake.on(MetadataRequest, metadata)


def finding(checkup: Checkup, code: str) -> Diagnosis:
    return next(each for each in checkup.findings if each.code == code)


def test_nothing_can_be_stored_and_its_members_are_not_blamed() -> None:
    """They were to be removed, and came back to a coordinator that refuses every commit."""
    checkup = seen((1,), answer("2"))
    assert checkup.verdict == "sick"
    told = finding(checkup, "KG123")
    assert told.message == (
        "__consumer_offsets-0 has 1 of 3 replicas in sync, and min.insync.replicas is 2: "
        "no commit is accepted, no rebalance completes"
    )
    assert told.hint == "start brokers 2, 3, or wait until they have caught up"
    assert finding(checkup, "KG310").hint == (
        "see KG123 first: while nothing is stored, what members do does not show"
    )


@pytest.mark.parametrize(
    ("in_sync", "said"),
    [(REPLICAS, None), ((1, 3), answer("2"))],
    ids=["all are in sync: nothing is asked", "as many as are needed"],
)
def test_where_enough_are_in_sync_nothing_is_said(in_sync: tuple[int, ...], said: Answer) -> None:
    checkup = seen(in_sync, said)
    assert "KG123" not in codes(checkup) and not checkup.unseen
    assert "remove-members" in str(finding(checkup, "KG310").hint)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (answer(None), "NOT_TOLD"),
        (answer("many"), "NOT_TOLD"),
        (answer(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED), "TOPIC_AUTHORIZATION_FAILED"),
    ],
    ids=["not reported", "no number", "no right"],
)
def test_where_the_minimum_is_not_known_so_is_whether_it_can_store(said: Answer, code: str) -> None:
    checkup = seen((1,), said)
    assert "KG123" not in codes(checkup)
    assert [(each.look, each.code) for each in checkup.unseen] == [("min.insync.replicas", code)]
