"""A shard: its timers, fired in time and by a host that is late, and what it does when it cannot go on."""

from __future__ import annotations

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.outcome import Request
from kgroup.domain import Topic, TopicImage
from kgroup.errors import ErrorCode, StorageError
from kgroup.log.memory import MemoryLog
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kgroup.runtime.shard import Shard

NOW_MS, DELAY_MS, SESSION_MS = 1_000_000, 3000, 10_000
IMAGE = TopicImage.of([Topic("t", b"t" * 16, 1)])
JOIN = JoinGroupRequest(
    group_id="g",
    session_timeout_ms=SESSION_MS,
    rebalance_timeout_ms=60_000,
    member_id="",
    protocol_type="consumer",
    protocols=(JoinGroupRequestProtocol(name="range", metadata=b""),),
)


@pytest.fixture
def shard() -> Shard:
    """A shard at which a member waits for its group to form."""
    made = Shard(0, MemoryLog(), GroupConfig(initial_rebalance_delay_ms=DELAY_MS), 1, IMAGE)
    made.load(NOW_MS)
    assert made.submit(1, Request(JOIN, 3, "client", "/127.0.0.1"), NOW_MS) == []
    return made


def test_nothing_fires_before_its_time(shard: Shard) -> None:
    assert shard.next_wake_ms() == NOW_MS + DELAY_MS
    assert shard.wake(NOW_MS + DELAY_MS - 1) == []


def test_a_late_host_fires_what_was_due_and_reckons_from_now(shard: Shard) -> None:
    late_ms = NOW_MS + DELAY_MS + 5 * SESSION_MS
    assert shard.wake(late_ms, NOW_MS + DELAY_MS - 1) == []
    (reply,) = shard.wake(late_ms, NOW_MS + DELAY_MS)
    assert isinstance(reply.response, JoinGroupResponse)
    assert (reply.ticket, reply.response.error_code) == (1, ErrorCode.NONE)
    assert shard.next_wake_ms() == late_ms + SESSION_MS


def test_who_is_parked_is_told_when_the_shard_is_given_up(shard: Shard) -> None:
    (reply,) = shard.abandon()
    assert isinstance(reply.response, JoinGroupResponse)
    assert (reply.ticket, reply.response.error_code) == (1, ErrorCode.NOT_COORDINATOR)
    assert shard.abandon() == []


def test_nobody_answers_who_went_away(shard: Shard) -> None:
    shard.forget(1)
    assert shard.abandon() == []


def test_what_cannot_be_appended_never_happened(
    shard: Shard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*args: object, **head: object) -> int:
        raise StorageError("no space left on device")

    monkeypatch.setattr(shard.log, "append", full)
    before = shard.coordinator
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="t", partitions=(part,))
    commit = OffsetCommitRequest(
        group_id="other", generation_id_or_member_epoch=-1, member_id="", topics=(topic,)
    )
    own, parked = shard.submit(2, Request(commit, 8, "client", "/127.0.0.1"), NOW_MS)
    assert isinstance(own.response, OffsetCommitResponse)
    assert isinstance(parked.response, JoinGroupResponse)
    assert own.response.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (parked.ticket, parked.response.error_code) == (1, ErrorCode.NOT_COORDINATOR)
    assert shard.coordinator is not before
    assert shard.coordinator.state.offsets.get("other", "t", 0) is None
    assert "nothing can be appended, requests are refused: no space left on device" in caplog.text
