"""The members groups expect: registered instance ids, and how many should be active.

These are settings of a group that an embedded cluster of kgroup has, and no Kafka (SM-80 to SM-85).
"""

from collections.abc import Mapping, Sequence

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import CLASSIC, CONSUMER, STABLE, GroupDescription, Member, Registration
from kgroup.admin.settings import settings_seen
from kgroup.coordinator.roster import SETTINGS, Roster
from kgroup.errors import BrokerRefused, ErrorCode

_NO_SUCH_SETTINGS = frozenset({ErrorCode.INVALID_REQUEST, ErrorCode.UNSUPPORTED_VERSION})
"""The errors of brokers without settings of groups."""


def with_registrations(cluster: ClusterView, groups: Sequence[GroupDescription]) -> list[GroupDescription]:
    """Add their expected members to groups just created, in one request for all classic and consumer groups.

    A refusal of that request does not fail a description: Kafka has nothing to report (decision 53).
    """
    names = [group.group_id for group in groups if group.type in (CLASSIC, CONSUMER)]
    settings = settings_seen(cluster, names, SETTINGS)
    return [
        group.add(registration=_registration(group, values), registration_known=True)
        if isinstance(values := settings.get(group.group_id), dict)
        else group.add(
            registration_known=isinstance(values, BrokerRefused) and values.code in _NO_SUCH_SETTINGS
        )
        for group in groups
    ]


def _registration(group: GroupDescription, settings: Mapping[str, str]) -> Registration | None:
    roster = Roster.of(settings)
    if roster == Roster():
        return None
    ids, size = roster.registered or None, roster.target_size
    named = group.members is not None and group.instance_ids_known
    present = {member.instance_id for member in group.known_members}
    missing = roster.missing({name for name in present if name is not None}) if ids and named else None
    # Owners are unknown while a classic group rebalances.
    assignments_known = group.members is not None and all(
        member.assignment is not None for member in group.members
    )
    known = assignments_known and (group.type != CLASSIC or group.state == STABLE)
    held = [
        m
        for m in group.known_members
        if known and missing and m.instance_id in (ids or ()) and _waits(group, m)
    ]
    busy = [m for m in group.known_members if m.assignment or m.target_assignment]
    idle = [m for m in group.known_members if m not in busy and m not in held]
    return Registration(
        instance_ids=ids,
        missing=missing,
        held=_names(held) if known and missing is not None else None,
        wait_ms=roster.wait_ms,
        target_size=size,
        active=_names(busy) if known and size is not None else None,
        standby=_names(idle) if known and size is not None else None,
    )


def _waits(group: GroupDescription, member: Member) -> bool:
    """Return whether the member's join is held: it has no assignment at all, not even an empty one.

    A standby of a classic group has an empty assignment; in a consumer group targets are behind the epoch.
    """
    if member.assignment or member.target_assignment:
        return False
    if group.type == CLASSIC:
        return member.user_data_bytes is None
    return group.assignment_epoch != group.group_epoch


def _names(members: Sequence[Member]) -> tuple[str, ...]:
    return tuple(sorted(member.name for member in members))
