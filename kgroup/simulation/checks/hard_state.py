"""Compares what two coordinators must agree on after reading the same log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import itemgetter

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.coordinator import Coordinator
from kgroup.coordinator.outcome import Record
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.state import Group
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.log.memory import MemoryLog
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import LogRecord


def difference(one: Coordinator, other: Coordinator) -> str | None:
    """Return the first difference of the two, as text; None if their hard state is the same."""
    mine, theirs = one.state, other.state
    for group_id in sorted(mine.groups.keys() | theirs.groups.keys()):
        reason = group_difference(mine.groups.get(group_id), theirs.groups.get(group_id))
        if reason is not None:
            return f"group {group_id}: {reason}"
    if _offsets(one) != _offsets(other):
        return "committed offsets"
    return None


def group_difference(one: Group | None, other: Group | None) -> str | None:
    """Return the first difference of two versions of a group; soft state does not count."""
    if one is not None and other is not None and type(one) is not type(other):
        return f"{type(one).__name__} and {type(other).__name__}"
    if one is None or other is None:
        # A group that never committed anything is soft: it may exist or not.
        rest = one or other
        if rest is None or (isinstance(rest, ClassicGroup) and not rest.committed.generation):
            return None
        return "exists for one only"
    parts = zip(_parts(one), _parts(other), strict=True)
    for (name, left), (_, right) in parts:
        if left != right:
            return f"{name}: {left} and {right}"
    if isinstance(one, ClassicGroup) and isinstance(other, ClassicGroup):
        return _members_difference(one) or _members_difference(other)
    return None


def _parts(group: Group) -> Iterator[tuple[str, object]]:
    if isinstance(group, ClassicGroup):
        yield "committed", group.committed
        return
    if isinstance(group, StreamsGroup):
        topics = group.metadata_hash, group.validated_topology_epoch
        yield "epoch", (group.epoch, *topics, group.assignment_configs)
        yield "target epoch", (group.assignment_epoch, group.assignment_timestamp_ms)
        yield "targets", group.targets
        yield "members", group.members
        yield "topology", group.topology
        return
    if isinstance(group, ShareGroup):
        yield "epoch", (group.epoch, group.metadata_hash)
        yield "target epoch", (group.assignment_epoch, group.assignment_timestamp_ms)
        yield "targets", group.targets
        yield "members", group.members
        yield "partitions with state", group.kept
        return
    yield "epoch", (group.epoch, group.metadata_hash, group.has_partition_metadata)
    yield "target epoch", (group.assignment_epoch, group.assignment_timestamp_ms)
    yield "targets", group.targets
    yield "members", group.members
    yield "static members", group.static
    yield "patterns", group.resolved
    yield "subscriptions", (group.by_name, group.by_regex, group.by_assignor, group.classic_members)


def _members_difference(group: ClassicGroup) -> str | None:
    """Return how a classic group without a rebalance in progress differs from its last record."""
    if group.forming is not None:
        return None
    stored = {
        m.member_id: (
            m.group_instance_id,
            m.session_timeout,
            m.session_timeout if m.rebalance_timeout == -1 else m.rebalance_timeout,
            m.assignment,
        )
        for m in group.committed.members
    }
    shown = {
        m.member_id: (m.instance_id, m.session_timeout_ms, m.rebalance_timeout_ms, m.assignment)
        for m in group.members.values()
    }
    if stored != shown:
        return f"members {shown}, but its record says {stored}"
    static = {m.group_instance_id: m.member_id for m in group.committed.members if m.group_instance_id}
    return None if static == group.static else f"static members {group.static}, but its record says {static}"


def _offsets(
    coordinator: Coordinator,
) -> tuple[dict[tuple[str, str, int], tuple[r.OffsetCommitValue, int]], dict[str, list[tuple[str, int]]]]:
    """Return committed offsets, and pending ones of open transactions."""
    offsets = coordinator.state.offsets
    committed = {
        (group_id, topic, number): (stored.value, stored.log_offset)
        for group_id in offsets.groups()
        for topic, by_partition in offsets.of_group(group_id).items()
        for number, stored in by_partition.items()
    }
    held = {group_id: sorted(offsets.pending_partitions(group_id)) for group_id in offsets.groups()}
    return committed, {group_id: partitions for group_id, partitions in held.items() if partitions}


def compacted(log: MemoryLog) -> Iterable[tuple[Record, int, int]]:
    """Yield what a compacted log retains: the last record of every key, its offset, and its producer id.

    Aborted records are gone, and committed ones are as any other record (-1). Records of open transactions
    come last.
    """
    entries: list[tuple[int, LogRecord]] = []
    open_now: dict[int, list[tuple[int, LogRecord]]] = {}
    for batch in log.batches():
        marker = batch.end_marker
        if marker is not None:
            ended = open_now.pop(batch.producer_id, [])
            entries += ended if marker.committed else []
            continue
        to = open_now.setdefault(batch.producer_id, []) if batch.transactional else entries
        to += [(stored.offset, stored) for stored in batch.records]
    newest: dict[bytes, LogRecord] = {}
    for _, stored in sorted(entries, key=itemgetter(0)):
        newest.pop(stored.key or b"", None)
        newest[stored.key or b""] = stored
    for stored in newest.values():
        yield _record(stored), stored.offset, -1
    for producer_id, held in open_now.items():
        for offset, stored in held:
            later = newest.get(stored.key or b"")
            if later is None or later.value is not None or later.offset < offset:
                yield _record(stored), offset, producer_id


def _record(stored: LogRecord) -> Record:
    key = r.decode_key(stored.key or b"")
    assert not isinstance(key, r.UnknownKey)
    return Record(key, r.decode_value(key, stored.value))
