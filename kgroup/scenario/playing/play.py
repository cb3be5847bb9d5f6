"""The course of a scenario: each step is done, and the next one begins once the group is where it was."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Protocol, TypeVar

from kgroup.broker.control.control import Control
from kgroup.client.settings import ConnectionSettings
from kgroup.domain import TopicPartition, count_of
from kgroup.errors import ConfigError, ErrorCode, KgroupError, TimedOut
from kgroup.history.fold.departures import Way
from kgroup.history.fold.events import partitions_text
from kgroup.members.classic import ClassicMember, ClassicTimings
from kgroup.members.commits import NAMES_UNTIL, commit_errors, commit_request
from kgroup.members.effects import Effect, GroupMember
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kgroup.protocol.messages.join_group import JoinGroupRequestProtocol
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kgroup.protocol.messages.offset_commit import OffsetCommitResponse
from kgroup.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kgroup.protocol.subscription import Subscription
from kgroup.scenario.playing.actors import Actor, Passer
from kgroup.scenario.playing.classic import ClassicGate, RecordedAssignor, Shared
from kgroup.scenario.recorded import (
    RESTARTED,
    UNKNOWN,
    Commit,
    DeleteGroup,
    DeleteOffsets,
    Member,
    OfMember,
    Rebalance,
    Recorded,
    Restart,
    Start,
    Step,
    Stop,
    Subscribe,
)

T = TypeVar("T")
LOOK_S = 0.002
START, STOP, RESTART = "start", "stop", "restart"
"""What the user's client is to do."""
PASSER = "kgroup-passer-by"
DEFAULT_SESSION_MS = 45_000
DEFAULT_REBALANCE_MS = 300_000


class Serving(Protocol):
    """Brokers that run in another thread, under control."""

    @property
    def control(self) -> Control: ...

    def do(self, work: Callable[[], T]) -> T: ...

    def call(self, work: Coroutine[object, None, T]) -> T: ...


class Stage(Protocol):
    """Where a scenario is played: the brokers, connections to them, and requests that no gate is before."""

    @property
    def serving(self) -> Serving: ...

    def settings(self, client_id: str) -> ConnectionSettings: ...

    def ask(self, node: int, request: Message, max_version: int | None = None) -> Message: ...


