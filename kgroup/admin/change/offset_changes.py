"""Execute a plan of committed offsets: checked again, journalled first, one result per partition."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from kgroup.admin.as_json import document
from kgroup.admin.change.committing import Codes, forget, store
from kgroup.admin.change.offset_plans import (
    CommittedOffset,
    GroupNow,
    OffsetChange,
    OffsetsPlan,
    failed,
    look,
    plan_document,
    refusal_of,
)
from kgroup.admin.discovery import ClusterView
from kgroup.admin.journal import OUTCOME_UNKNOWN
from kgroup.admin.models import SHARE, ChangeStatus
from kgroup.admin.read.in_sync import NOT_AVAILABLE
from kgroup.client.retry import OutcomeUnknown
from kgroup.domain import Document, OffsetAndMetadata, TopicPartition, grouped
from kgroup.errors import ErrorCode, KgroupError
from kgroup.security.rights import READ, lacking, on_group, on_topic

PLAN_STALE = "PLAN_STALE"
_JOINED = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
    }
)
"""The errors with which a coordinator rejects outside commits and deletions while members exist."""


@dataclass(frozen=True, slots=True)
class OffsetsExecution:
    """The results of an executed plan, item by item; no journal entry when nothing was attempted."""

    plan: OffsetsPlan
    items: tuple[OffsetChange, ...]
    journal_id: str | None


def execute_offsets(
    cluster: ClusterView, plan: OffsetsPlan, progress: Callable[[int], None] = lambda count: None
) -> OffsetsExecution:
    """Execute the plan group by group, and record it.

    A group that has become active, or whose offsets are no longer those of the plan, is refused as a whole;
    the others are done. Offsets that were as wanted are checked too. The before-image is in the journal
    before the first request. `progress` is called with the number of groups just done.
    """
    share = {group.group_id for group in plan.groups if group.type == SHARE}
    now = look(cluster, {item.group_id for item in plan.items if _counts(item)}, share)
    items = [_checked(item, now, plan) for item in plan.items]
    # One stale offset excludes the whole group, because half a reset is wrong.
    stale = {item.group_id for item in items if item.error_code == PLAN_STALE}
    items = [
        replace(
            item,
            result=ChangeStatus.REFUSED,
            error_code=PLAN_STALE,
            effect="another offset of the group is stale",
        )
        if item.group_id in stale and item.planned
        else item
        for item in items
    ]
    if not any(item.planned for item in items):
        return OffsetsExecution(plan, tuple(items), None)
    done: list[OffsetChange] = []
    by_group = grouped((item.group_id, item) for item in items)
    named = [_result(item) for mine in by_group.values() for item in mine]
    image = {
        group_id: [
            [item.topic, item.partition, was.offset, was.leader_epoch, was.metadata]
            for item in mine
            if (was := item.before) is not None
        ]
        for group_id, mine in grouped((item.group_id, item) for item in items if item.planned).items()
    }
    before = {"offsets": image}
    with cluster.change(plan.command, plan_document(plan), before, named) as entry:
        for group_id, mine in by_group.items():
            changed = _change(cluster, group_id, mine, share=group_id in share)
            done += changed
            entry.results += map(_result, changed)
            progress(1)
    return OffsetsExecution(plan, tuple(done), entry.id)


def _counts(item: OffsetChange) -> bool:
    """Return whether the plan holds only while this offset is as it was."""
    return item.planned or item.result == ChangeStatus.UNCHANGED


def _checked(item: OffsetChange, now: Mapping[str, GroupNow], plan: OffsetsPlan) -> OffsetChange:
    if not _counts(item):
        return item
    group = now[item.group_id]
    # Brokers change nothing of a share group with members, not even partitions without readers.
    refusal = refusal_of(group) if plan.needs_empty or group.may_refuse else None
    if refusal and item.planned:
        code = NOT_AVAILABLE if group.unstored else ErrorCode.NON_EMPTY_GROUP.name
        if group.error:
            return failed(item, group.error)
        return replace(item, result=ChangeStatus.REFUSED, error_code=code, effect=refusal[0])
    if group.committed.get(item.tp) != item.before:
        text = f"plan {plan.id} is stale: the offset was committed or deleted since it was made"
        return replace(item, result=ChangeStatus.REFUSED, error_code=PLAN_STALE, effect=text)
    return item


def _change(
    cluster: ClusterView, group_id: str, items: list[OffsetChange], *, share: bool
) -> list[OffsetChange]:
    """Commit offsets, then delete others; return the items in their order, each with its outcome.

    Share groups lose whole topics, so their deletions come before the offsets set in them.
    """
    planned = [item for item in items if item.planned]
    to_store = {
        item.tp: OffsetAndMetadata(item.after.offset, item.after.leader_epoch, item.after.metadata)
        for item in planned
        if item.after is not None
    }
    to_forget = [item.tp for item in planned if item.after is None]
    steps: list[Callable[[], tuple[Codes, KgroupError | None]]] = []
    if to_store:
        steps.append(partial(store, cluster, group_id, to_store, share=share))
    if to_forget:
        steps.append(partial(forget, cluster, group_id, to_forget, share=share))
    codes: Codes = {}
    error: KgroupError | None = None
    for step in reversed(steps) if share else steps:
        if error is None:
            done, error = step()
            codes.update(done)
    there: Mapping[TopicPartition, CommittedOffset] | None = None
    if isinstance(error, OutcomeUnknown):
        # What is committed now shows whether a request without a reply was carried out.
        with suppress(KgroupError):
            group = look(cluster, [group_id], [group_id] if share else ())[group_id]
            there = None if group.error else group.committed
    became = [_became(item, codes, error, there) if item.planned else item for item in items]
    gone = {p.topic for p in to_forget if codes.get(p) == ErrorCode.NONE} if share else ()
    return [
        replace(item, effect=f"deleted with its topic, and not set again: {item.effect}")
        if item.topic in gone and item.after and item.result in (ChangeStatus.FAILED, ChangeStatus.REFUSED)
        else item
        for item in became
    ]


def _became(
    item: OffsetChange,
    codes: Mapping[TopicPartition, int],
    error: KgroupError | None,
    there: Mapping[TopicPartition, CommittedOffset] | None,
) -> OffsetChange:
    code = codes.get(item.tp)
    if code == ErrorCode.NONE or (code is None and there is not None and there.get(item.tp) == item.after):
        return replace(item, result=ChangeStatus.DONE)
    if code is None and there is not None and there.get(item.tp) != item.before:
        text = "no reply came and the committed offset is neither the one before nor the one wanted"
        return replace(item, result=ChangeStatus.FAILED, error_code=OUTCOME_UNKNOWN, effect=text)
    if code is None:
        assert error is not None
        if isinstance(error, OutcomeUnknown):
            return replace(item, result=ChangeStatus.FAILED, error_code=OUTCOME_UNKNOWN, effect=error.message)
        return failed(item, error)
    name = ErrorCode.name_of(code)
    if code in _JOINED:
        subscribed = code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        text = "members subscribe to the topic" if subscribed else "a member has joined the group"
        return replace(item, result=ChangeStatus.REFUSED, error_code=name, effect=text)
    missing = lacking(code, on_topic(READ, item.topic), on_group(READ, item.group_id))
    text = "the committed offset is as it was" + (f": {missing}" if missing else "")
    return replace(item, result=ChangeStatus.FAILED, error_code=name, effect=text)


def _result(item: OffsetChange) -> Document:
    made = document(item)
    del made["before"], made["after"], made["lasting"]
    return made
