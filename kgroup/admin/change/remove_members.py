"""Remove members from a group by hand: plan it, show it, then do it (KIP-345, KIP-800).

LeaveGroup serves classic and consumer groups: one request and one rebalance for any number of members.
"""

import fnmatch
import hashlib
import json
import time
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from kgroup.admin.discovery import ClusterView
from kgroup.admin.journal import OUTCOME_UNKNOWN
from kgroup.admin.models import (
    CLASSIC,
    CONSUMER,
    ChangeStatus,
    Execution,
    GroupDescription,
    ItemError,
    ItemResult,
    Member,
    Plan,
)
from kgroup.admin.read.describe import one_group
from kgroup.admin.read.in_sync import NOT_AVAILABLE, unstored
from kgroup.admin.read.members import partitions_of
from kgroup.admin.refusals import check, refused
from kgroup.client.retry import OutcomeUnknown
from kgroup.domain import MemberStatus, TopicPartition, count_of, first_of
from kgroup.errors import BrokerRefused, ConfigError, ErrorCode, KgroupError, SafetyRefused
from kgroup.patterns import compile_regex, fault_of, matching_topics
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kgroup.security.rights import READ, on_group

LEAVE_GROUP = 13
BATCH_VERSION = 3
DESCRIBE_GROUPS, SINCE_4_0 = 15, 6
REASON_LIMIT = 255
DEFAULT_REASON = "removed by an administrator with kgroup"


@dataclass(frozen=True, slots=True)
class Selection:
    """The members to remove: the union of what is given. `hosts` are globs; `left_only` narrows the rest.

    `left_only` on its own selects every member at epoch -2.
    """

    instance_ids: tuple[str, ...] = ()
    member_ids: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    left_only: bool = False
    all: bool = False

    @property
    def empty(self) -> bool:
        """Whether nothing was selected, which differs from selecting all."""
        return not (self.instance_ids or self.member_ids or self.hosts or self.left_only or self.all)


def plan_removal(
    cluster: ClusterView, group_id: str, selection: Selection, reason: str | None = None
) -> Plan:
    """Return the effect of removing the selected members; changes nothing.

    Members selected by id that are not in the group are items with the result not_found. Raise SafetyRefused
    for an empty selection or a group of another type; BrokerRefused when the group cannot be described.
    """
    if selection.empty:
        raise SafetyRefused("no member is selected", "name some, or use --all")
    group = _described(cluster, group_id)
    _check_instances_reported(group, selection)
    members = group.known_members
    chosen = [member for member in members if _is_chosen(member, selection)]
    held = {m.instance_id for m in members}
    known = {m.member_id for m in members}
    absent = [
        ItemResult(i, None, ChangeStatus.NOT_FOUND, None, _ABSENT)
        for i in selection.instance_ids
        if i not in held
    ]
    absent += [
        ItemResult(None, m, ChangeStatus.NOT_FOUND, None, _ABSENT)
        for m in selection.member_ids
        if m not in known
    ]
    heirs = [member for member in members if member not in chosen]
    refusing = unstored(cluster, [group_id]).get(group_id)
    unsure = refusing if isinstance(refusing, ItemError) else None
    left_classic = group.type == CONSUMER and bool(heirs) and all(m.protocol == CLASSIC for m in heirs)
    old = group.coordinator is not None and _only_classic(cluster, group.coordinator.id, group.type)
    present = [
        ItemResult(
            member.instance_id,
            member.member_id,
            ChangeStatus.PLANNED,
            None,
            effect_of(member, heirs)
            + (_TURNS if left_classic and member.protocol == CONSUMER else "")
            + (f"; {_ONLY_CLASSIC}" if old else ""),
        )
        for member in chosen
    ]
    if isinstance(refusing, tuple):
        present = [_unstored(item, group.type, refusing[0]) for item in present]
    items = (*present, *dict.fromkeys(absent))
    valid_while = validity(group)
    content = json.dumps([group_id, valid_while, [asdict(item) for item in items], reason], sort_keys=True)
    return Plan(
        id=hashlib.sha256(content.encode()).hexdigest()[:8],
        group_id=group_id,
        type=group.type,
        state=group.state,
        valid_while=valid_while,
        items=items,
        reason=reason,
        created_ms=time.time_ns() // 1_000_000,
        before=asdict(group),
        unsure=unsure,
    )


def plan_document(plan: Plan) -> dict[str, object]:
    """Return a plan as a JSON object, without what was seen and not seen; `plan_from` reads it back."""
    document = asdict(plan)
    del document["before"], document["unsure"]
    return document


def plan_from(document: Mapping[str, Any]) -> Plan:
    """Return the plan of `plan_document`'s object; raise ConfigError when it is not one."""
    try:
        items = tuple(
            ItemResult(**{**item, "result": ChangeStatus(item["result"])}) for item in document["items"]
        )
        return Plan(**{**document, "items": items, "before": {}})
    except (TypeError, KeyError, ValueError) as error:
        raise ConfigError(f"this is not a plan made by kgroup: {error}") from None


