"""What a restart must not forget, as a value: two coordinators of one log must agree on it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from kgroup.coordinator.classic.group import NO_REBALANCE_TIMEOUT, ClassicGroup, ClassicMember
from kgroup.coordinator.coordinator import Coordinator
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import Group
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.log.interface import Log
from kgroup.log.memory import MemoryLog
from kgroup.runtime.shard import Shard


def hard_state(coordinator: Coordinator) -> dict[str, Any]:
    """Committed values of classic groups, consumer groups whole, offsets and those of open transactions."""
    state = coordinator.state
    groups = {group_id: _group(group) for group_id, group in state.groups.items()}
    offsets = state.offsets
    committed = {
        (group_id, topic, number): (stored.value, stored.log_offset)
        for group_id in offsets.groups()
        for topic, by_partition in offsets.of_group(group_id).items()
        for number, stored in by_partition.items()
    }
    pending = deepcopy(offsets._pending)  # nobody else needs all of it
    return {
        "groups": groups,
        "offsets": committed,
        "pending": pending,
    }


def _group(group: Group) -> Any:
    if isinstance(group, ClassicGroup):
        return _classic(group)
    if isinstance(group, StreamsGroup):
        return _streams(group)
    if isinstance(group, ShareGroup):
        return _share(group)
    owners = {
        (topic_id, number): group.owner_epoch(topic_id, number)
        for member in group.members.values()
        for held in (member.current.assigned, member.current.revoking)
        for topic_id, numbers in held.items()
        for number in numbers
    }
    return {
        "epoch": (group.epoch, group.metadata_hash, group.has_partition_metadata),
        "target": (group.assignment_epoch, group.assignment_timestamp_ms, dict(group.targets)),
        "members": dict(group.members),
        "static": dict(group.static),
        "resolved": dict(group.resolved),
        "counts": (dict(group.by_name), dict(group.by_regex), dict(group.by_assignor), group.classic_members),
        "owners": owners,
    }


def _streams(group: StreamsGroup) -> Any:
    return {
        "epoch": (group.epoch, group.metadata_hash, group.validated_topology_epoch),
        "configs": dict(group.assignment_configs),
        "target": (group.assignment_epoch, group.assignment_timestamp_ms, dict(group.targets)),
        "members": dict(group.members),
        "topology": group.topology,
    }


def _share(group: ShareGroup) -> Any:
    return {
        "epoch": (group.epoch, group.metadata_hash),
        "target": (group.assignment_epoch, dict(group.targets)),
        "members": dict(group.members),
        "kept": group.kept,
    }


def _classic(group: ClassicGroup) -> Any:
    """What the last record says; and, while nothing forms on top of it, that the group shows just that."""
    shown = None
    if group.forming is None:
        shown = (
            group.state,
            dict(group.static),
            [_shown(group, member) for member in group.members.values()],
        )
    return {"committed": group.committed, "shown": shown}


def _shown(group: ClassicGroup, member: ClassicMember) -> Any:
    session_ms, rebalance_ms = member.session_timeout_ms, member.rebalance_timeout_ms
    return (
        (member.member_id, member.instance_id, member.client_id, member.client_host),
        # A record that holds -1 is read as one from before there were rebalance timeouts, in Kafka too.
        (session_ms, session_ms if rebalance_ms == NO_REBALANCE_TIMEOUT else rebalance_ms),
        (member.metadata(group.protocol), member.assignment),
    )


def same_hard_state(one: Coordinator, other: Coordinator) -> None:
    """Assert that both hold the same hard state; where soft state hides a part, only the rest counts."""
    left, right = hard_state(one), hard_state(other)
    for group_id, group in left["groups"].items():
        twin = right["groups"].get(group_id)
        if isinstance(twin, dict) and "shown" in twin and group.get("shown") is None:
            twin["shown"] = None
    assert left == right


def copy_of(log: Log, batches: int | None = None) -> MemoryLog:
    """The log's first batches (None: all) in a log of their own."""
    copied = MemoryLog()
    raw = [batch.raw for batch in log.batches(log.start_offset)][:batches]
    for data in raw:
        copied.append_batches(data)
    return copied


def reloaded(shard: Shard, now_ms: int, seed: int = 2) -> Shard:
    """A second shard from a copy of the first one's log."""
    state = shard.coordinator.state
    twin = Shard(shard.partition, copy_of(shard.log), state.config, seed, state.image)
    twin.load(now_ms)
    return twin