class Play:
    """One scenario on one stage. `part` is the member that the user's client is, None if all are played.

    `act` is called with START, STOP or RESTART when the user's client is to do that, `meanwhile` again and
    again while something is waited for; every wait ends after `timeout_s`.
    """

    def __init__(
        self,
        recorded: Recorded,
        stage: Stage,
        *,
        part: str | None = None,
        act: Callable[[str], object] | None = None,
        meanwhile: Callable[[], object] | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        self.recorded = recorded
        self.group_id = recorded.head.group
        self.actors: dict[str, Actor] = {}
        self.over: list[Actor | Passer] = []
        self._stage = stage
        self._serving = stage.serving
        self._control = stage.serving.control
        self._timeout_s = timeout_s
        self._act = act
        self._meanwhile = meanwhile
        self._part = None if part is None else _part_of(recorded, part)
        self._part_key = None if self._part is None else _key_of(recorded.members, self._part)
        self._part_is_out = False
        self._assignors = tuple(
            dict.fromkeys(
                step.assignor for step in recorded.steps if isinstance(step, Rebalance) and step.assignor
            )
        )
        known = tuple(recorded.head.topics)
        self._topics = {name: member.topics or known for name, member in recorded.members.items()}
        self._shared = Shared()
        self._gate = ClassicGate(self._control, self.group_id, self._is_part)
        self._shift = _shift(recorded)
        self._began_ms = 0

    def run(self) -> None:
        """Do all that was recorded, in order; TimedOut says what did not happen."""
        self._serving.do(self._begin)
        try:
            for _, steps in groupby(self._tied(), lambda pair: pair[0]):
                self._together([step for _, step in steps])
        except BaseException:
            self.halt()
            raise
        finally:
            self._serving.do(self._end)

    def halt(self) -> None:
        """Have all members that are played send nothing any more."""
        for actor in self.actors.values():
            actor.halt()

    def join(self) -> None:
        """Wait until the threads of all members have ended; their connections must be closed or closing."""
        for each in (*self.actors.values(), *self.over):
            each.join()

    def _begin(self) -> None:
        if self._control.group(self.group_id) is not None:
            raise ConfigError(
                f"there is a group {self.group_id} already, so its generations would be others",
                "play on a fresh cluster, and subscribe your client when act= is called with 'start'",
            )
        self._control.set_gate(self.group_id, self._gate)
        self._began_ms = self._control.clock.now_ms()

    def _end(self) -> None:
        self._control.remove_gate(self.group_id)
        for member in tuple(self._control.frozen()):
            if member.group_id == self.group_id:
                self._control.thaw(member.member_id, self.group_id)

    def _tied(self) -> Iterator[tuple[int, Step]]:
        """Yield the steps with numbers: those of one generation have the same."""
        number = 0
        for step in self.recorded.steps:
            yield number, step
            changes = isinstance(step, OfMember) and not (isinstance(step, Restart) and step.generation)
            number += not changes

    def _together(self, steps: list[Step]) -> None:
        """Do what belongs together: what changed in the group, and the generation that came of it."""
        last = steps[-1]
        self._move(steps)
        match last:
            case Rebalance():
                self._rebalance([step for step in steps[:-1] if isinstance(step, OfMember)], last)
            case Commit():
                self._commit(last.offsets)
            case DeleteOffsets():
                self._delete_offsets(last)
            case DeleteGroup():
                self._delete_group()
            case Restart():
                self._changes([step for step in steps if isinstance(step, OfMember)])
            case _:
                raise ConfigError(
                    f"the last {type(last).__name__.lower()} has no generation that came of it",
                    "end the steps with a rebalance",
                )

    def _move(self, steps: list[Step]) -> None:
        """Have it be the time of the steps: members whose sessions end then have fallen silent before."""
        for step in steps:
            if isinstance(step, Stop) and _way(step) == Way.SESSION_ENDED:
                self._silence(step.member)
        at_ms = max(step.at_ms or 0 for step in steps)
        left_ms = self._began_ms + at_ms - self._serving.do(self._control.clock.now_ms)
        if left_ms > 0:
            self._serving.call(self._control.advance(left_ms))

    def _silence(self, name: str) -> None:
        if self._plays(name):
            self._retire(name).halt()
            return
        member_id = self._member_id(name)
        if member_id is not None:
            self._serving.do(lambda: self._control.freeze(member_id, self.group_id))

    def _rebalance(self, changes: list[OfMember], to: Rebalance) -> None:
        gate, goal = self._gate, to.generation - self._shift
        generation, is_empty = self._serving.do(self._gate.now)
        self._shared.shares = to.assigned
        gate.gathered, gate.goal = False, goal
        skipped = goal - generation - 1
        if skipped < 0:
            raise ConfigError(
                f"generation {to.generation} does not follow what {self.group_id} has",
                "generations only grow",
            )
        alone = not any(isinstance(step, Start | Stop) for step in changes)
        # Once its last member is gone a group is empty on record: somebody is there before.
        early = alone or (skipped and not to.assigned)
        passer = self._pass_by(to) if early and not is_empty else None
        self._offer(to)
        self._changes(changes)
        if skipped:
            passer = self._skip(passer or self._pass_by(to), to, generation, skipped)
        if passer is not None:
            self._remove(passer.member_id)
        self._open(to)
        self._wait(
            lambda: self._serving.do(gate.is_done), lambda: f"generation {to.generation} did not begin"
        )

    def _skip(self, passer: Passer, to: Rebalance, generation: int, skipped: int) -> Passer | None:
        """Have so many generations come and go, and leave no record; return who sets off the next one."""
        last: Passer | None = passer
        for number in range(1, skipped + 1):
            self._open(to)
            self._until_formed(generation + number)
            self._gate.gathered = False
            # The next one joins first: without members, the group is empty on record, as it is in the end.
            last = self._pass_by(to) if to.assigned or number < skipped else None
            self._remove(passer.member_id)
            passer = last or passer
            self._serving.do(lambda: self._control.open_gate(self.group_id))
        return last

    def _until_formed(self, generation: int) -> None:
        self._wait(
            lambda: self._serving.do(self._gate.formed) == generation,
            lambda: f"generation {generation}, of which there is no record, did not form",
        )

    def _open(self, to: Rebalance) -> None:
        def open_gate() -> None:
            self._shared.names = self._names()
            self._gate.gathered = True
            self._control.open_gate(self.group_id)
            self._gate.begin()

        self._serving.do(open_gate)

    def _changes(self, changes: Iterable[OfMember]) -> None:
        for step in changes:
            match step:
                case Stop():
                    self._stop(step)
                case Restart():
                    self._restart(step)
                case Subscribe():
                    self._topics[step.member] = step.topics
                    self._subscribe(step.member)
                case Start():
                    self._start(step.member)

    def _stop(self, step: Stop) -> None:
        name, way = step.member, _way(step)
        member_id = self._member_id(name)
        if member_id is None:
            if way == Way.SESSION_ENDED:  # as time was moved
                return
            raise KgroupError(f"{name} is not in {self.group_id}, and is to go", self._seen())
        if way == Way.SESSION_ENDED:
            self._serving.do(lambda: self._control.expire(member_id, self.group_id))
        elif way == Way.LEFT and not self._plays(name):
            self._tell_part(STOP)
            self._wait(
                lambda: self._member_id(name) != member_id,
                lambda: f"{name}, your client, did not leave: close it",
            )
        else:
            if self._plays(name):
                self._retire(name).halt()
            self._remove(member_id)
        if self._plays(name):
            self._serving.do(lambda: self._control.open_gate(self.group_id))
        else:
            self._gate.part_is_due = False

    def _restart(self, step: Restart) -> None:
        name, before = step.member, self._member_id(step.member)
        if self._plays(name):
            old = self._retire(name)
            if _way(step) == RESTARTED:
                old.halt()
            self._enter(name)
        elif _way(step) == RESTARTED:
            self._gate.part_is_due = True
            self._serving.do(self._let_part_in)
            self._tell_part(RESTART)
        else:
            self._part_is_out = True
            self._enter(name)
        self._wait(
            lambda: self._member_id(name) not in (None, before),
            lambda: f"{name} did not come back" + ("" if self._plays(name) else ": restart your client"),
        )

    def _start(self, name: str) -> None:
        if self._plays(name):
            self._enter(name)
        else:
            self._gate.part_is_due = True
            self._serving.do(self._let_part_in)
            self._tell_part(START)
        self._wait(
            lambda: self._serving.do(lambda: name in self._joining()),
            lambda: f"{name} did not join" + ("" if self._plays(name) else f": {self._part_hint()}"),
        )

    def _tell_part(self, what: str) -> None:
        if self._act is not None:
            self._act(what)

    def _let_part_in(self) -> None:
        for member in tuple(self._control.frozen()):
            if member.group_id == self.group_id and self._is_part(member.instance_id, member.client_id):
                self._control.thaw(member.member_id, self.group_id)
        self._control.open_gate(self.group_id)

    def _part_hint(self) -> str:
        assert self._part is not None
        own = self.recorded.members[self._part]
        what = "group.instance.id" if own.instance_id else "client.id"
        topics = ", ".join(self._topics[self._part])
        return f"your client needs {what}={self._part_key}, group.id={self.group_id}, and to read {topics}"

    def _enter(self, name: str) -> None:
        """Have a member of our own join."""
        spec = self.recorded.members[name]
        many = len(self.recorded.members)
        timings = ClassicTimings(
            session_timeout_ms=spec.session_timeout_ms or DEFAULT_SESSION_MS,
            rebalance_timeout_ms=spec.rebalance_timeout_ms or DEFAULT_REBALANCE_MS,
            heartbeat_interval_ms=20 + 2 * many,
            retry_backoff_ms=20,
        )
        member = ClassicMember(
            self.group_id,
            self._topics[name],
            self._offered(),
            instance_id=spec.instance_id,
            rack=spec.rack,
            timings=timings,
        )
        self.actors[name] = Actor(name, member, self._stage.settings(spec.client_id or name))

    def _offered(self) -> list[RecordedAssignor]:
        return [RecordedAssignor(assignor, self._shared) for assignor in self._assignors]

    def _offer(self, to: Rebalance) -> None:
        """Have all members prefer the assignor of the generation."""
        if to.assignor is None or self._assignors[0] == to.assignor:
            return
        self._assignors = tuple(dict.fromkeys((to.assignor, *self._assignors)))
        for name in self.actors:
            self._subscribe(name)

    def _subscribe(self, name: str) -> None:
        actor, topics, offered = self.actors.get(name), self._topics[name], self._offered()
        if actor is None:
            return

        def subscribe(member: GroupMember, now_ms: int) -> list[Effect]:
            assert isinstance(member, ClassicMember)
            return member.subscribe(topics, offered, now_ms)

        actor.do(subscribe)

    def _retire(self, name: str) -> Actor:
        self.over.append(actor := self.actors.pop(name))
        return actor

    def _pass_by(self, to: Rebalance) -> Passer:
        topics = tuple(sorted({topic for wanted in self._topics.values() for topic in wanted}))
        metadata = Subscription(topics, None, (), -1, None).encode()
        names = dict.fromkeys((*([to.assignor] if to.assignor else []), *self._assignors))
        protocols = tuple(JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names)
        node = self._serving.do(lambda: self._control.coordinator_of(self.group_id))
        passer = Passer(self.group_id, protocols, self._stage.settings(PASSER), node)
        self.over.append(passer)
        self._wait(
            lambda: passer.member_id and passer.member_id in self._serving.do(self._gate.waiting),
            lambda: "a member that sets off the rebalance could not join",
        )
        return passer

    def _remove(self, member_id: str) -> None:
        """Take a member out by a request of somebody else, which is recorded as if it had left."""
        request = LeaveGroupRequest(group_id=self.group_id, members=(MemberIdentity(member_id=member_id),))
        self._ask(request)

    def _commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit by the owners, as far as they are played; by anybody what nobody owns."""
        owners = {place: actor for actor in self.actors.values() for place in actor.member.owned}
        outside: dict[TopicPartition, int] = {}
        by: dict[str, dict[TopicPartition, int]] = {}
        there = self._serving.do(lambda: set(self._names().values()))
        for place, offset in offsets.items():
            if place in owners:
                by.setdefault(owners[place].name, {})[place] = offset
            elif not there:
                outside[place] = offset
            elif place not in self._of_part() and self.actors:
                by.setdefault(next(iter(self.actors)), {})[place] = offset
        if outside:
            answer = self._ask(commit_request(self.group_id, -1, "", None, outside), NAMES_UNTIL)
            assert isinstance(answer, OffsetCommitResponse)
            self._accepted("nobody", commit_errors(answer))
        for name, share in by.items():
            actor = self.actors[name]
            actor.commit(share)
            errors = self._wait(actor.committed, lambda name=name: f"{name} could not commit")  # type: ignore[misc]
            self._accepted(name, errors)

    def _of_part(self) -> tuple[TopicPartition, ...]:
        return () if self._part is None else self._shared.shares.get(self._part, ())

    def _accepted(self, name: str, errors: Mapping[TopicPartition, int]) -> None:
        refused = {place: code for place, code in errors.items() if code}
        if refused:
            place, code = next(iter(refused.items()))
            raise KgroupError(
                f"a commit by {name} for {place} was refused: {ErrorCode.name_of(code)}", self._seen()
            )

    def _delete_offsets(self, step: DeleteOffsets) -> None:
        topics = tuple(
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(
                    OffsetDeleteRequestPartition(partition_index=each.partition) for each in found
                ),
            )
            for topic, found in groupby(sorted(step.partitions), lambda place: place.topic)
        )
        answer = self._ask(OffsetDeleteRequest(group_id=self.group_id, topics=topics))
        assert isinstance(answer, OffsetDeleteResponse)
        codes = [
            answer.error_code,
            *(part.error_code for topic in answer.topics for part in topic.partitions),
        ]
        self._refuse(f"the offsets of {partitions_text(step.partitions)}", codes)

    def _delete_group(self) -> None:
        answer = self._ask(DeleteGroupsRequest(groups_names=(self.group_id,)))
        assert isinstance(answer, DeleteGroupsResponse)
        self._refuse(self.group_id, [each.error_code for each in answer.results])

    def _refuse(self, what: str, codes: Iterable[int]) -> None:
        code = next((code for code in codes if code), 0)
        if code:
            raise KgroupError(f"{what} could not be deleted: {ErrorCode.name_of(code)}", self._seen())

    def _ask(self, request: Message, max_version: int | None = None) -> Message:
        node = self._serving.do(lambda: self._control.coordinator_of(self.group_id))
        return self._stage.ask(node, request, max_version)

    def _plays(self, name: str) -> bool:
        """Whether a member is our own."""
        return name != self._part or self._part_is_out

    def _is_part(self, instance_id: str | None, client_id: str) -> bool:
        return self._part_key is not None and (instance_id or client_id) == self._part_key

    def _names(self) -> dict[str, str]:
        """Return the names of the members that are in the group now, by member id; where the brokers run."""
        ours = {actor.member.member_id: name for name, actor in self.actors.items()}
        static = {
            spec.instance_id: name
            for name, spec in self.recorded.members.items()
            if spec.instance_id is not None
        }
        found = {}
        for each in self._control.members_of(self.group_id):
            name = static.get(each.instance_id) if each.instance_id is not None else ours.get(each.member_id)
            if name is None and self._is_part(each.instance_id, each.client_id):
                name = self._part
            if name is not None:
                found[each.member_id] = name
        return found

    def _joining(self) -> set[str]:
        names = self._names()
        return {names[member_id] for member_id in self._gate.waiting() if member_id in names}

    def _member_id(self, name: str) -> str | None:
        names = self._serving.do(self._names)
        return next((member_id for member_id, known in names.items() if known == name), None)

    def _seen(self) -> str:
        return self._serving.do(lambda: self._control.shown(self.group_id))

    def _wait(self, holds: Callable[[], T | None], missing: Callable[[], str]) -> T:
        """Return what `holds` returns once that is true; TimedOut says what is missing."""
        end = time.monotonic() + self._timeout_s
        while not (found := holds()):
            if time.monotonic() >= end:
                failed = [f"{a.name}: {a.failed.message}" for a in self.actors.values() if a.failed]
                more = f"; failed: {'; '.join(failed)}" if failed else ""
                raise TimedOut(
                    f"{missing()} within {self._timeout_s:g} s: {self.group_id} is {self._seen()}{more}"
                )
            if self._meanwhile is not None:
                self._meanwhile()
            time.sleep(LOOK_S)
        return found


def _way(step: Stop | Restart) -> str:
    """Return how a member went, or came back: the first possible way where it is not known."""
    return step.cause if step.cause != UNKNOWN else step.possible[0]


def _shift(recorded: Recorded) -> int:
    """Return by how much generations are lower here: a group that was there before begins at 1."""
    first = next((step.generation for step in recorded.steps if isinstance(step, Rebalance)), 1)
    return 0 if recorded.head.from_nothing else first - 1


def _part_of(recorded: Recorded, part: str) -> str:
    """Return the name of a member by its name, instance id or client id; ConfigError unless it is one."""
    if part in recorded.members:
        return part
    found = [name for name, spec in recorded.members.items() if part in (spec.instance_id, spec.client_id)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(
            f"{count_of(len(found), 'member')} are called {part!r}", f"one of {', '.join(found)}"
        )
    raise ConfigError(f"no member is called {part!r}", f"they are {', '.join(recorded.members)}")


def _key_of(members: Mapping[str, Member], name: str) -> str:
    """Return the instance id or client id of the user's client; the name, where others have the same."""
    spec = members[name]
    if spec.instance_id is not None:
        return spec.instance_id
    shared = sum(spec.client_id == other.client_id for other in members.values()) > 1
    return name if shared or spec.client_id is None else spec.client_id