def validity(group: GroupDescription) -> dict[str, int | str]:
    """Return what must not change between plan and execution.

    Brokers do not report a classic group's generation, so its members and their assignments stand for it.
    """
    if group.group_epoch is not None:
        return {"group_epoch": group.group_epoch}
    if group.generation is not None:
        return {"generation": group.generation}
    members = [
        (m.member_id, m.instance_id, asdict(m)["assignment"], m.raw_assignment) for m in group.known_members
    ]
    content = json.dumps([group.state, group.assignor, sorted(members, key=str)])
    return {"membership": hashlib.sha256(content.encode()).hexdigest()[:12]}


def check_fresh(cluster: ClusterView, made: Plan) -> GroupDescription:
    """Return the group as it is now; raise SafetyRefused if the plan no longer holds."""
    group = _described(cluster, made.group_id)
    now = validity(group)
    if now != made.valid_while:
        raise SafetyRefused(
            f"plan {made.id} is stale: it holds while {_text(made.valid_while)}, now {_text(now)}",
            "make the plan again and look at it",
        )
    return group


def execute_removal(cluster: ClusterView, made: Plan) -> Execution:
    """Remove the plan's members as one journal entry; raise SafetyRefused when the group has changed."""
    group = check_fresh(cluster, made)
    named = [{"instance_id": item.instance_id, "member_id": item.member_id} for item in made.items]
    with cluster.change("remove-members", plan_document(made), asdict(group), named) as entry:
        items = _remove(cluster, made)
        entry.results += map(asdict, items)
    return Execution(made, items, entry.id)


def _remove(cluster: ClusterView, made: Plan) -> tuple[ItemResult, ...]:
    """Remove the plan's members; return a result for each, in the plan's order.

    The plan must be fresh (`check_fresh`). Raise BrokerRefused when the broker refuses the whole request or
    is too old for it. Without an answer every item fails with OUTCOME_UNKNOWN: the request is not sent again,
    as the members may have left and rejoined.
    """
    if not made.items:
        return ()
    answers = cluster.ask_coordinators(
        [made.group_id],
        lambda node, _, left_s: {made.group_id: _leave(cluster, node, made, left_s)},
        idempotent=False,
    )
    answer = answers[made.group_id]
    if isinstance(answer, OutcomeUnknown):
        effect = f"{answer.message}; describe the group to see what became of it"
        return tuple(
            ItemResult(item.instance_id, item.member_id, ChangeStatus.FAILED, OUTCOME_UNKNOWN, effect)
            for item in made.items
        )
    if isinstance(answer, KgroupError):
        raise answer
    return tuple(_result(item, code) for item, code in zip(made.items, answer, strict=True))


def _described(cluster: ClusterView, group_id: str) -> GroupDescription:
    group = one_group(cluster, group_id)
    if group.type not in (CLASSIC, CONSUMER):
        raise SafetyRefused(
            f"{group_id} is a {group.type} group: Kafka has no request to remove its members", "stop them"
        )
    return group


def _check_instances_reported(group: GroupDescription, selection: Selection) -> None:
    """Raise BrokerRefused for instance ids that the broker does not report."""
    if not selection.instance_ids or group.instance_ids_known:
        return
    raise BrokerRefused(
        ErrorCode.UNSUPPORTED_VERSION,
        f"the coordinator of {group.group_id} neither reports instance ids nor removes members by them",
        hint="Kafka 2.4 and later do; here name one member at a time with --member-id",
    )


def _is_chosen(member: Member, selection: Selection) -> bool:
    if selection.left_only and member.state != MemberStatus.LEFT:
        return False
    named = (
        member.instance_id in selection.instance_ids
        or member.member_id in selection.member_ids
        or any(fnmatch.fnmatchcase(member.host or "", glob) for glob in selection.hosts)
    )
    anyone = selection.left_only and not (selection.instance_ids or selection.member_ids or selection.hosts)
    return named or selection.all or anyone


def _unstored(item: ItemResult, kind: str, why: str) -> ItemResult:
    """Return what becomes of a removal that its coordinator cannot store: a classic one needs no record."""
    if kind == CLASSIC:
        return replace(item, effect=f"removed now; {why}; {_REJOINS}")
    return replace(item, result=ChangeStatus.FAILED, error_code=NOT_AVAILABLE, effect=why)


_ABSENT = "not in the group: no-op"
_TURNS = (
    "; only classic members stay: the group becomes classic and rebalances, or, where its migration policy "
    "forbids that, nobody reads what was its own until a member joins"
)
_ONLY_CLASSIC = "of a consumer group brokers before 4.0 remove only members of the classic protocol"
_REJOINS = "if still running it rejoins at once as a new member"


def effect_of(member: Member, heirs: Sequence[Member]) -> str:
    """Return the effect of removing a member while `heirs` stay."""
    running = member.connect.running if member.connect is not None else None
    if running is not None:
        work = running.names
        runs = f"its work ({first_of(work)}) goes to others" if work else "it runs nothing"
        return (
            f"removed now, {runs if heirs or not work else 'no member is left to run its work'}; {_REJOINS}"
        )
    if member.assignment is None:
        size = 0 if member.raw_assignment is None else len(b64decode(member.raw_assignment))
        why = (
            f"{count_of(size, 'byte')} that are not the consumer protocol's"
            if size
            else "the broker does not say now"
        )
        partitions = f"what it runs is unknown ({why})"
        return f"removed now, {partitions}; {_REJOINS}"
    partitions = _fate(partitions_of(member.assignment), heirs)
    if member.state == MemberStatus.LEFT:
        return f"removed for good, {partitions} now and not when its session ends"
    return f"removed now, {partitions}; {_REJOINS}"


