"""The gate of a consumer group: one heartbeat at a time, from the member that sent it in the recording."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Unpack

from kgroup.broker.call import AnyCall
from kgroup.broker.control.control import Control
from kgroup.coordinator.assignors.interface import Assignment, Assignor, GroupSpec
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import Epochs, MemberState
from kgroup.domain import MemberStatus, TopicPartition, numbers_by_topic, uuid_text
from kgroup.errors import ConfigError
from kgroup.members.consumer import ConsumerMember
from kgroup.members.effects import Effect, GroupMember
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.scenario.playing.actors import Actor
from kgroup.scenario.playing.play import DEFAULT_REBALANCE_MS, How, Play, Stage
from kgroup.scenario.recorded import FOR_NOW, Heartbeat, Member, OfMember, Recorded, Step, Stop

LEAVE_EPOCH, FOR_NOW_EPOCH = -1, -2
NOT_NOW_MS = 1 << 50
_STATES = {
    MemberStatus.STABLE: MemberState.STABLE,
    MemberStatus.REVOKING: MemberState.UNREVOKED_PARTITIONS,
    MemberStatus.WAITING: MemberState.UNRELEASED_PARTITIONS,
}


@dataclass(slots=True, eq=False)
class ConsumerGate:
    """Admits heartbeats of the member in `turn`, or of `anybody`, until the `expected` state is there."""

    control: Control
    group_id: str
    name_of: Callable[[str, str | None, str], str | None]
    """Returns a member's name by its member id, instance id and client id."""
    member_of: Callable[[str], str | None]
    """Returns the member id of a name."""
    expected: Heartbeat | None = None
    turn: str | None = None
    anybody: bool = False
    part_is_due: bool = False
    serves: bool = False
    """Whether a heartbeat of this group is being served."""

    @property
    def group(self) -> ConsumerGroup | None:
        """The group as its coordinator has it."""
        group = self.control.state_of(self.group_id).groups.get(self.group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def admits(self, call: AnyCall) -> bool:
        """See `Gate`."""
        body = call.body
        if not isinstance(body, ConsumerGroupHeartbeatRequest):
            return True
        name = self.name_of(body.member_id, body.instance_id, call.client_id)
        # A member that was played and has fallen silent has no name; what it sent before may wait here.
        named = name is not None and name == self.turn
        self.serves = self.expected is not None and (self.anybody or named)
        return self.serves

    def served(self, call: AnyCall) -> None:
        """See `Gate`. No member has a turn any more once the heartbeat did what is on record."""
        self.serves = False
        if self.is_done():
            self.expected = None

    def is_done(self) -> bool:
        """Return whether the group is as it was after the heartbeat."""
        to, group = self.expected, self.group
        if to is None:
            return True
        if group is None or group.epoch != to.epoch:
            return False
        # Since Kafka 4.4 the target of a group without members is of its newest epoch.
        if group.members and group.assignment_epoch != to.assignment_epoch:
            return False
        if to.member is None or to.state is None:
            return True
        member = group.members.get(self.member_of(to.member) or "")
        if member is None:
            return False
        current = member.current
        there = current.epoch, current.state, self._places(current.assigned), self._places(current.revoking)
        return there == (to.member_epoch, _STATES[MemberStatus(to.state)], set(to.owns), set(to.revoking))

    def _places(self, partitions: Epochs) -> set[TopicPartition]:
        name_of = self.control.cluster.catalog.image.name_of
        return {
            TopicPartition(name_of(t) or uuid_text(t), n)
            for t, numbers in partitions.items()
            for n in numbers
        }


@dataclass(frozen=True, slots=True)
class RecordedTargets:
    """A server-side assignor that repeats the recorded assignment in the played group."""

    inner: Assignor
    gate: ConsumerGate

    @property
    def name(self) -> str:
        return self.inner.name

    def assign(self, group: GroupSpec) -> dict[str, Assignment]:
        """See `Assignor`."""
        to, gate = self.gate.expected, self.gate
        if not gate.serves or to is None or to.target is None:
            return self.inner.assign(group)
        ids = {topic.name: topic.topic_id for topic in gate.control.cluster.catalog.image.by_name.values()}
        targets: dict[str, Assignment] = {}
        for member_id, spec in group.members.items():
            name = gate.name_of(member_id, spec.instance_id, "") or to.member
            share = numbers_by_topic(to.target.get(name or "", ()))
            target = {ids[topic]: numbers for topic, numbers in share.items()}
            targets[member_id] = spec.current if spec.current == target else target
        return targets


class ConsumerPlay(Play):
    """A consumer group: heartbeat by heartbeat."""

    def __init__(self, recorded: Recorded, stage: Stage, **how: Unpack[How]) -> None:
        super().__init__(recorded, stage, **how)
        if not recorded.head.from_nothing:
            raise ConfigError("a consumer group is played from its beginning on", "from_nothing: true")
        self.gate: ConsumerGate = ConsumerGate(self._control, self.group_id, self._name_of, self._id_of)

    def _begin(self) -> None:
        super()._begin()
        state = self._control.state_of(self.group_id)
        self._assignors, self._config = state.assignors, state.config_of(self.group_id)
        state.assignors = {name: RecordedTargets(own, self.gate) for name, own in self._assignors.items()}

    def _end(self) -> None:
        state = self._control.state_of(self.group_id)
        state.assignors = self._assignors
        state.group_configs[self.group_id] = self._config
        super()._end()

    def _close(self, changes: list[OfMember], last: Step) -> None:
        if not isinstance(last, Heartbeat):
            raise ConfigError(
                f"the last {type(last).__name__.lower()} is followed by no heartbeat",
                "end the steps with a heartbeat",
            )
        gate = self.gate
        # The user's client, when it closes, sends its last heartbeat after the one that the gate holds back.
        stopped = [step.member for step in changes if isinstance(step, Stop)]
        leaving = next((name for name in stopped if not self._plays(name)), None)

        def expect() -> None:
            interval = 0 if last.target is not None else NOT_NOW_MS
            configs = self._control.state_of(self.group_id).group_configs
            configs[self.group_id] = replace(self._config, assignment_interval_ms=interval)
            gate.turn, gate.anybody = last.member or leaving, last.member is None and not changes
            gate.expected = last
            self._control.open_gate(self.group_id)

        self._serving.do(expect)
        self._changes(changes)
        for step in changes:
            if isinstance(step, Stop) and step.cause != FOR_NOW:
                self._held.pop(step.member, None)
        if last.member is not None:
            self._held[last.member] = (*last.owns, *last.revoking)
        self._serving.do(lambda: self._control.open_gate(self.group_id))
        who = (
            ""
            if last.member is None
            else f"{last.member} was to be {last.state} at epoch {last.member_epoch}, "
        )
        self._wait(
            lambda: self._serving.do(gate.is_done),
            lambda: f"epoch {last.epoch} did not come: {who}the target of epoch {last.assignment_epoch}",
        )
        self._serving.do(self._close_gate)

    def _close_gate(self) -> None:
        self.gate.expected = None

    def _member(self, name: str, spec: Member) -> ConsumerMember:
        return ConsumerMember(
            self.group_id,
            uuid_text(uuid.uuid4().bytes),
            self._topics[name],
            instance_id=spec.instance_id,
            rack=spec.rack,
            server_assignor=spec.assignor,
            rebalance_timeout_ms=spec.rebalance_timeout_ms or DEFAULT_REBALANCE_MS,
        )

    def _resubscribe(self, name: str, actor: Actor) -> None:
        topics = self._topics[name]

        def subscribe(member: GroupMember, now_ms: int) -> list[Effect]:
            assert isinstance(member, ConsumerMember)
            return member.subscribe(topics, None, now_ms)

        actor.do(subscribe)

    def _await_join(self, name: str) -> None:
        self._wait(lambda: self._member_id(name), lambda: self._not_joined(name))

    def _remove(self, member_id: str, way: str) -> None:
        instance_id = next(
            (
                member.instance_id
                for member in self._serving.do(lambda: self._control.members_of(self.group_id))
                if member.member_id == member_id
            ),
            None,
        )
        epoch = FOR_NOW_EPOCH if way == FOR_NOW else LEAVE_EPOCH
        self._ask(
            ConsumerGroupHeartbeatRequest(
                group_id=self.group_id, member_id=member_id, member_epoch=epoch, instance_id=instance_id
            )
        )

    def _has_gone(self, name: str, member_id: str) -> bool:
        group = self._serving.do(lambda: self.gate.group)
        member = None if group is None else group.members.get(member_id)
        return member is None or member.epoch == FOR_NOW_EPOCH

    def _epoch_of(self, member_id: str) -> int:
        group = self.gate.group
        return -1 if group is None else group.members[member_id].epoch

    def _name_of(self, member_id: str, instance_id: str | None, client_id: str) -> str | None:
        """Return a member's name; call in the brokers' thread."""
        for name, actor in self.actors.items():
            if actor.member.member_id == member_id:
                return name
        if self._is_part(instance_id, client_id):
            return self._part
        return self._names().get(member_id)

    def _id_of(self, name: str) -> str | None:
        return next((member_id for member_id, known in self._names().items() if known == name), None)
