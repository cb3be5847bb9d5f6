"""KG316 to KG318: what doctor reports of a share group's deliveries, on the embedded cluster (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kgroup.admin.diagnose.checks import Diagnosis
from kgroup.admin.diagnose.doctor import Checkup, examine_all
from kgroup.admin.discovery import ClusterView
from kgroup.broker.embedded import EmbeddedTransport
from kgroup.domain import SHARE_STATE_TOPIC
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgroup.runtime.clock import ManualClock
from kgroup.runtime.cluster import Cluster
from kgroup.share.settle import Acknowledge
from tests.unit.broker.brokers import create_topic
from tests.unit.broker.share_consumers import Member, configure, records, said

LIMIT, HOUR_MS = 3, 3_600_000


@pytest.fixture
def transport(tmp_path: Path) -> Iterator[EmbeddedTransport]:
    clock = ManualClock(1_700_000_000_000)
    made = EmbeddedTransport(Cluster(tmp_path, brokers=3, offsets_partitions=1, clock=clock))
    create_topic(made, "t")
    configure(made, "g", share_auto_offset_reset="earliest", share_delivery_count_limit=f"{LIMIT}")
    yield made
    made.close()


@pytest.fixture
def member(transport: EmbeddedTransport) -> Member:
    """A member that accepts 0, rejects 1, releases 2 until the limit and 3 once."""
    made = Member(transport, "m")
    made.join()
    records(transport, b"0", b"1", b"2", b"3")
    made.fetch()
    made.acknowledge(said(0, 0), said(1, 1, Acknowledge.REJECT), said(2, 3, Acknowledge.RELEASE))
    made.fetch()
    made.acknowledge(said(2, 2, Acknowledge.RELEASE), said(3, 3))
    made.fetch()
    made.acknowledge(said(2, 2, Acknowledge.RELEASE))
    return made


class WithoutRight(EmbeddedTransport):
    """The same cluster, for a principal without a right to the topic of deliveries."""

    def request(self, node: int | None, message: Message, **options: Any) -> Message:
        answer = super().request(node, message, **options)
        if isinstance(message, MetadataRequest) and isinstance(answer, MetadataResponse):
            denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            topics = (
                replace(topic, error_code=denied, partitions=()) if topic.name == SHARE_STATE_TOPIC else topic
                for topic in answer.topics
            )
            answer = replace(answer, topics=tuple(topics))
        return answer


def examined(
    transport: EmbeddedTransport, *left_out: str, window_ms: int = HOUR_MS, later_ms: int = 0
) -> Checkup:
    now_ms = transport.cluster.clock.now_ms() + later_ms
    (checkup,) = examine_all(
        ClusterView(transport), ["g"], now_ms=now_ms, window_ms=window_ms, left_out=left_out, patience_s=0
    ).checkups
    return checkup


def found(checkup: Checkup) -> dict[str, Diagnosis]:
    return {each.code: each for each in checkup.findings}


def test_what_was_given_up_is_reported_by_how_it_ended(transport: EmbeddedTransport, member: Member) -> None:
    checkup = examined(transport)
    told = found(checkup)
    assert checkup.unseen == () and checkup.healthy is True
    assert told["KG316"].message.startswith("1 record was given up since ")
    assert told["KG316"].message.endswith("at the limit of 3 deliveries")
    assert "t-0: 1 record given up after 3 deliveries: 2" in told["KG316"].evidence[0]
    assert told["KG317"].message.startswith("1 record was rejected by members since ")
    assert "t-0: 1 record given up after 1 delivery: 1" in told["KG317"].evidence[0]
    assert told["KG318"].message.startswith("records came back 3 times since ")
    assert told["KG118"].evidence == ("the log has every record that was released or given up",)


def test_without_the_limit_a_rejection_and_the_limit_are_not_told_apart(
    transport: EmbeddedTransport, member: Member
) -> None:
    told = found(examined(transport, "settings"))
    assert told["KG316"].message.endswith("rejected, or at the delivery limit")
    assert told["KG317"].message.startswith("1 record was rejected")


def test_a_limit_that_is_higher_now_leaves_it_open(transport: EmbeddedTransport, member: Member) -> None:
    configure(transport, "g", share_delivery_count_limit="5")
    told = found(examined(transport))
    assert "KG316" not in told
    assert told["KG317"].message.startswith("2 records were rejected by members")
    assert told["KG317"].evidence[-1] == "unless the limit was lower then"


def test_what_was_before_the_window_is_no_finding(transport: EmbeddedTransport, member: Member) -> None:
    assert not {"KG316", "KG317", "KG318"} & found(examined(transport, window_ms=1000, later_ms=2000)).keys()


def test_without_history_nothing_is_said_of_what_was_given_up(
    transport: EmbeddedTransport, member: Member
) -> None:
    told = found(examined(transport, "history"))
    assert not {"KG316", "KG317", "KG318"} & told.keys() and told["KG118"].evidence == ()


def test_a_lock_that_times_out_looks_like_a_release(transport: EmbeddedTransport) -> None:
    member = Member(transport, "m")
    member.join()
    records(transport, b"0", b"1")
    member.fetch()
    transport.run_until(transport.cluster.clock.now_ms() + 60_000)
    member.beat()
    told = found(examined(transport))
    assert told["KG318"].message.endswith(": released, or their locks timed out")
    assert told["KG318"].hint is not None and "AcquisitionLockTimeoutPerSec" in told["KG318"].hint


def test_deliveries_that_may_not_be_read_leave_the_verdict_unknown(
    transport: EmbeddedTransport, member: Member
) -> None:
    checkup = examined(WithoutRight(transport.cluster))
    assert checkup.verdict == "unknown"
    assert [(each.look, each.code) for each in checkup.unseen] == [("history", "TOPIC_AUTHORIZATION_FAILED")]
    assert not {"KG316", "KG317", "KG318"} & found(checkup).keys()


def test_a_log_that_begins_later_says_from_when_on(transport: EmbeddedTransport, member: Member) -> None:
    """Brokers delete what lies before the newest snapshots."""
    logs = (transport.cluster.log(SHARE_STATE_TOPIC, number) for number in range(50))
    log = next(log for log in logs if log is not None and log.end_offset > 1)
    log.delete_before(log.end_offset - 1)
    told = found(examined(transport))
    assert "KG317" not in told
    assert told["KG118"].evidence[0].endswith("on; brokers deleted what was before")
