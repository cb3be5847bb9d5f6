"""Compare what two coordinators must agree on when they have read the same log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.coordinator import Coordinator
from kgroup.coordinator.groups import Group
from kgroup.coordinator.outcome import Record
from kgroup.log.memory import MemoryLog
from kgroup.protocol import group_records as r


def difference(one: Coordinator, other: Coordinator) -> str | None:
    """The first thing the two disagree on, in words; None if their hard state is the same."""
    mine, theirs = one.state, other.state
    for group_id in sorted(mine.groups.keys() | theirs.groups.keys()):
        found = group_difference(mine.groups.get(group_id), theirs.groups.get(group_id))
        if found is not None:
            return f"group {group_id}: {found}"
    if _offsets(one) != _offsets(other):
        return "committed offsets"
    return None


def group_difference(one: Group | None, other: Group | None) -> str | None:
    """The first thing two versions of a group disagree on; soft state does not count."""
    if one is not None and other is not None and type(one) is not type(other):
        return f"{type(one).__name__} and {type(other).__name__}"
    if one is None or other is None:
        # A group that never committed anything is soft: it may be there or not.
        rest = one or other
        if rest is None or (isinstance(rest, ClassicGroup) and not rest.committed.generation):
            return None
        return "is there for one only"
    parts = zip(_parts(one), _parts(other), strict=True)
    for (name, left), (_, right) in parts:
        if left != right:
            return f"{name}: {left} and {right}"
    if isinstance(one, ClassicGroup) and isinstance(other, ClassicGroup):
        return _members_difference(one) or _members_difference(other)
    return None


def _parts(group: Group) -> Iterator[tuple[str, Any]]:
    if isinstance(group, ClassicGroup):
        yield "committed", group.committed
        return
    yield "epoch", (group.epoch, group.metadata_hash, group.has_partition_metadata)
    yield "target epoch", (group.assignment_epoch, group.assignment_timestamp_ms)
    yield "targets", group.targets
    yield "members", group.members
    yield "static members", group.static
    yield "patterns", group.resolved
    yield "subscriptions", (group.by_name, group.by_regex, group.by_assignor, group.classic_members)


def _members_difference(group: ClassicGroup) -> str | None:
    """How a classic group with nothing forming differs from what its last record says."""
    if group.forming is not None:
        return None
    stored = {m.member_id: _stored(m) for m in group.committed.members}
    shown = {
        m.member_id: (m.instance_id, m.session_timeout_ms, m.rebalance_timeout_ms, m.assignment)
        for m in group.members.values()
    }
    if stored != shown:
        return f"members {shown}, but its record says {stored}"
    static = {m.group_instance_id: m.member_id for m in group.committed.members if m.group_instance_id}
    return None if static == group.static else f"static members {group.static}, but its record says {static}"


def _stored(member: r.MemberMetadata) -> tuple[Any, ...]:
    rebalance = member.session_timeout if member.rebalance_timeout == -1 else member.rebalance_timeout
    return member.group_instance_id, member.session_timeout, rebalance, member.assignment


def _offsets(coordinator: Coordinator) -> dict[tuple[str, str, int], Any]:
    offsets = coordinator.state.offsets
    return {
        (group_id, topic, number): (stored.value, stored.log_offset)
        for group_id in offsets.groups()
        for topic, by_partition in offsets.of_group(group_id).items()
        for number, stored in by_partition.items()
    }


def compacted(log: MemoryLog) -> Iterable[tuple[Record, int]]:
    """The last record of every key, in order: what a compacted log still says."""
    newest: dict[bytes, tuple[bytes | None, int]] = {}
    for batch in log.batches():
        for stored in batch.records:
            newest.pop(stored.key or b"", None)
            newest[stored.key or b""] = (stored.value, stored.offset)
    for raw, (value, offset) in newest.items():
        key = r.decode_key(raw)
        assert not isinstance(key, r.UnknownKey)
        yield Record(key, r.decode_value(key, value)), offset
