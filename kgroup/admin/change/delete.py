"""Delete groups with their offsets, item by item."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from kgroup.admin.change.journal import OUTCOME_UNKNOWN, Journal
from kgroup.admin.change.offset_plans import actor
from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import DEAD, EMPTY, SHARE, ChangeStatus, Deletion, GroupDescription, GroupResult
from kgroup.admin.read.describe import groups_only
from kgroup.admin.read.offsets import committed
from kgroup.admin.refusals import check, code_name, is_absent
from kgroup.admin.shell import share_tool
from kgroup.client.retry import OutcomeUnknown
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError
from kgroup.security.rights import DELETE, on_group

SAFETY_REFUSED = "SAFETY_REFUSED"
"""The code of a group that is left alone because deleting it could not be undone."""


def plan(described: Answers[GroupDescription]) -> tuple[GroupResult, ...]:
    """What deleting these groups would do, given how they are now."""
    return tuple(_planned(group_id, found) for group_id, found in described.items())


def _planned(group_id: str, found: GroupDescription | KgroupError) -> GroupResult:
    if isinstance(found, KgroupError):
        return _failed(group_id, found)
    if found.type == SHARE:
        return _is_share(group_id)
    code = ErrorCode.NON_EMPTY_GROUP.name
    if found.members:
        return GroupResult(
            group_id, ChangeStatus.FAILED, code, f"has {len(found.members)} members: would be refused"
        )
    if found.state not in (EMPTY, DEAD):
        return GroupResult(group_id, ChangeStatus.FAILED, code, f"is {found.state}: would be refused")
    return GroupResult(group_id, ChangeStatus.PLANNED, None, "deleted with all its offsets")


def _is_share(group_id: str) -> GroupResult:
    """That the group is left alone: what DeleteGroups would take with it could not be brought back."""
    effect = (
        "is a share group: not touched, as this version of kgroup cannot keep its offsets and delivery state"
    )
    tool = share_tool(group_id, "--delete")
    return GroupResult(
        group_id, ChangeStatus.FAILED, SAFETY_REFUSED, f"{effect}; Kafka's own tool deletes it: {tool}"
    )


def execute(cluster: ClusterView, group_ids: Iterable[str]) -> tuple[GroupResult, ...]:
    """Delete the groups; a result for each. One that is not empty is refused by its coordinator."""
    answers = cluster.ask_coordinators(
        group_ids, lambda node, groups, left_s: _delete(cluster, node, groups, left_s), idempotent=False
    )
    return tuple(_became(group_id, answer) for group_id, answer in answers.items())


def recorded(
    cluster: ClusterView, journal: Journal, group_ids: Sequence[str], reason: str | None
) -> Deletion:
    """Delete the groups as one entry of the journal, which keeps the offsets they had.

    Share groups, and those of which it cannot be seen whether they are, stay and are failed items.
    """
    described = groups_only(cluster, group_ids)
    kept = [_planned(name, found) for name, found in described.items() if not _deletable(found)]
    group_ids = [name for name, found in described.items() if _deletable(found)]
    if not group_ids:
        return Deletion(tuple(kept))
    before = {
        group_id: str(found)
        if isinstance(found, KgroupError)
        else [[p.topic, p.partition, o.offset, o.leader_epoch, o.metadata] for p, o in found.items()]
        for group_id, found in committed(cluster, group_ids).items()
    }
    plan = {"groups": list(group_ids), "actor": actor(), "reason": reason}
    named = [{"group_id": group_id} for group_id in group_ids]
    with journal.change("delete", cluster.cluster_id(), plan, {"offsets": before}, named) as entry:
        items = execute(cluster, group_ids)
        entry.results += map(asdict, items)
    return Deletion((*items, *kept), entry.id)


def _deletable(found: GroupDescription | KgroupError) -> bool:
    """Whether the coordinator may be asked; a group that is gone by now is reported by its answer."""
    return found.type != SHARE if isinstance(found, GroupDescription) else is_absent(found)


def _became(group_id: str, answer: GroupResult | KgroupError) -> GroupResult:
    if isinstance(answer, OutcomeUnknown):
        effect = f"{answer.message}; list the groups to see what became of it"
        return GroupResult(group_id, ChangeStatus.FAILED, OUTCOME_UNKNOWN, effect)
    return _failed(group_id, answer) if isinstance(answer, KgroupError) else answer


def _delete(cluster: ClusterView, node: int, groups: Sequence[str], left_s: float) -> Answers[GroupResult]:
    from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse

    request = DeleteGroupsRequest(groups_names=tuple(groups))
    answer = cluster.ask(node, request, DeleteGroupsResponse, timeout_s=left_s)
    answers: Answers[GroupResult] = {}
    for told in answer.results:
        try:
            check(told.error_code, f"deleting group {told.group_id}", needs=[on_group(DELETE, told.group_id)])
            answers[told.group_id] = GroupResult(
                told.group_id, ChangeStatus.DELETED, None, "deleted with its offsets"
            )
        except BrokerRefused as error:
            answers[told.group_id] = error
    return answers


def _failed(group_id: str, error: KgroupError) -> GroupResult:
    return GroupResult(
        group_id,
        ChangeStatus.NOT_FOUND if is_absent(error) else ChangeStatus.FAILED,
        code_name(error),
        error.message,
    )
