"""What a deletion of committed offsets leaves unread: the lag of each partition, unknown where unseen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kgroup.admin.change.offset_plans import GroupNow, OffsetChange, OffsetsPlan
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import SHARE, ItemError, UnreadOffset
from kgroup.admin.read.offsets import LATEST, ListedOffset, list_offsets
from kgroup.admin.read.share_offsets import NOT_COUNTED
from kgroup.admin.refusals import code_name
from kgroup.domain import TopicPartition, count_of, first_of
from kgroup.errors import ErrorCode, KgroupError

Unread = Mapping[str, tuple[UnreadOffset, ...]]
NOTHING_UNREAD = "nothing is unread"
_GONE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name
"""A topic that does not exist is seen: nothing can be read from it."""


def unread_offsets(cluster: ClusterView, now: Mapping[str, GroupNow]) -> Unread:
    """Return the lag of every committed offset, by group."""
    partitions = {partition for group in now.values() for partition in group.committed}
    ends = list_offsets(cluster, dict.fromkeys(partitions, LATEST))
    return {
        name: tuple(_unread(group, partition, ends[partition]) for partition in sorted(group.committed))
        for name, group in now.items()
    }


def _unread(group: GroupNow, partition: TopicPartition, end: ListedOffset | KgroupError) -> UnreadOffset:
    at = group.committed[partition].offset
    lag: int | None = None
    reason, code = None, None
    if isinstance(end, KgroupError):
        reason, code = end.message, code_name(end)
    elif group.type == SHARE:
        lag = group.share.lags.get(partition) if group.share is not None else None
        reason = None if lag is not None else NOT_COUNTED
    elif at > end.offset:
        reason = f"it lies beyond the end of the log, {end.offset}"
    else:
        lag = end.offset - at
    return UnreadOffset(partition.topic, partition.partition, at, lag, reason, code)


def unread_text(rows: Sequence[UnreadOffset]) -> str:
    """Return how many records are unread, with their partitions, and where that is unknown."""
    behind = [f"{row.topic}:{row.partition} {row.lag}" for row in rows if row.lag]
    total = sum(row.lag or 0 for row in rows)
    unknown = [f"{row.topic}:{row.partition}" for row in rows if row.lag is None]
    parts = [f"{count_of(total, 'record')} unread ({first_of(behind, 3)})"] if behind else []
    if unknown:
        parts.append(f"unread records unknown for {first_of(unknown, 3)}")
    return ", ".join(parts) or NOTHING_UNREAD


def with_unread(cluster: ClusterView, plan: OffsetsPlan, now: Mapping[str, GroupNow]) -> OffsetsPlan:
    """Return a plan of deletions that says how many records each of them leaves unread."""
    unread = unread_offsets(cluster, now)
    rows = {(name, row.topic, row.partition): row for name, mine in unread.items() for row in mine}
    items = []
    told: dict[str, list[UnreadOffset]] = {}
    for item in plan.items:
        row = rows.get((item.group_id, item.topic, item.partition))
        if row is None or not item.planned:
            items.append(item)
            continue
        told.setdefault(item.group_id, []).append(row)
        items.append(replace(item, lag=row.lag, effect=row.reason or item.effect, lag_error=_unseen(row)))
    groups = []
    for group in plan.groups:
        text = unread_text(told.get(group.group_id, ()))
        also = None if text == NOTHING_UNREAD else f"{group.group_id}: {text}"
        groups.append(replace(group, caution=". ".join(filter(None, (group.caution, also))) or None))
    return replace(plan, items=tuple(items), groups=tuple(groups))


def not_seen(group_id: str, rows: Iterable[UnreadOffset | OffsetChange]) -> list[ItemError]:
    """Return the error of a group with lags that could not be read; none for deleted topics."""
    hidden = [(row, code) for row in rows if (code := _unseen(row))]
    if not hidden:
        return []
    partitions = first_of([f"{row.topic}:{row.partition}" for row, _ in hidden], 3)
    return [ItemError(group_id, hidden[0][1], f"{group_id}: unread records are unknown for {partitions}")]


def _unseen(row: UnreadOffset | OffsetChange) -> str | None:
    code = row.lag_error if isinstance(row, OffsetChange) else row.error_code
    return None if code == _GONE else code
