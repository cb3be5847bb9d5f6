"""Delete groups with their offsets, item by item."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace

from kgroup.admin.change.offset_plans import GroupNow, forgets, look, look_before
from kgroup.admin.change.unread import unread_offsets, unread_text
from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.journal import OUTCOME_UNKNOWN
from kgroup.admin.models import (
    DEAD,
    EMPTY,
    SHARE,
    ChangeStatus,
    Deletion,
    GroupDescription,
    GroupResult,
    ItemError,
    UnreadOffset,
)
from kgroup.admin.read.describe import groups_only
from kgroup.admin.read.in_sync import NOT_AVAILABLE
from kgroup.admin.refusals import check, code_name, is_absent, item_error
from kgroup.client.retry import OutcomeUnknown
from kgroup.domain import count_of
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kgroup.security.rights import DELETE, on_group


def plan_deletion(
    cluster: ClusterView, group_ids: Iterable[str]
) -> tuple[tuple[GroupResult, ...], tuple[ItemError, ...]]:
    """Return the effect of deleting these groups: what they have not read, and what no undo restores.

    The errors say which offsets may not have been seen, and of which groups it is not known whether their
    coordinators can store anything.
    """
    described = groups_only(cluster, group_ids)
    items = {group_id: _planned(group_id, described_group) for group_id, described_group in described.items()}
    going = [name for name in described if items[name].planned]
    now = look_before(cluster, going) if going else {}
    unread = unread_offsets(cluster, now)
    unseen = []
    for name, group in now.items():
        if group.error and group.type == SHARE:
            items[name] = _unreadable(name, group.error)
        elif group.unstored:
            items[name] = GroupResult(name, ChangeStatus.FAILED, NOT_AVAILABLE, group.unstored[0])
        elif group.error:
            why = f"its offsets cannot be read: {group.error.message}"
            unseen.append(item_error(name, group.error))
            items[name] = replace(items[name], effect=f"deleted with all its offsets; {why}")
        else:
            items[name] = _with_unread(items[name], group, unread[name])
            if group.unseen:
                unseen.append(group.unseen)
                more = f"{items[name].effect}; it may have more offsets than are seen"
                items[name] = replace(items[name], effect=more)
    unsure = dict.fromkeys(group.unsure for group in now.values() if group.unsure is not None)
    return tuple(items.values()), (*unseen, *unsure)


def _with_unread(item: GroupResult, group: GroupNow, unread: tuple[UnreadOffset, ...]) -> GroupResult:
    effect = f"{item.effect}: {unread_text(unread)}" if unread else item.effect
    if group.type == SHARE:
        effect = f"deleted with its start offsets: {unread_text(unread)}. {forgets(group)}"
    elif group.outside:
        effect = f"{effect}. {group.outside}"
    return replace(item, effect=effect, unread=unread)


def _planned(group_id: str, group: GroupDescription | KgroupError) -> GroupResult:
    if isinstance(group, KgroupError):
        return _failed(group_id, group)
    code = ErrorCode.NON_EMPTY_GROUP.name
    if group.members:
        return GroupResult(
            group_id,
            ChangeStatus.FAILED,
            code,
            f"has {count_of(len(group.members), 'member')}: would be refused",
        )
    if group.state not in (EMPTY, DEAD):
        return GroupResult(group_id, ChangeStatus.FAILED, code, f"is {group.state}: would be refused")
    return GroupResult(group_id, ChangeStatus.PLANNED, None, "deleted with all its offsets")


def _unreadable(group_id: str, error: KgroupError) -> GroupResult:
    effect = f"is a share group: not touched, as its start offsets could not be kept: {error.message}"
    return GroupResult(group_id, ChangeStatus.FAILED, code_name(error), effect)


def execute(cluster: ClusterView, group_ids: Iterable[str]) -> tuple[GroupResult, ...]:
    """Delete the groups; return a result for each. A coordinator refuses a group that is not empty."""
    answers = cluster.ask_coordinators(
        group_ids, lambda node, groups, left_s: _delete(cluster, node, groups, left_s), idempotent=False
    )
    results = []
    for group_id, answer in answers.items():
        if isinstance(answer, OutcomeUnknown):
            effect = f"{answer.message}; list the groups to see what became of it"
            results.append(GroupResult(group_id, ChangeStatus.FAILED, OUTCOME_UNKNOWN, effect))
        else:
            results.append(_failed(group_id, answer) if isinstance(answer, KgroupError) else answer)
    return tuple(results)


def delete_groups(cluster: ClusterView, group_ids: Iterable[str], reason: str | None = None) -> Deletion:
    """Delete the groups as one journal entry, which keeps their offsets.

    Share groups with unreadable start offsets, and groups that cannot be described, are kept and become
    failed items.
    """
    described = groups_only(cluster, group_ids)
    kept = {
        name: _planned(name, group)
        for name, group in described.items()
        if isinstance(group, KgroupError) and not is_absent(group)
    }
    now = look(cluster, [name for name in described if name not in kept])
    kept |= {
        name: _unreadable(name, group.error)
        for name, group in now.items()
        if group.error and group.type == SHARE
    }
    present = [name for name in described if name not in kept]
    if not present:
        return Deletion(tuple(kept.values()))
    # The offsets of each group, or why they are unknown.
    before = {
        name: str(now[name].error)
        if now[name].error
        else [
            [p.topic, p.partition, at.offset, at.leader_epoch, at.metadata]
            for p, at in sorted(now[name].committed.items())
        ]
        for name in present
    }
    share = [name for name in present if now[name].type == SHARE]
    done = {name: now[name].done_beyond for name in share}
    plan = {"groups": present, "share": share, "done_beyond": done, "reason": reason}
    named = [{"group_id": group_id} for group_id in present]
    with cluster.change("delete", plan, {"offsets": before}, named) as entry:
        items = execute(cluster, present)
        entry.results += map(asdict, items)
    return Deletion((*items, *kept.values()), entry.id)


def _delete(cluster: ClusterView, node: int, groups: Sequence[str], left_s: float) -> Answers[GroupResult]:
    request = DeleteGroupsRequest(groups_names=tuple(groups))
    answer = cluster.ask(node, request, DeleteGroupsResponse, timeout_s=left_s)
    answers: Answers[GroupResult] = {}
    for result in answer.results:
        try:
            needs = [on_group(DELETE, result.group_id)]
            check(result.error_code, f"deleting group {result.group_id}", result.error_message, needs)
            answers[result.group_id] = GroupResult(
                result.group_id, ChangeStatus.DELETED, None, "deleted with its offsets"
            )
        except BrokerRefused as error:
            answers[result.group_id] = error
    return answers


def _failed(group_id: str, error: KgroupError) -> GroupResult:
    return GroupResult(
        group_id,
        ChangeStatus.NOT_FOUND if is_absent(error) else ChangeStatus.FAILED,
        code_name(error),
        error.message,
    )
