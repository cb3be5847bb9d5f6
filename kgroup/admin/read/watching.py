"""The changes of a group between two polls, as events."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kgroup.admin.models import GroupDescription, ItemError, Member
from kgroup.admin.read.members import partitions_of
from kgroup.domain import grouped

NOT_SEEN, SEEN_AGAIN = "not_seen", "seen_again"
GROUP_APPEARED, GROUP_GONE, STATE, EPOCH, TYPE = (
    "group_appeared",
    "group_gone",
    "state_changed",
    "epoch_changed",
    "type_changed",
)
JOINED, LEFT, REPLACED = "member_joined", "member_left", "member_replaced"
MEMBER_STATE, ASSIGNMENT, LAG = "member_state_changed", "assignment_changed", "lag_changed"
PARTITIONS = "status_changed"


@dataclass(frozen=True, slots=True)
class Change:
    """One difference; `detail` holds the values `before` and `after`, or partitions gained and lost."""

    event: str
    group_id: str
    member_id: str | None
    instance_id: str | None
    detail: Mapping[str, object]


def sight_changes(before: Mapping[str, ItemError], now: Mapping[str, ItemError]) -> tuple[Change, ...]:
    """Return what got out of sight between two polls and why, and what is seen again."""
    lost = [
        Change(NOT_SEEN, name, None, None, {"code": error.code, "reason": error.message})
        for name, error in now.items()
        if name not in before
    ]
    again = [Change(SEEN_AGAIN, name, None, None, {}) for name in before if name not in now]
    return (*lost, *again)


def differences(
    group_id: str, before: GroupDescription | None, after: GroupDescription | None, *, lag: bool = False
) -> tuple[Change, ...]:
    """Yield every difference between two polls of a group (None: absent), the group's own first.

    A poll sees states, not steps: what began and ended between two polls leaves no event.
    """
    if before is None and after is None:
        return ()
    if before is None or after is None:
        known = after or before
        assert known is not None
        event = GROUP_APPEARED if before is None else GROUP_GONE
        detail = {"type": known.type, "state": known.state, "members": known.member_count}
        return (Change(event, group_id, None, None, detail),)
    pairs: list[tuple[str, object, object]] = [
        (TYPE, before.type, after.type),
        (STATE, before.state, after.state),
        (EPOCH, _epoch(before), _epoch(after)),
    ]
    if lag:
        pairs.append((LAG, before.total_lag, after.total_lag))
    own = [
        Change(event, after.group_id, None, None, {"before": was, "after": now})
        for event, was, now in pairs
        if was != now
    ]
    return (*own, *_of_partitions(before, after), *_of_members(before, after))


def _of_partitions(before: GroupDescription, after: GroupDescription) -> Iterator[Change]:
    """Yield the changes of status, together for all partitions that changed alike.

    A partition that is read to its end and gets a new record is as well as before.
    """
    was = {row.place: row.status for row in before.offsets}
    changed = grouped(
        ((had.name, now.name), str(row.place))
        for row in after.offsets
        if (had := was.get(row.place)) is not None
        and (now := row.status) is not None
        and had.name != now.name
        and not (had.good and now.good)
    )
    for (old, new), places in changed.items():
        detail = {"before": old, "after": new, "partitions": places}
        yield Change(PARTITIONS, after.group_id, None, None, detail)


def _epoch(group: GroupDescription) -> int | None:
    return group.group_epoch if group.group_epoch is not None else group.generation


def _of_members(before: GroupDescription, after: GroupDescription) -> Iterator[Change]:
    old = {member.member_id: member for member in before.known_members}
    new = {member.member_id: member for member in after.known_members}
    gone = [m for m in before.known_members if m.member_id not in new]
    gone_by_instance = {m.instance_id: m for m in gone if m.instance_id}
    for member in after.known_members:
        if member.member_id in old:
            was = old[member.member_id]
            if was.state != member.state:
                yield _change(MEMBER_STATE, after.group_id, member, before=was.state, after=member.state)
            yield from _assignment(after.group_id, was, member)
        elif member.instance_id in gone_by_instance:
            was = gone_by_instance.pop(member.instance_id)
            yield _change(REPLACED, after.group_id, member, before=was.member_id, after=member.member_id)
            yield from _assignment(after.group_id, was, member)
        else:
            yield _change(JOINED, after.group_id, member, client_id=member.client_id, host=member.host)
            yield from _assignment(after.group_id, None, member)
    replaced = {m.instance_id for m in after.known_members if m.member_id not in old}
    for member in before.known_members:
        if member.member_id not in new and (member.instance_id is None or member.instance_id not in replaced):
            held = sorted(map(str, partitions_of(member.assignment)))
            yield _change(LEFT, after.group_id, member, held=held)


def _assignment(group_id: str, was: Member | None, member: Member) -> Iterator[Change]:
    had = partitions_of(was.assignment) if was else frozenset()
    has = partitions_of(member.assignment)
    if had != has:
        gained, lost = sorted(map(str, has - had)), sorted(map(str, had - has))
        yield _change(ASSIGNMENT, group_id, member, gained=gained, lost=lost)


def _change(event: str, group_id: str, member: Member, **detail: object) -> Change:
    return Change(event, group_id, member.member_id, member.instance_id, detail)
