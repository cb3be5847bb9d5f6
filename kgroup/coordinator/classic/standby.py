"""Hot standbys of a classic group with a target size: idle members that take over from a lost one (SM-83).

Only for the consumer protocol type, whose assignments the coordinator can read and write (OC-07). The client
that leads receives the active members alone, so the others get no partitions. A member that joins once the
target size is reached causes no rebalance. When an active member is gone for good, the standby that has
waited longest inherits its assignment: it alone is asked to rejoin, at the present generation. Its assignment
is written when it fetches it; a coordinator loaded in between finds partitions without an owner, and
rebalances. Anything that does not fit ends in the rebalance that Kafka would make.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kgroup.coordinator.classic.answers import joined
from kgroup.coordinator.classic.group import SKIP_ASSIGNMENT_SINCE, ClassicGroup, ClassicMember
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.classic.timers import renew_session
from kgroup.coordinator.state import Step
from kgroup.domain import TopicPartition
from kgroup.errors import DecodeError
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgroup.protocol.subscription import (
    PROTOCOL_TYPE,
    Assignment,
    Subscription,
    subscribed_topics,
    version_of,
)


def idle_members(step: Step, group: ClassicGroup) -> frozenset[str]:
    """Return the members beyond the target size: none that has partitions, then those that joined last."""
    size = _target_size(step, group)
    if size is None or len(group.members) <= size:
        return frozenset()
    try:
        owning = {
            m.member_id
            for m in group.members.values()
            if Subscription.decode(m.metadata(group.protocol)).owned
        }
    except DecodeError:
        return frozenset()
    had = {
        name
        for stored in group.committed.members
        if _partitions(stored.assignment)
        for name in (stored.member_id, stored.group_instance_id)
        if name is not None
    }
    # Those that had partitions before, then in the order in which they joined (OC-07).
    ranked = sorted(group.members.values(), key=lambda m: m.member_id not in had and m.instance_id not in had)
    # A cooperative member revokes what it owns only in a rebalance whose leader sees it. If it were omitted,
    # another would get its partitions while it still reads them.
    active = owning | {m.member_id for m in ranked[:size]}
    return frozenset(group.members.keys() - active)


def admit(step: Step, group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse | None:
    """Admit a member as a standby, if the group has its active ones and needs no rebalance; else None."""
    size = _target_size(step, group)
    if size is None or group.state is not ClassicState.STABLE:
        return None
    owners = sum(bool(_partitions(m.assignment)) for m in group.members.values()) + len(group.heirs)
    topics = group.subscribed_topics()
    if owners < size or topics is None or group.protocol not in {p.name for p in member.protocols}:
        return None
    try:
        # Topics that no member reads yet need an assignment, which only a leader can make.
        if not set(_topics(group, member)) <= topics:
            return None
        member.assignment = _encoded(group, member, Assignment())
    except DecodeError:
        return None
    group.add(member)
    renew_session(step, group, member)
    step.records.append(group.record_of_now(group.leader))
    return joined(group, member.member_id, to_leader=False)


def take_over(step: Step, group: ClassicGroup, gone: Sequence[ClassicMember]) -> bool:
    """Have standbys inherit what members that have just been removed were assigned; False, if not all of it.

    Then nothing has been done, and the group must rebalance.
    """
    if _target_size(step, group) is None or group.state is not ClassicState.STABLE or not group.members:
        return False
    idle = [
        m for m in group.members.values() if not _partitions(m.assignment) and m.member_id not in group.heirs
    ]
    heirs: dict[str, bytes] = {}
    for lost in gone:
        assigned = group.heirs.get(lost.member_id, lost.assignment)
        if not _partitions(assigned):
            continue
        heir = next((m for m in idle if _covers(group, m, assigned)), None)
        if heir is None:
            return False
        idle.remove(heir)
        heirs[heir.member_id] = _encoded(group, heir, Assignment.decode(assigned))
    leader = group.leader
    if leader not in group.members:
        # A leader must learn that it leads, and only an heir receives an answer.
        leader = next(iter(heirs), None)
        if leader is None:
            return False
    for lost in gone:
        group.heirs.pop(lost.member_id, None)
    group.heirs |= heirs
    step.records.append(group.record_of_now(leader))
    return True


def rejoin(
    step: Step, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest
) -> JoinGroupResponse | None:
    """Let an heir join the present generation; None if it asks for more, and the group must rebalance."""
    if member.member_id not in group.heirs or group.state is not ClassicState.STABLE:
        return None
    leads = group.leader == member.member_id
    # Before KIP-814 a leader cannot skip the computation.
    if (leads and step.version < SKIP_ASSIGNMENT_SINCE) or not _asks_for_the_same(group, member, request):
        return None
    response = joined(group, member.member_id, to_leader=leads)
    response.skip_assignment = leads  # type: ignore[misc]
    return response


def inherit(step: Step, group: ClassicGroup, member: ClassicMember) -> bytes:
    """Return the member's assignment in a Stable group; write an heir's as it is fetched."""
    inherited = group.heirs.pop(member.member_id, None)
    if inherited is not None:
        member.assignment = inherited
        step.records.append(group.record_of_now(group.leader))
    return member.assignment


def left_out(group: ClassicGroup) -> dict[str, bytes]:
    """Return the assignments of members the leader omitted: no partitions, in readable bytes."""
    idle = (group.members[member_id] for member_id in group.idle if member_id in group.members)
    return {member.member_id: _encoded(group, member, Assignment()) for member in idle}


def has_orphans(step: Step, group: ClassicGroup) -> bool:
    """Return whether partitions have no owner: a restart came before an heir fetched."""
    if _target_size(step, group) is None or group.state is not ClassicState.STABLE:
        return False
    given = {partition for m in group.members.values() for partition in _partitions(m.assignment)}
    by_name = step.state.image.by_name
    return any(
        TopicPartition(name, number) not in given
        for name in group.subscribed_topics() or ()
        if name in by_name
        for number in range(by_name[name].partitions)
    )


def _target_size(step: Step, group: ClassicGroup) -> int | None:
    if group.protocol_type != PROTOCOL_TYPE:
        return None
    roster = step.state.roster_of(group.group_id)
    return None if roster is None else roster.target_size


def _partitions(assignment: bytes) -> Iterable[TopicPartition]:
    """Return the partitions in an assignment; none in one that cannot be read."""
    try:
        return Assignment.decode(assignment).partitions
    except DecodeError:
        return ()


def _topics(group: ClassicGroup, member: ClassicMember) -> tuple[str, ...]:
    return subscribed_topics(member.metadata(group.protocol))


def _covers(group: ClassicGroup, member: ClassicMember, assigned: bytes) -> bool:
    """Return whether the member could use the assignment, without its assignor's user data."""
    try:
        lost, topics = Assignment.decode(assigned), set(_topics(group, member))
    except DecodeError:
        return False
    return not lost.user_data and all(partition.topic in topics for partition in lost.partitions)


def _encoded(group: ClassicGroup, member: ClassicMember, assignment: Assignment) -> bytes:
    return assignment.encode(version_of(member.metadata(group.protocol)))


def _asks_for_the_same(group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest) -> bool:
    """Return whether the join names the member's known protocols and topics.

    The bytes differ all the same: since version 2 a subscription holds the generation (KIP-792).
    """
    if [p.name for p in request.protocols] != [p.name for p in member.protocols]:
        return False
    asked = next((p.metadata for p in request.protocols if p.name == group.protocol), b"")
    try:
        return set(subscribed_topics(asked)) == set(_topics(group, member))
    except DecodeError:
        return False
