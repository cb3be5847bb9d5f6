"""A classic group that expects members: joins of registered ids wait, standbys take over (SM-80 to SM-85).

`Coordinator.configure` makes an `Expected` for a group whose settings name or count members. The other
modules ask it where the flow may differ from Kafka's; nearly all groups have none.

**Joins of registered ids** wait outside the group, whose members keep reading their partitions, so that all
of them cost one rebalance. The wait ends when the last of the registered ids has joined, when its bound is
over (SM-82), or when the group rebalances for another reason. After a failover the clients rejoin.

**Standbys** are for the consumer protocol type, whose assignments the coordinator can read and write (OC-07).
The client that leads receives the active members alone, so the others get no partitions. A member that joins
once the target size is reached causes no rebalance. When an active member is gone for good, the standby that
has waited longest inherits its assignment: it alone is asked to rejoin, at the present generation. Its
assignment is written when it fetches it; a coordinator loaded in between finds partitions without an owner,
and rebalances. Anything that does not fit ends in the rebalance that Kafka would make.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgroup.coordinator.classic.answers import joined, refused_join
from kgroup.coordinator.classic.group import SKIP_ASSIGNMENT_SINCE, ClassicGroup, ClassicMember, Forming
from kgroup.coordinator.classic.rebalance import add_member, complete_if_all_joined, rebalance_or_complete
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.classic.timers import hold_timer, renew_session, session_timer
from kgroup.coordinator.roster import Roster
from kgroup.coordinator.state import Step
from kgroup.domain import TopicPartition
from kgroup.errors import DecodeError, ErrorCode
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgroup.protocol.messages.leave_group import MemberIdentity
from kgroup.protocol.subscription import (
    PROTOCOL_TYPE,
    Assignment,
    Subscription,
    subscribed_topics,
    version_of,
)


@dataclass(slots=True)
class Expected:
    """What one group expects; without settings (`roster` None) until it rebalances: an heir may yet fetch."""

    roster: Roster | None

    def enter(self, step: Step, group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse | None:
        """Add a new member: as a standby, after a wait for others, or by a rebalance."""
        response = self._admit(step, group, member)
        if response is None and not self._hold(step, group, member):
            add_member(step, group, member)
        return response

    def rejoin(
        self, step: Step, group: ClassicGroup, member: ClassicMember, request: JoinGroupRequest
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

    def begin(self, step: Step, group: ClassicGroup, forming: Forming) -> int | None:
        """Make the held joins members of a group that begins to rebalance.

        Return for how many ms it waits for expected members before anything is assigned; None if it does not
        (SM-80, SM-82).
        """
        if self.roster is None:
            del step.state.expected[group.group_id]
        group.heirs.clear()
        joiners, group.held = group.held, {}
        if joiners:
            step.cancel(hold_timer(group))
        for member in joiners.values():
            # Members that rejoined meanwhile may have brought other protocols than when this one asked.
            if not group.supports(member.protocol_type, member.protocols):
                _refuse(step, member, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
                continue
            member.is_new = True
            group.add(member)
            step.arm(session_timer(group, member.member_id), step.config.new_member_timeout_ms)
        return self._wait_ms(group) if forming.from_empty and self.is_awaited(group) else None

    def is_awaited(self, group: ClassicGroup) -> bool:
        """Return whether a member that the group's settings name or count is still missing."""
        return self.roster is not None and self.roster.is_awaited(group.static, len(group.members))

    def choose_idle(self, group: ClassicGroup, forming: Forming) -> None:
        """Set the members beyond the target size aside; an active one that joined leads."""
        group.idle = self._idle_members(group)
        if forming.leader in group.idle:
            active = (m.member_id for m in group.members.values() if m.join and m.member_id not in group.idle)
            forming.leader = next(active, forming.leader)

    def take_over(self, step: Step, group: ClassicGroup, gone: Sequence[ClassicMember]) -> bool:
        """Have standbys inherit what members just removed were assigned; False, if not all of it.

        Then nothing has been done, and the group must rebalance.
        """
        if self._target_size(group) is None or group.state is not ClassicState.STABLE or not group.members:
            return False
        idle = [
            m
            for m in group.members.values()
            if not _partitions(m.assignment) and m.member_id not in group.heirs
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

    def inherit(self, step: Step, group: ClassicGroup, member: ClassicMember) -> None:
        """Write what an heir inherits, as it fetches it."""
        inherited = group.heirs.pop(member.member_id, None)
        if inherited is not None:
            member.assignment = inherited
            step.records.append(group.record_of_now(group.leader))

    def left_out(self, group: ClassicGroup) -> dict[str, bytes]:
        """Return the assignments of members the leader omitted: no partitions, in readable bytes."""
        idle = (group.members[member_id] for member_id in group.idle if member_id in group.members)
        return {member.member_id: _encoded(group, member, Assignment()) for member in idle}

    def has_orphans(self, step: Step, group: ClassicGroup) -> bool:
        """Return whether partitions have no owner: a restart came before an heir fetched."""
        if self._target_size(group) is None or group.state is not ClassicState.STABLE:
            return False
        given = {partition for m in group.members.values() for partition in _partitions(m.assignment)}
        by_name = step.state.image.by_name
        return any(
            TopicPartition(name, number) not in given
            for name in group.subscribed_topics() or ()
            if name in by_name
            for number in range(by_name[name].partitions)
        )

    def let_go(self, step: Step, group: ClassicGroup, leaver: MemberIdentity) -> bool:
        """Refuse a held join whose instance id is removed; return whether there was one."""
        instance_id = leaver.group_instance_id or ""
        member = group.held.get(instance_id)
        if member is None or leaver.member_id not in ("", member.member_id):
            return False
        _refuse(step, group.held.pop(instance_id), ErrorCode.UNKNOWN_MEMBER_ID)
        if not group.held:
            step.cancel(hold_timer(group))
        return True

    def send_back(self, step: Step, group: ClassicGroup, code: ErrorCode) -> None:
        """Refuse every held join."""
        for instance_id in list(group.held):
            _refuse(step, group.held.pop(instance_id), code)

    def settings_changed(self, step: Step, group: ClassicGroup) -> None:
        """Stop waiting if every member that the settings name or count has joined."""
        if group.held and not self._missing(group):
            rebalance_or_complete(step, group)
        else:
            complete_if_all_joined(step, group)

    def _admit(self, step: Step, group: ClassicGroup, member: ClassicMember) -> JoinGroupResponse | None:
        """Admit a member as a standby, if the group has its active ones and needs no rebalance; else None."""
        size = self._target_size(group)
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

    def _hold(self, step: Step, group: ClassicGroup, member: ClassicMember) -> bool:
        """Hold the join of a registered id if other registered ids are missing (SM-80, OC-06)."""
        # A join costs nothing in a group that prepares a rebalance; one that completes it would start over.
        if self.roster is None or group.state not in (ClassicState.STABLE, ClassicState.COMPLETING):
            return False
        instance_id = member.instance_id
        if instance_id is None or instance_id not in self.roster.registered:
            return False
        bound_ms = self._wait_ms(group, member)
        if bound_ms == 0 or not self._missing(group, instance_id):
            return False
        _refuse(step, group.held.pop(instance_id, None), ErrorCode.FENCED_INSTANCE_ID)
        member.join = step.park()
        group.held[instance_id] = member
        if not step.is_armed(hold_timer(group)):
            step.arm(hold_timer(group), bound_ms)
        return True

    def _wait_ms(self, group: ClassicGroup, *joining: ClassicMember) -> int:
        """Return how long the group waits for expected members; its rebalance timeout by default (OC-06)."""
        if self.roster is not None and self.roster.wait_ms is not None:
            return self.roster.wait_ms
        return max((group.rebalance_timeout_ms, *(m.rebalance_timeout_ms for m in joining)))

    def _missing(self, group: ClassicGroup, *joining: str) -> bool:
        present = {*group.static, *group.held, *joining}
        return self.roster is not None and bool(self.roster.missing(present))

    def _target_size(self, group: ClassicGroup) -> int | None:
        return self.roster.target_size if self.roster and group.protocol_type == PROTOCOL_TYPE else None

    def _idle_members(self, group: ClassicGroup) -> frozenset[str]:
        """Return the members beyond the target size: none with partitions, then those that joined last."""
        size = self._target_size(group)
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
        ranked = sorted(
            group.members.values(), key=lambda m: m.member_id not in had and m.instance_id not in had
        )
        # A cooperative member revokes what it owns only in a rebalance whose leader sees it. If it were
        # omitted, another would get its partitions while it still reads them.
        active = owning | {m.member_id for m in ranked[:size]}
        return frozenset(group.members.keys() - active)


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


def _refuse(step: Step, member: ClassicMember | None, code: ErrorCode) -> None:
    if member is not None and member.join is not None:
        step.answer(member.join, refused_join(code, member.member_id))
        member.join = None
