"""Changes of committed offsets: planned from the offsets before, executed with a journal entry.

Resets, imports, clones, deletions and undos of offsets have one form: an offset before and one after for each
partition. Frozen values of plain types, so that `dataclasses.asdict` is JSON.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Annotated, Any

from kgroup.admin.as_json import document
from kgroup.admin.discovery import ClusterView
from kgroup.admin.journal import actor
from kgroup.admin.models import (
    CLASSIC,
    DEAD,
    EMPTY,
    SHARE,
    STREAMS,
    ChangeStatus,
    Commits,
    GroupDescription,
    GroupType,
    ItemError,
    PlannedItem,
    TopicDescription,
)
from kgroup.admin.read.applications import is_streams_metadata
from kgroup.admin.read.describe import groups_only
from kgroup.admin.read.in_sync import NOT_AVAILABLE, unstored
from kgroup.admin.read.lag import readers_known, topics_matched, topics_read
from kgroup.admin.read.listing import list_groups
from kgroup.admin.read.offsets import LATEST, ListedOffset, leader_of, list_offsets
from kgroup.admin.read.outside import outside_commits
from kgroup.admin.read.share_offsets import ShareOffsets, stored_offsets, unread_starts
from kgroup.admin.read.visibility import sees_every_topic, unseen_offsets
from kgroup.admin.refusals import code_name, is_absent
from kgroup.admin.shell import command, word
from kgroup.domain import (
    SHARE_STATE_TOPIC,
    Document,
    MemberStatus,
    OffsetAndMetadata,
    TopicPartition,
    count_of,
    first_of,
    grouped,
)
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, KgroupError
from kgroup.history.fold.marks import Mark
from kgroup.protocol.subscription import PROTOCOL_TYPE

ABSENT = "absent"
"""The state of a group that does not exist; offsets can be committed for it."""
UNREAD = "unknown"
"""The state of a group that could not be read."""
SUBSCRIBED = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC.name
"""The answer to a deletion of an offset that its members read from."""
SAFETY_REFUSED = "SAFETY_REFUSED"
"""The code of a start offset that could be deleted only together with others."""
_NOT_THERE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
_INACTIVE = frozenset({ABSENT, EMPTY, DEAD})


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """A committed offset as the broker keeps it; `leader_epoch` is -1 when unset."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""

    @classmethod
    def of(cls, committed: OffsetAndMetadata | None) -> CommittedOffset | None:
        return (
            None if committed is None else cls(committed.offset, committed.leader_epoch, committed.metadata)
        )


@dataclass(frozen=True, slots=True)
class Draft:
    """The planned offset of one partition; None for `after` deletes the committed offset.

    With an `error_code` the change is impossible, for the reason in `effect`. A `lasting` one has no undo.
    """

    after: CommittedOffset | None
    effect: str = ""
    error_code: str | None = None
    lasting: bool = False


Drafts = Mapping[TopicPartition, Draft]


