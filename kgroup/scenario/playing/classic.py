"""The gate of a classic group: one generation at a time, with the members of the scenario."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Unpack

from kgroup.broker.call import AnyCall
from kgroup.broker.control.control import Control
from kgroup.coordinator.assignors.client_side import NO_RACKS, MemberSubscription, RacksByTopic
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.classic.states import ClassicState
from kgroup.coordinator.classic.timers import join_timer
from kgroup.domain import numbers_by_topic
from kgroup.errors import ConfigError
from kgroup.history.fold.leave_causes import Way
from kgroup.members.classic import ClassicMember, ClassicTimings
from kgroup.members.effects import Effect, GroupMember
from kgroup.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.protocol.subscription import PROTOCOL_TYPE, Subscription
from kgroup.scenario.forms import Shares
from kgroup.scenario.playing.actors import Actor, Passer
from kgroup.scenario.playing.play import DEFAULT_REBALANCE_MS, How, Play, Stage
from kgroup.scenario.recorded import Member, OfMember, Rebalance, Recorded, Restart, Start, Step, Stop

LONG_MS = 86_400_000
DEFAULT_SESSION_MS = 45_000
PASSER = "kgroup-passer-by"


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
        group = self.control.state_of(self.group_id).groups.get(self.group_id)
        return group if isinstance(group, ClassicGroup) else None

    def admits(self, call: AnyCall) -> bool:
        """See `Gate`."""
        body, group = call.body, self.group
        if isinstance(body, JoinGroupRequest):
            if group is not None and body.member_id in group.members:
                return self.gathered and group.committed.generation < self.goal
            return self.part_is_due or not self.is_part(body.group_instance_id, call.client_id)
        if isinstance(body, SyncGroupRequest) and group is not None:
            # A generation that did not complete ends before any member is assigned anything in it.
            return group.state is not ClassicState.COMPLETING or group.generation >= self.goal
        return True

    def served(self, call: AnyCall) -> None:
        """See `Gate`. An empty group waits until all members of its first generation have joined."""
        group = self.group
        if group is not None and isinstance(call.body, JoinGroupRequest):
            forming = group.forming
            if forming is not None and forming.from_empty and group.state is ClassicState.PREPARING:
                self.control.postpone(join_timer(group), LONG_MS)

    def begin(self) -> None:
        """End the empty group's wait for its first members."""
        group = self.group
        if group is not None and group.forming is not None and group.forming.from_empty:
            self.control.fire(join_timer(group))

    def now(self) -> tuple[int, bool]:
        """Return the generation of the group, and whether it has no members."""
        group = self.group
        return (0, True) if group is None else (group.committed.generation, not group.members)

    def formed(self) -> int | None:
        """Return the generation that members know while they await assignments; None if there is none."""
        group = self.group
        return group.generation if group is not None and group.state is ClassicState.COMPLETING else None

    def waiting(self) -> dict[str, str]:
        """Return the client names, by member id, of members whose join waits for the others."""
        group = self.group
        there = {} if group is None else group.members
        return {m.member_id: m.instance_id or m.client_id for m in there.values() if m.join is not None}

    def is_done(self) -> bool:
        """Return whether the generation has begun, and every member has its assignment."""
        group = self.group
        if group is None or group.forming is not None or group.committed.generation != self.goal:
            return False
        return not group.pending_sync


@dataclass(slots=True)
class Shared:
    """What the leader of the current generation assigns: `shares` by name, `names` of the member ids."""

    shares: Shares = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RecordedAssignor:
    """An assignor of that name that repeats the recorded assignment."""

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


