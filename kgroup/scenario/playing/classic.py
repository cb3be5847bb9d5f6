"""The gate of a classic group: one generation at a time, with whom the scenario has in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kgroup.broker.call import AnyCall
from kgroup.broker.control.control import Control
from kgroup.coordinator.assignors.client_side import NO_RACKS, MemberSubscription, RacksByTopic
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.classic.timers import join_timer
from kgroup.domain import numbers_by_topic
from kgroup.protocol.messages.join_group import JoinGroupRequest
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.scenario.forms import Shares

LONG_MS = 86_400_000


@dataclass(slots=True)
class ClassicGate:
    """Admits rejoins once all are `gathered` for generation `goal`, and the part's join when it is due."""

    control: Control
    group_id: str
    is_part: Callable[[str | None, str], bool]
    """Whether an instance id and a client id are those of the user's client."""
    goal: int = 0
    gathered: bool = False
    part_is_due: bool = False

    @property
    def group(self) -> ClassicGroup | None:
        """The group as its coordinator has it."""
        found = self.control.group(self.group_id)
        return found if isinstance(found, ClassicGroup) else None

    def admits(self, call: AnyCall) -> bool:
        """See `Gate`."""
        body, group = call.body, self.group
        if isinstance(body, JoinGroupRequest):
            if group is not None and body.member_id in group.members:
                return self.gathered and group.committed.generation < self.goal
            return self.part_is_due or not self.is_part(body.group_instance_id, call.client_id)
        if isinstance(body, SyncGroupRequest) and group is not None:
            # A generation that did not complete is left before anybody is assigned anything in it.
            return group.state is not ClassicState.COMPLETING or group.generation >= self.goal
        return True

    def served(self, call: AnyCall) -> None:
        """See `Gate`. An empty group waits until all have joined of whom its first generation is."""
        group = self.group
        if group is not None and isinstance(call.body, JoinGroupRequest):
            forming = group.forming
            if forming is not None and forming.from_empty and group.state is ClassicState.PREPARING:
                self.control.postpone(join_timer(group), LONG_MS)

    def begin(self) -> None:
        """End the wait of an empty group for those who join."""
        group = self.group
        if group is not None and group.forming is not None and group.forming.from_empty:
            self.control.fire(join_timer(group))

    def now(self) -> tuple[int, bool]:
        """Return the generation of the group, and whether it is without members."""
        group = self.group
        return (0, True) if group is None else (group.committed.generation, not group.members)

    def formed(self) -> int | None:
        """Return the generation that members know of while they await assignments; None without one."""
        group = self.group
        return group.generation if group is not None and group.state is ClassicState.COMPLETING else None

    def waiting(self) -> dict[str, str]:
        """Return the members whose join waits for the others, the names of their clients by member id."""
        group = self.group
        there = {} if group is None else group.members
        return {m.member_id: m.instance_id or m.client_id for m in there.values() if m.join is not None}

    def is_done(self) -> bool:
        """Whether the generation is there, and every member has what it was assigned."""
        group = self.group
        if group is None or group.forming is not None or group.committed.generation != self.goal:
            return False
        return not group.pending_sync


@dataclass(slots=True)
class Shared:
    """What the leader of the generation under way assigns: `shares` by name, `names` of the member ids."""

    shares: Shares = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedAssignor:
    """An assignor of that name which assigns what was assigned when the scenario was recorded."""

    name: str
    shared: Shared

    @property
    def cooperative(self) -> bool:
        return self.name.startswith("cooperative")

    def user_data(self, generation: int) -> bytes | None:
        return None

    def assign(
        self,
        partitions: Mapping[str, int],
        members: Mapping[str, MemberSubscription],
        racks: RacksByTopic = NO_RACKS,
    ) -> dict[str, dict[str, tuple[int, ...]]]:
        shares, names = self.shared.shares, self.shared.names
        return {
            member_id: dict(numbers_by_topic(shares.get(names.get(member_id, ""), ())))
            for member_id in members
        }