@dataclass(frozen=True, slots=True)
class OffsetChange(PlannedItem):
    """One partition of a plan. `result` is planned, unchanged, done, refused or failed; `lasting` as drafted.

    `lag` is of `offsets delete` alone: what was not read, None for an unknown one, with `lag_error` as the
    code where it could not be seen.
    """

    group_id: str
    topic: str
    partition: int
    before: CommittedOffset | None
    after: CommittedOffset | None
    result: ChangeStatus
    error_code: str | None = None
    effect: str = ""
    lag: int | None = None
    lag_error: str | None = None
    lasting: bool = False

    @property
    def tp(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """A group of a plan as found; `refusal` says why its committed offsets cannot be changed now.

    `hint` of an absent group without a refusal says how to go on: the plan would not create it.
    """

    group_id: str
    type: GroupType | None
    state: Annotated[str, "absent, or unknown for one that could not be read"]
    members: int | None
    refusal: str | None = None
    hint: str | None = None
    error_code: str | None = None
    caution: Annotated[
        str | None,
        "what the change leaves behind, or forgets: stores of Kafka Streams, deliveries, unread records",
    ] = None
    done_beyond: Annotated[
        int | None,
        "of a share group: at most how many records beyond its start offsets are done; null: unknown",
    ] = None


@dataclass(frozen=True, slots=True)
class OffsetsPlan:
    """Changes of committed offsets not yet made; valid while the offsets are those before.

    `undoes` is the journal entry that the plan undoes. `needs_empty` is off where the broker itself decides
    partition by partition (deleting offsets). `unsure` says of which groups it is not known whether their
    coordinators can store anything.
    """

    id: str
    command: str
    spec: str
    created_ms: int
    actor: str
    reason: str | None
    groups: tuple[PlannedGroup, ...]
    items: tuple[OffsetChange, ...]
    needs_empty: bool = True
    undoes: str | None = None
    unsure: tuple[ItemError, ...] = ()

    @property
    def refused(self) -> tuple[PlannedGroup, ...]:
        """The groups that would be refused now."""
        return tuple(group for group in self.groups if group.refusal)


@dataclass(frozen=True, slots=True)
class GroupNow:
    """A group and its committed offsets at one moment; `error` when they could not be read.

    `unseen`: there may be more, in topics that this principal may not see or that could not be read.
    `no_offsets` says why there are none, where members of its kind commit nothing. For a share group
    `committed` are its start offsets, `share` its coordinator's report, and `done_beyond` at most how many
    records beyond them are acknowledged or given up, None if unknown. `outside` says who commits without
    being a member, or why that is unknown: `look_before` asks for it. `subscribed` are the topics of its
    members, None where that is not shown. With `foreign` members its coordinator deletes no offset.
    `unstored` says why its coordinator can store nothing, and what to do about it; `unsure` why that is not
    known.
    """

    group_id: str
    type: str | None
    state: str
    members: int | None
    committed: Mapping[TopicPartition, CommittedOffset]
    away: int = 0
    error: KgroupError | None = None
    unseen: ItemError | None = None
    no_offsets: str | None = None
    share: ShareOffsets | None = None
    done_beyond: int | None = None
    outside: str | None = None
    subscribed: frozenset[str] | None = frozenset()
    foreign: bool = False
    unstored: tuple[str, str] | None = None
    unsure: ItemError | None = None

    @property
    def may_refuse(self) -> bool:
        """Whether something else than what its members subscribe to decides on a deletion of its offsets."""
        return bool(self.error or self.foreign or self.unstored) or self.type == SHARE


def look_before(
    cluster: ClusterView, group_ids: Iterable[str], share: Collection[str] = ()
) -> dict[str, GroupNow]:
    """Return what `look` does, and of groups without members whether a reader commits from outside."""
    groups = look(cluster, group_ids, share)
    asked = [
        name
        for name, group in groups.items()
        if group.state in _INACTIVE and group.type != SHARE and (group.committed or group.unseen)
    ]
    for name, seen in outside_commits(cluster, asked).items():
        if isinstance(seen, KgroupError):
            seen = f"whether a reader commits from outside the membership is not known: {seen.message}"
        groups[name] = replace(groups[name], outside=seen)
    return groups


def look(cluster: ClusterView, group_ids: Iterable[str], share: Collection[str] = ()) -> dict[str, GroupNow]:
    """Return each group as it is now; absent ones count as share groups if they are in `share`."""
    names = list(dict.fromkeys(group_ids))
    described = groups_only(cluster, names)
    shares = {
        name
        for name, group in described.items()
        if (is_absent(group) and name in share)
        or (isinstance(group, GroupDescription) and group.type == SHARE)
    }
    offsets, reports = stored_offsets(cluster, names, shares)
    shared = {name: report for name, report in reports.items() if isinstance(report, ShareOffsets)}
    done = _done_beyond(cluster, shared)
    complete = sees_every_topic(cluster) if offsets else True
    unsure = any(report.without_start for report in shared.values())
    stores = cluster.topics([SHARE_STATE_TOPIC]).get(SHARE_STATE_TOPIC) if unsure else None
    # The first reason why some of a group's start offsets may not have been reported.
    unread = {name: next(iter(unread_starts(name, report, stores)), None) for name, report in shared.items()}
    groups = {}
    for group_id in names:
        unseen = unread.get(group_id) if complete else unseen_offsets(group_id)
        group, stored = described[group_id], offsets.get(group_id, Commits())
        error = group if isinstance(group, KgroupError) and not is_absent(group) else None
        if isinstance(stored, KgroupError):
            error, stored = error or (None if is_absent(stored) else stored), Commits()
        known = {p: CommittedOffset(o.offset, o.leader_epoch, o.metadata) for p, o in stored.by_place.items()}
        if group_id in shares:
            known = {p: CommittedOffset(at.offset) for p, at in known.items()}
        if isinstance(group, KgroupError):
            state, members = (ABSENT, 0) if error is None else (UNREAD, None)
            kind = SHARE if group_id in shares else None
            groups[group_id] = GroupNow(group_id, kind, state, members, known, 0, error, unseen)
        else:
            none = None if known else group.no_offsets
            groups[group_id] = GroupNow(
                group_id,
                group.type,
                group.state,
                group.member_count,
                known,
                away=sum(member.state == MemberStatus.LEFT for member in group.known_members),
                error=error,
                unseen=unseen,
                no_offsets=none,
                share=shared.get(group_id),
                done_beyond=done.get(group_id),
                subscribed=_subscribed(group, {partition.topic for partition in known}),
                foreign=group.type == CLASSIC and group.protocol_type not in ("", PROTOCOL_TYPE),
            )
    for name, why in unstored(cluster, names).items():
        here = groups[name]
        groups[name] = (
            replace(here, unsure=why) if isinstance(why, ItemError) else replace(here, unstored=why)
        )
    return groups


def _subscribed(group: GroupDescription, topics: Collection[str]) -> frozenset[str] | None:
    """Return which of these topics members subscribe to, or others; None where not all is shown."""
    known = readers_known(group) and all(
        member.subscribed_topics is not None or group.type == STREAMS for member in group.known_members
    )
    return frozenset(topics_read(group) | topics_matched(group, topics)) if known else None


def _done_beyond(cluster: ClusterView, shared: Mapping[str, ShareOffsets]) -> dict[str, int | None]:
    """Return at most how many records beyond each group's start offsets are done; log ends are read last."""
    partitions = {partition for report in shared.values() for partition in report.starts}
    ends = list_offsets(cluster, dict.fromkeys(partitions, LATEST))
    done: dict[str, int | None] = {}
    for name, report in shared.items():
        counts = [
            end.offset - at.offset - report.lags[partition]
            if isinstance(end := ends[partition], ListedOffset) and partition in report.lags
            else None
            for partition, at in report.starts.items()
        ]
        known = [count for count in counts if count is not None]
        done[name] = sum(known) if len(known) == len(counts) else None
    return done


def refusal_of(group: GroupNow) -> tuple[str, str] | None:
    """Return why the group's committed offsets cannot be set, and what to do; None when they can."""
    if group.error:
        return group.error.message, group.error.hint or ""
    if group.unstored is not None:
        return group.unstored
    if group.no_offsets is not None:
        return f"{group.group_id} is no group to commit in: {group.no_offsets}", "leave this group as it is"
    if group.state in _INACTIVE:
        return None
    count = "an unknown number of members"
    if group.members is not None:
        count = count_of(group.members, "member")
    hint = "stop its members first, or wait for that: --wait-empty"
    if group.away == group.members:
        remove = command("remove-members", group.group_id, options="--left-only")
        hint = f"all of them are away: --remove-static, or before it: {remove}"
    return f"{group.group_id} is {group.state} with {count}: its members own the offsets", hint


def forgotten(group: GroupNow, partition: TopicPartition) -> Draft:
    """Return the deletion of a partition's offset, or why the group's coordinator refuses it."""
    if partition.topic not in (group.subscribed or ()):
        return Draft(None)
    return Draft(None, "a member subscribes to the topic: would be refused", SUBSCRIBED)


def untold(group: GroupNow) -> ItemError | None:
    """Return that it is not shown which deletions the group's coordinator refuses; None where it is."""
    if group.subscribed is not None or group.may_refuse:
        return None
    message = f"{group.group_id}: which topics its members subscribe to is not shown now; deletions of those "
    return ItemError(group.group_id, "NOT_TOLD", f"{message}are refused", "retry once it is stable")


@dataclass(frozen=True, slots=True)
class Purpose:
    """The purpose of a plan, as the journal reports it: the command, its spec in words, and why.

    `undoes` is the entry it undoes. With `needs_empty` off the broker decides, partition by partition,
    whether an active group may be changed. With `mark`, commits record who made them and why. With `again`
    an offset that is there already is committed once more, which restarts its retention.
    """

    command: str
    spec: str
    reason: str | None = None
    undoes: str | None = None
    needs_empty: bool = True
    mark: bool = False
    again: bool = False


def make_plan(
    purpose: Purpose,
    now: Mapping[str, GroupNow],
    drafts: Mapping[str, Drafts],
    hints: Mapping[str, str] = MappingProxyType({}),
) -> OffsetsPlan:
    """Return the plan that turns the offsets of `now` into the drafts; `hints` as `hints_for_absent`."""
    items = [
        _item(now[group_id], partition, draft, purpose)
        for group_id, of_group in drafts.items()
        for partition, draft in sorted(
            _whole_topics(now[group_id], of_group).items(), key=lambda pair: pair[0]
        )
    ]
    created_ms = time.time_ns() // 1_000_000
    content = json.dumps(
        [purpose.command, purpose.spec, purpose.reason, created_ms, [document(item) for item in items]]
    )
    plan_id, who = hashlib.sha256(content.encode()).hexdigest()[:8], actor()
    if purpose.mark:
        text = Mark(plan_id, who, purpose.reason).text
        items = [
            replace(i, after=replace(i.after, metadata=text))
            if i.planned and i.after and now[i.group_id].type != SHARE
            else i
            for i in items
        ]
    groups = []
    for group in (now[group_id] for group_id in drafts):
        refusal, hint = None, hints.get(group.group_id)
        if purpose.needs_empty or group.may_refuse or group.no_offsets is not None:
            refusal, hint = refusal_of(group) or (None, hint)
        code = code_name(group.error) if group.error else NOT_AVAILABLE if group.unstored else None
        groups.append(
            PlannedGroup(
                group.group_id,
                group.type,
                group.state,
                group.members,
                refusal,
                hint,
                code,
                _caution(group),
                group.done_beyond,
            )
        )
    return OffsetsPlan(
        id=plan_id,
        command=purpose.command,
        spec=purpose.spec,
        created_ms=created_ms,
        actor=who,
        reason=purpose.reason,
        groups=tuple(groups),
        items=tuple(items),
        needs_empty=purpose.needs_empty,
        undoes=purpose.undoes,
        unsure=tuple({why: None for name in drafts if (why := now[name].unsure) is not None}),
    )


def hints_for_absent(
    cluster: ClusterView, now: Mapping[str, GroupNow], typed: Iterable[str]
) -> dict[str, str]:
    """Return how to go on for each group that was typed and does not exist: near names, and --create."""
    absent = [name for name in typed if now[name].state == ABSENT and not now[name].committed]
    known: list[str] = []
    if absent:
        with suppress(KgroupError):
            known = [group.group_id for group in list_groups(cluster).groups]
    near = {name: first_of(get_close_matches(name, known), 3, " or ") for name in absent}
    make = "--create makes a group of this name"
    return {name: f"did you mean {guess}? {make}" if guess else make for name, guess in near.items()}


def imported(
    cluster: ClusterView,
    offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
    cluster_id: str | None = None,
) -> dict[str, dict[TopicPartition, Draft]]:
    """Return offsets as drafts; topics or partitions that are absent or hidden cannot be set.

    A partition without a leader exists, and its group's coordinator accepts an offset for it. Leader epochs
    count in the log that they are of alone: they are left out where that is not this one, as by the
    `cluster_id` of the export.
    """
    topics = cluster.topics({p.topic for rows in offsets.values() for p in rows})
    described = [topic for topic in topics.values() if isinstance(topic, TopicDescription)]
    epochs = {(t.name, p.partition): p.leader_epoch for t in described for p in t.partitions}
    foreign = cluster_id is not None and cluster.cluster_id() not in (None, cluster_id)

    def draft(partition: TopicPartition, at: CommittedOffset) -> Draft:
        leader = leader_of(partition, topics)
        if isinstance(leader, BrokerRefused) and leader.code in _NOT_THERE:
            return Draft(None, leader.detail or leader.message, leader.name)
        present = epochs.get((partition.topic, partition.partition), at.leader_epoch)
        if at.leader_epoch >= 0 and (foreign or at.leader_epoch > present):
            left_out = f"without leader epoch {at.leader_epoch}, of another log"
            return Draft(replace(at, leader_epoch=-1), left_out)
        return Draft(at)

    return {name: {p: draft(p, at) for p, at in rows.items()} for name, rows in offsets.items()}


def plan_document(plan: OffsetsPlan) -> Document:
    """Return a plan as a JSON object that `plan_from` reads back, without what was not known of it."""
    return document(replace(plan, unsure=()))


def plan_from(document: Mapping[str, Any]) -> OffsetsPlan:
    """Return the plan of `plan_document`'s object; raise ConfigError when it is not one."""
    try:
        items = tuple(item_from(item) for item in document["items"])
        groups = tuple(PlannedGroup(**group) for group in document["groups"])
        return OffsetsPlan(**{**document, "items": items, "groups": groups, "unsure": ()})
    except (TypeError, KeyError, ValueError) as error:
        raise ConfigError(f"this is not a plan of committed offsets made by kgroup: {error}") from None


def item_from(item: Mapping[str, Any]) -> OffsetChange:
    """Return one partition of a plan's JSON object; raise TypeError, KeyError or ValueError otherwise."""
    before, after = (CommittedOffset(**item[key]) if item[key] else None for key in ("before", "after"))
    return OffsetChange(**{**item, "before": before, "after": after, "result": ChangeStatus(item["result"])})


def _caution(group: GroupNow) -> str | None:
    """Return what a change of the group's offsets leaves behind or forgets, and who does not notice it."""
    return ". ".join(filter(None, (group.outside, _left_behind(group)))) or None


def _left_behind(group: GroupNow) -> str | None:
    """Return what a share group forgets, or what else a Kafka Streams application stores.

    The metadata of its commits identifies a classic Streams application.
    """
    if group.type == SHARE:
        return forgets(group) if group.committed else None
    name = word(group.group_id)
    if group.type == STREAMS:
        tool = f"kafka-streams-groups.sh --reset-offsets --group {name} --delete-all-internal-topics"
    elif any(is_streams_metadata(at.metadata) for at in group.committed.values()):
        tool = f"kafka-streams-application-reset.sh --application-id {name}"
    else:
        return None
    return (
        f"{group.group_id} is a Kafka Streams application: only committed offsets change; its state stores, "
        f"changelog and repartition topics keep what they have, so records read again count twice in them. "
        f"For those: {tool}, and KafkaStreams.cleanUp() in every instance"
    )


def forgets(group: GroupNow) -> str:
    """Return what changing a share group's start offsets discards, which no undo restores."""
    done = "which records beyond its start offsets are acknowledged or given up (how many is not known)"
    if group.done_beyond is not None:
        beyond = count_of(group.done_beyond, "record")
        done = f"that up to {beyond} beyond its start offsets are acknowledged or given up"
    what = "how often records were delivered" if group.done_beyond == 0 else f"{done}, and delivery counts"
    again = "" if group.done_beyond == 0 else ", and those records are delivered again"
    return (
        f"{group.group_id} is a share group: Kafka forgets {what}. An undo restores start offsets only{again}"
    )


def _whole_topics(group: GroupNow, drafts: Drafts) -> Drafts:
    """Return the drafts, with errors where deleting share start offsets would delete others too."""
    if group.type != SHARE:
        return drafts
    unread = group.share.failed.keys() if group.share is not None else ()
    changed = {p for p, draft in drafts.items() if not draft.error_code}
    kept = grouped(
        (partition.topic, partition) for partition in sorted({*group.committed, *unread} - changed)
    )
    checked = dict(drafts)
    for partition in changed:
        if partition.topic not in kept:
            continue
        others = first_of(kept[partition.topic], 3)
        would = f"Kafka deletes start offsets by whole topics, and would delete {others} too"
        if drafts[partition].after is None:
            checked[partition] = Draft(None, would, SAFETY_REFUSED)
        elif partition not in group.committed:
            checked[partition] = replace(drafts[partition], effect=f"cannot be undone: {would}", lasting=True)
    return checked


def _item(group: GroupNow, partition: TopicPartition, draft: Draft, purpose: Purpose) -> OffsetChange:
    before = group.committed.get(partition)
    if group.type == SHARE and draft.after is not None:
        draft = replace(draft, after=CommittedOffset(draft.after.offset))
    result = ChangeStatus.FAILED if draft.error_code else ChangeStatus.PLANNED
    if draft.error_code == SUBSCRIBED:
        result = ChangeStatus.REFUSED
    if not draft.error_code and _is_as_wanted(group, before, draft.after, purpose):
        result, draft = ChangeStatus.UNCHANGED, replace(draft, after=before)
    return OffsetChange(
        group.group_id,
        partition.topic,
        partition.partition,
        before,
        draft.after,
        result,
        draft.error_code,
        draft.effect,
        lasting=draft.lasting,
    )


def _is_as_wanted(
    group: GroupNow, before: CommittedOffset | None, after: CommittedOffset | None, purpose: Purpose
) -> bool:
    """Return whether a change would leave a committed offset as it is.

    A reset moves offsets, so metadata and leader epochs are no change of it. Setting a share group's start
    offset once more forgets what is done beyond it.
    """
    if before is None or after is None:
        return before is after
    if purpose.again or (group.type == SHARE and purpose.mark and group.done_beyond != 0):
        return False
    return before.offset == after.offset if purpose.mark else before == after


def failed(item: OffsetChange, error: KgroupError) -> OffsetChange:
    """Return the item as `error` left it; for a broker too old it says which item was not done."""
    code, effect = code_name(error), error.message
    if code == ErrorCode.UNSUPPORTED_VERSION.name and error.hint:
        effect = f"{effect} ({error.hint})"
    return replace(item, result=ChangeStatus.FAILED, error_code=code, effect=effect)