class ClassicPlay(Play):
    """A classic group: generation by generation."""

    def __init__(self, recorded: Recorded, stage: Stage, **how: Unpack[How]) -> None:
        super().__init__(recorded, stage, **how)
        rebalances = [step for step in recorded.steps if isinstance(step, Rebalance)]
        self._assignors = tuple(dict.fromkeys(step.assignor for step in rebalances if step.assignor))
        self._shared = Shared()
        self._holder = ""
        self.gate: ClassicGate = ClassicGate(self._control, self.group_id, self._is_part)
        # A group that existed before begins at generation 1 here.
        self._shift = 0 if recorded.head.from_nothing or not rebalances else rebalances[0].generation - 1

    def _close(self, changes: list[OfMember], last: Step) -> None:
        match last:
            case Rebalance():
                self._rebalance(changes, last)
            case Restart():
                self._changes(changes)
            case _:
                raise ConfigError(
                    f"the last {type(last).__name__.lower()} is followed by no generation",
                    "end the steps with a rebalance",
                )

    def _member(self, name: str, spec: Member) -> ClassicMember:
        timings = ClassicTimings(
            session_timeout_ms=spec.session_timeout_ms or DEFAULT_SESSION_MS,
            rebalance_timeout_ms=spec.rebalance_timeout_ms or DEFAULT_REBALANCE_MS,
            heartbeat_interval_ms=20 + 2 * len(self.recorded.members),
            retry_backoff_ms=20,
        )
        return ClassicMember(
            self.group_id,
            self._topics[name],
            self._offered(),
            instance_id=spec.instance_id,
            rack=spec.rack,
            timings=timings,
        )

    def _await_join(self, name: str) -> None:
        self._wait(lambda: self._serving.do(lambda: name in self._joining()), lambda: self._not_joined(name))

    def _remove(self, member_id: str, way: str) -> None:
        self._ask(LeaveGroupRequest(group_id=self.group_id, members=(MemberIdentity(member_id=member_id),)))

    def _epoch_of(self, member_id: str) -> int:
        return self.gate.now()[0]

    def _rebalance(self, changes: list[OfMember], to: Rebalance) -> None:
        gate, goal = self.gate, to.generation - self._shift
        generation, is_empty = self._serving.do(self.gate.now)
        self._shared.shares = to.assigned
        self._held = dict(to.assigned)
        gate.gathered, gate.goal = False, goal
        skipped = goal - generation - 1
        if skipped < 0:
            raise ConfigError(
                f"generation {to.generation} does not follow what {self.group_id} has",
                "generations only grow",
            )
        # A departure or a join causes it, but not a restart: a stable group survives one.
        by_join = bool(changes) and isinstance(changes[0], Start)
        alone = not any(isinstance(step, Stop) for step in changes) and not by_join
        # Without its last member a group would be recorded as empty: another one joins first.
        stopped = {step.member for step in changes if isinstance(step, Stop)}
        emptied = set(self._serving.do(self._names).values()) <= stopped
        early = alone or (emptied and (skipped or to.assigned))
        passer = self._pass_by(to) if early and not (is_empty and to.assigned) else None
        # All members prefer the generation's assignor.
        if to.assignor is not None and self._assignors[0] != to.assignor:
            self._assignors = tuple(dict.fromkeys((to.assignor, *self._assignors)))
            for name, actor in self.actors.items():
                self._resubscribe(name, actor)
        if not is_empty and any(isinstance(step, Start | Restart) for step in changes):
            # The group waits for a member that does not join, until that is removed. Otherwise the generation
            # would begin once the present members have rejoined, without the new ones.
            answer = self._ask(self._join(to))
            assert isinstance(answer, JoinGroupResponse)
            self._holder = answer.member_id
        self._changes(changes)
        if skipped:
            passer = self._skip(passer or self._pass_by(to), to, generation, skipped)
        if passer is not None:
            self._remove(passer.member_id, Way.LEFT)
        self._open(to)
        self._wait(
            lambda: self._serving.do(gate.is_done), lambda: f"generation {to.generation} did not begin"
        )

    def _skip(self, passer: Passer, to: Rebalance, generation: int, skipped: int) -> Passer | None:
        """Run that many generations without a record; return the member that causes the next one."""
        last: Passer | None = passer
        for number in range(1, skipped + 1):
            self._open(to)
            self._until_formed(generation + number)
            self.gate.gathered = False
            # The next one joins first: a group without members is recorded as empty, as it is in the end.
            last = self._pass_by(to) if to.assigned or number < skipped else None
            self._remove(passer.member_id, Way.LEFT)
            passer = last or passer
            self._serving.do(lambda: self._control.open_gate(self.group_id))
        return last

    def _until_formed(self, generation: int) -> None:
        self._wait(
            lambda: self._serving.do(self.gate.formed) == generation,
            lambda: f"generation {generation}, of which there is no record, did not form",
        )

    def _open(self, to: Rebalance) -> None:
        def open_gate() -> None:
            self._shared.names = self._names()
            self.gate.gathered = True
            self._control.open_gate(self.group_id)
            self.gate.begin()

        self._serving.do(open_gate)
        holder, self._holder = self._holder, ""
        if holder:
            self._remove(holder, Way.LEFT)

    def _join(self, to: Rebalance) -> JoinGroupRequest:
        """Return the first join of a member that fits the generation, whatever the others offer."""
        topics = tuple(sorted({topic for subscribed in self._topics.values() for topic in subscribed}))
        metadata = Subscription(topics, None, (), -1, None).encode()
        names = dict.fromkeys((*([to.assignor] if to.assignor else []), *self._assignors))
        return JoinGroupRequest(
            group_id=self.group_id,
            session_timeout_ms=DEFAULT_SESSION_MS,
            rebalance_timeout_ms=DEFAULT_REBALANCE_MS,
            member_id="",
            protocol_type=PROTOCOL_TYPE,
            protocols=tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names),
        )

    def _offered(self) -> list[RecordedAssignor]:
        return [RecordedAssignor(assignor, self._shared) for assignor in self._assignors]

    def _resubscribe(self, name: str, actor: Actor) -> None:
        topics, offered = self._topics[name], self._offered()

        def subscribe(member: GroupMember, now_ms: int) -> list[Effect]:
            assert isinstance(member, ClassicMember)
            return member.subscribe(topics, offered, now_ms)

        actor.do(subscribe)

    def _pass_by(self, to: Rebalance) -> Passer:
        node = self._serving.do(lambda: self._control.coordinator_of(self.group_id))
        passer = Passer(self._join(to), self._stage.settings(PASSER), node)
        self.over.append(passer)
        self._wait(
            lambda: passer.member_id and passer.member_id in self._serving.do(self.gate.waiting),
            lambda: "a member that triggers the rebalance could not join",
        )
        return passer

    def _joining(self) -> set[str]:
        names = self._names()
        return {names[member_id] for member_id in self.gate.waiting() if member_id in names}
