"""What happens at the start of service, after the last record of the log was replayed (spec 1.5)."""

from __future__ import annotations

import pytest

from kgroup.coordinator.config import GroupConfig
from kgroup.protocol import group_records as r
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.runtime.shard import Shard
from tests.unit.coordinator.shards import NOW_MS, ask, shard_over


def _member(member_id: str, session_ms: int = 10_000, instance_id: str | None = None) -> r.MemberMetadata:
    return r.MemberMetadata(
        member_id=member_id,
        group_instance_id=instance_id,
        client_id="c",
        client_host="/h",
        rebalance_timeout=20_000,
        session_timeout=session_ms,
        subscription=b"",
        assignment=b"",
    )


def _stable(*members: r.MemberMetadata, config: GroupConfig | None = None) -> Shard:
    value = r.GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="a", members=members
    )
    return shard_over([(r.GroupMetadataKey(group="g"), value)], config=config)


def _state(shard: Shard) -> tuple[str, list[str]]:
    group = shard.coordinator.state.groups["g"]
    return str(group.state), sorted(group.members)


def test_every_classic_member_has_a_session_of_its_own_length() -> None:
    """SM-71: sessions start anew when another broker takes over."""
    shard = _stable(_member("a"), _member("b", 30_000))
    shard.wake(NOW_MS + 9_999)
    assert _state(shard) == ("Stable", ["a", "b"])
    shard.wake(NOW_MS + 10_000)
    assert _state(shard) == ("PreparingRebalance", ["b"])


def test_a_group_larger_than_now_allowed_rebalances() -> None:
    shard = _stable(_member("a"), _member("b"), config=GroupConfig(max_size=1))
    assert _state(shard) == ("PreparingRebalance", ["a", "b"])
    beat = HeartbeatRequest(group_id="g", generation_id=3, member_id="a")
    assert ask(shard, beat).error_code == 27  # type: ignore[union-attr]


@pytest.mark.parametrize("members", [(), (_member("a"),)])
def test_other_groups_are_as_their_last_record_says(members: tuple[r.MemberMetadata, ...]) -> None:
    shard = _stable(*members)
    assert _state(shard) == ("Stable" if members else "Empty", [m.member_id for m in members])
    assert shard.log.end_offset == 1