def _fate(owned: frozenset[TopicPartition], heirs: Sequence[Member]) -> str:
    """Return what becomes of partitions when those stay who read their topics, or do not."""
    if not owned:
        return "it owns nothing"
    topics = {partition.topic for partition in owned}
    # One that left for now gets partitions, and reads none.
    readers = [member for member in heirs if member.state != MemberStatus.LEFT]
    read = {topic for topic in topics if any(_reads(member, topic) for member in readers)}
    left = sorted(partition for partition in owned if partition.topic not in read)
    what = f"its {count_of(len(owned), 'partition')}"
    if not left:
        return f"{what} {'goes' if len(owned) == 1 else 'go'} to others"
    if any(member.subscribed_topics is None for member in readers):
        return f"{what}: whether others read {first_of(list(map(str, left)), 3)} is not shown"
    lost = f"{'is' if len(left) == 1 else 'are'} left without a reader"
    return f"of {what} {len(left)} {lost}: {first_of(list(map(str, left)), 3)}" if read else f"{what} {lost}"


def _reads(member: Member, topic: str) -> bool:
    if topic in (member.subscribed_topics or ()):
        return True
    regex = member.subscribed_regex
    if not regex or fault_of(regex) is not None:
        return False
    return bool(matching_topics(compile_regex(regex), [topic]))


def _leave(cluster: ClusterView, node: int, made: Plan, left_s: float) -> list[int] | KgroupError:
    """Return the broker's error code for each item."""
    served = cluster.transport.versions(node, LEAVE_GROUP)
    reason = (made.reason or DEFAULT_REASON)[:REASON_LIMIT]
    if served is not None and served[-1] < BATCH_VERSION:
        # An old LeaveGroup names one dynamic member.
        static = any(item.instance_id is not None for item in made.items)
        if static or len(made.items) > 1:
            has = f"the broker serves LeaveGroup {served[0]}-{served[-1]}"
            need = f"removing {'by instance id' if static else 'several members'} needs {BATCH_VERSION}+"
            hint = "Kafka 2.4 and later serve it"
            raise BrokerRefused(ErrorCode.UNSUPPORTED_VERSION, f"{has}, {need}", hint=hint)
        request = LeaveGroupRequest(group_id=made.group_id, member_id=made.items[0].member_id or "")
    else:
        members = tuple(
            MemberIdentity(member_id=item.member_id or "", group_instance_id=item.instance_id, reason=reason)
            for item in made.items
        )
        request = LeaveGroupRequest(group_id=made.group_id, members=members)
    answer = cluster.ask(node, request, LeaveGroupResponse, timeout_s=left_s)
    needs = [on_group(READ, made.group_id)]
    if not request.members:
        # The answer of an old broker: any other code is about the request, not about its one member.
        if answer.error_code in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            return [answer.error_code]
        return refused(answer.error_code, f"group {made.group_id}", needs=needs)
    check(answer.error_code, f"removing members of group {made.group_id}", needs=needs)
    if len(answer.members) != len(made.items):
        return refused(ErrorCode.UNKNOWN_SERVER_ERROR, made.group_id, "the broker answered for other members")
    codes = [member.error_code for member in answer.members]
    if _only_classic(cluster, node, made.type):
        refusal = {int(ErrorCode.UNKNOWN_MEMBER_ID): int(ErrorCode.UNSUPPORTED_VERSION)}
        codes = [refusal.get(code, code) for code in codes]
    return codes


def _only_classic(cluster: ClusterView, node: int, kind: str) -> bool:
    """Return whether the broker says UNKNOWN_MEMBER_ID of any other member: before Kafka 4.0."""
    served = cluster.transport.versions(node, DESCRIBE_GROUPS)
    return kind == CONSUMER and served is not None and served[-1] < SINCE_4_0


def _result(item: ItemResult, code: int) -> ItemResult:
    if code == ErrorCode.NONE:
        return ItemResult(item.instance_id, item.member_id, ChangeStatus.REMOVED, None, item.effect)
    name = ErrorCode.name_of(code)
    if code == ErrorCode.UNKNOWN_MEMBER_ID:
        return ItemResult(
            item.instance_id, item.member_id, ChangeStatus.NOT_FOUND, name, "was not in the group"
        )
    known = {
        ErrorCode.FENCED_INSTANCE_ID.name: "another member holds the instance id now",
        ErrorCode.UNSUPPORTED_VERSION.name: _ONLY_CLASSIC,
    }
    effect = known.get(name, "still in the group")
    return ItemResult(item.instance_id, item.member_id, ChangeStatus.FAILED, name, effect)


def _text(valid_while: Mapping[str, int | str]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in valid_while.items())
