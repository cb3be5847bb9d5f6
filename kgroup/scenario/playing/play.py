"""The course of a scenario: each step runs, and the next begins once the group is where it was then."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import groupby
from typing import Protocol, TypedDict, TypeVar, Unpack

from kgroup.broker.control.control import Control
from kgroup.broker.control.gates import Gate
from kgroup.client.settings import ConnectionSettings
from kgroup.domain import TopicPartition, count_of, partitions_text
from kgroup.errors import ConfigError, ErrorCode, KgroupError, TimedOut
from kgroup.history.fold.leave_causes import Way
from kgroup.members.classic import ClassicMember
from kgroup.members.commits import NAMES_UNTIL, commit_errors, commit_request
from kgroup.members.consumer import ConsumerMember
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kgroup.protocol.messages.offset_commit import OffsetCommitResponse
from kgroup.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kgroup.scenario.playing.actors import Actor, Passer
from kgroup.scenario.recorded import (
    RESTARTED,
    UNKNOWN,
    Commit,
    DeleteGroup,
    DeleteOffsets,
    Grow,
    Member,
    OfMember,
    Recorded,
    Restart,
    Start,
    Step,
    Stop,
    Subscribe,
)

T = TypeVar("T")
LOOK_S = 0.002
SILENT = (Way.SESSION_ENDED, Way.FENCED)
"""Ways in which the coordinator removes members as time passes."""
START, STOP, RESTART = "start", "stop", "restart"
"""What the user's client must do."""
DEFAULT_REBALANCE_MS = 300_000


class Serving(Protocol):
    """Brokers in another thread, under control."""

    @property
    def control(self) -> Control: ...

    def do(self, work: Callable[[], T]) -> T: ...

    def call(self, work: Coroutine[object, None, T]) -> T: ...


class Stage(Protocol):
    """The place where a scenario is played: brokers, connections, and requests that bypass the gate."""

    @property
    def serving(self) -> Serving: ...

    def settings(self, client_id: str) -> ConnectionSettings: ...

    def ask(self, node: int, request: Message, max_version: int | None = None) -> Message: ...


class How(TypedDict):
    """How a scenario is played; see `Play`."""

    part: str | None
    act: Callable[[str], object] | None
    meanwhile: Callable[[], object] | None
    timeout_s: float


class PartGate(Gate, Protocol):
    """A gate that keeps the user's client out until its part begins."""

    part_is_due: bool


class Play(ABC):
    """One scenario on one stage. `part` is the member that is the user's client, None if all are played.

    `act` is called with START, STOP or RESTART when the user's client must do that, `meanwhile` repeatedly
    while something is awaited; every wait ends after `timeout_s`.
    """

    gate: PartGate
    """Decides which requests are served."""

    def __init__(
        self,
        recorded: Recorded,
        stage: Stage,
        **how: Unpack[How],
    ) -> None:
        part = how["part"]
        self.recorded = recorded
        self.group_id = recorded.head.group
        self.actors: dict[str, Actor] = {}
        self.over: list[Actor | Passer] = []
        self._stage = stage
        self._serving = stage.serving
        self._control = stage.serving.control
        self._timeout_s = how["timeout_s"]
        self._act = how["act"]
        self._meanwhile = how["meanwhile"]
        self._part = None if part is None else _part_of(recorded, part)
        # The instance id or client id of the user's client; the name if others share them.
        self._keys: dict[str, str] = {}
        for name, spec in recorded.members.items():
            alike = sum(spec.client_id == other.client_id for other in recorded.members.values())
            own = name if alike > 1 or spec.client_id is None else spec.client_id
            self._keys[name] = own if spec.instance_id is None else spec.instance_id
        self._part_key = None if self._part is None else self._keys[self._part]
        self._part_is_out = False
        known = tuple(recorded.head.topics)
        self._topics = {name: member.topics or known for name, member in recorded.members.items()}
        self._ids: dict[str, str] = {}
        self._held: dict[str, tuple[TopicPartition, ...]] = {}
        self._began_ms = 0

    @abstractmethod
    def _member(self, name: str, spec: Member) -> ClassicMember | ConsumerMember:
        """Return a played member."""

    @abstractmethod
    def _resubscribe(self, name: str, actor: Actor) -> None:
        """Make a played member subscribe to what `_topics` says now."""

    @abstractmethod
    def _await_join(self, name: str) -> None:
        """Wait until a member has joined, as far as it can."""

    @abstractmethod
    def _remove(self, member_id: str, way: str) -> None:
        """Remove a member by a request in its name, which is recorded as if it had left."""

    @abstractmethod
    def _close(self, changes: list[OfMember], last: Step) -> None:
        """Make the group's changes and their result happen."""

    @abstractmethod
    def _epoch_of(self, member_id: str) -> int:
        """Return the generation or epoch at which a member commits; call in the brokers' thread."""

    def run(self) -> None:
        """Do everything recorded, in order; TimedOut says what did not happen."""
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
        """Stop all played members from sending."""
        for actor in self.actors.values():
            actor.halt()

    def join(self) -> None:
        """Wait until the threads of all members have ended; their connections must be closed or closing."""
        for actor in (*self.actors.values(), *self.over):
            actor.join()

    def _begin(self) -> None:
        if self.group_id in self._control.state_of(self.group_id).groups:
            raise ConfigError(
                f"there is a group {self.group_id} already, so its generations would be others",
                "play on a fresh cluster, and subscribe your client when act= is called with 'start'",
            )
        self._control.set_gate(self.group_id, self.gate)
        self._began_ms = self._control.clock.now_ms()

    def _end(self) -> None:
        self._control.remove_gate(self.group_id)
        for member in tuple(self._control.frozen()):
            if member.group_id == self.group_id:
                self._control.thaw(member.member_id, self.group_id)

    def _tied(self) -> Iterator[tuple[int, Step]]:
        """Yield the steps with numbers: steps of one generation share a number."""
        number = 0
        for step in self.recorded.steps:
            yield number, step
            changes = isinstance(step, OfMember) and not (isinstance(step, Restart) and step.generation)
            number += not changes

    def _together(self, steps: list[Step]) -> None:
        """Do the steps of one generation: the changes in the group, and the generation that follows."""
        # Members whose sessions end by now have gone silent before.
        for step in steps:
            if isinstance(step, Stop) and way_of(step) in SILENT:
                self._silence(step.member)
        at_ms = max(step.at_ms or 0 for step in steps)
        left_ms = self._began_ms + at_ms - self._serving.do(self._control.clock.now_ms)
        if left_ms > 0:
            self._serving.call(self._control.advance(timedelta(milliseconds=left_ms)))
        last = steps[-1]
        match last:
            case Commit():
                self._commit(last.offsets)
            case Grow():
                larger = tuple(
                    CreatePartitionsTopic(name=name, count=size, assignments=None)
                    for name, size in last.topics.items()
                )
                timeout_ms = int(self._timeout_s * 1000)
                answer = self._ask(CreatePartitionsRequest(topics=larger, timeout_ms=timeout_ms))
                assert isinstance(answer, CreatePartitionsResponse)
                self._refuse("more partitions", [result.error_code for result in answer.results], "made")
            case DeleteOffsets():
                self._delete_offsets(last)
            case DeleteGroup():
                answer = self._ask(DeleteGroupsRequest(groups_names=(self.group_id,)))
                assert isinstance(answer, DeleteGroupsResponse)
                self._refuse(self.group_id, [result.error_code for result in answer.results])
            case _:
                self._close([step for step in steps if isinstance(step, OfMember)], last)

    def _silence(self, name: str) -> None:
        """Silence a member; its session ends when the step does, and not before."""
        member_id = self._member_id(name)
        if name in self.actors:
            self._retire(name).halt()
        if member_id is not None:
            self._serving.do(lambda: self._control.freeze(member_id, self.group_id))
            self._serving.do(lambda: self._control.keep(member_id, self.group_id))

    def _changes(self, changes: Iterable[OfMember]) -> None:
        for step in changes:
            match step:
                case Stop():
                    self._stop(step)
                case Restart():
                    self._restart(step)
                case Subscribe():
                    self._topics[step.member] = step.topics
                    if step.member in self.actors:
                        self._resubscribe(step.member, self.actors[step.member])
                case Start():
                    self._start(step.member, back=step.back)

    def _stop(self, step: Stop) -> None:
        name, way = step.member, way_of(step)
        member_id = self._member_id(name)
        if way not in SILENT:
            self._go(name, member_id, way)
        elif member_id is not None:
            self._serving.do(lambda: self._control.expire(member_id, self.group_id))
        if self._plays(name):
            self._serving.do(lambda: self._let_in(name))
        else:
            self.gate.part_is_due = False

    def _go(self, name: str, member_id: str | None, way: str) -> None:
        """Make a member leave, or remove it."""
        if member_id is None:
            raise KgroupError(f"{name} is not in {self.group_id}, but must leave", self._seen())
        if not self._plays(name) and way != Way.REMOVED:
            self._instruct_part(STOP)
            self._wait(
                lambda: self._has_gone(name, member_id),
                lambda: f"{name}, your client, did not leave: close it",
            )
            return
        if name in self.actors:
            self._retire(name).halt()
        self._remove(member_id, way)

    def _has_gone(self, name: str, member_id: str) -> bool:
        return self._member_id(name) != member_id

    def _restart(self, step: Restart) -> None:
        name, before = step.member, self._member_id(step.member)
        if self._plays(name):
            old = self._retire(name) if name in self.actors else None
            if old is not None and way_of(step) == RESTARTED:
                old.halt()
            self._enter(name)
        elif way_of(step) == RESTARTED:
            self.gate.part_is_due = True
            self._serving.do(lambda: self._let_in(name))
            self._instruct_part(RESTART)
        else:
            self._part_is_out = True
            self._enter(name)
        self._wait(
            lambda: self._member_id(name) not in (None, before),
            lambda: f"{name} did not come back" + ("" if self._plays(name) else ": restart your client"),
        )

    def _start(self, name: str, *, back: bool) -> None:
        if self._plays(name):
            self._enter(name, back=back)
        else:
            self.gate.part_is_due = True
            self._serving.do(lambda: self._let_in(name))
            self._instruct_part(START)
        self._await_join(name)

    def _not_joined(self, name: str) -> str:
        if self._plays(name):
            return f"{name} did not join"
        assert self._part is not None
        own = self.recorded.members[self._part]
        what = "group.instance.id" if own.instance_id else "client.id"
        topics = ", ".join(self._topics[self._part])
        return (
            f"{name} did not join: your client needs {what}={self._part_key}, group.id={self.group_id}, "
            f"and to read {topics}"
        )

    def _instruct_part(self, what: str) -> None:
        if self._act is not None:
            self._act(what)

    def _let_in(self, name: str) -> None:
        """Wait until everything that a member has sent is answered, as far as the gate admits it."""
        for member in tuple(self._control.frozen()):
            if member.group_id == self.group_id and self._keys[name] in member[1:]:
                self._control.thaw(member.member_id, self.group_id)
        self._control.open_gate(self.group_id)

    def _enter(self, name: str, *, back: bool = False) -> None:
        """Make a played member join; one that is `back` has its former member id."""
        spec = self.recorded.members[name]
        member = self._member(name, spec)
        if back and name in self._ids:
            member.member_id = self._ids[name]
        self._ids[name] = member.member_id
        # The gate must know it before it sends anything.
        self.actors[name] = Actor(name, member, self._stage.settings(spec.client_id or name))
        self.actors[name].start()

    def _retire(self, name: str) -> Actor:
        self.over.append(actor := self.actors.pop(name))
        return actor

    def _commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit in the owners' names; without an owner in any member's; the part commits its own."""
        owners = {partition: name for name, share in self._held.items() for partition in share}
        names = self._serving.do(self._names)
        there = {name: member_id for member_id, name in names.items()}
        anybody = next((name for name in there if self._plays(name)), self._part)
        by: dict[str | None, dict[TopicPartition, int]] = {}
        for partition, offset in offsets.items():
            by.setdefault(owners.get(partition, anybody if there else None), {})[partition] = offset
        for name, share in by.items():
            if name is None:
                request = commit_request(self.group_id, -1, "", None, share)
            elif not self._plays(name) or name not in there:
                continue
            else:
                epoch = self._serving.do(lambda: self._epoch_of(there[name]))  # noqa: B023 - called here
                instance_id = self.recorded.members[name].instance_id
                request = commit_request(self.group_id, epoch, there[name], instance_id, share)
            answer = self._ask(request, NAMES_UNTIL)
            assert isinstance(answer, OffsetCommitResponse)
            refused = {partition: code for partition, code in commit_errors(answer).items() if code}
            if refused:
                partition, code = next(iter(refused.items()))
                raise KgroupError(
                    f"a commit by {name or 'no member'} for {partition} was refused: "
                    f"{ErrorCode.name_of(code)}",
                    self._seen(),
                )

    def _delete_offsets(self, step: DeleteOffsets) -> None:
        topics = tuple(
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=tuple(OffsetDeleteRequestPartition(partition_index=p.partition) for p in of_topic),
            )
            for topic, of_topic in groupby(sorted(step.partitions), lambda partition: partition.topic)
        )
        answer = self._ask(OffsetDeleteRequest(group_id=self.group_id, topics=topics))
        assert isinstance(answer, OffsetDeleteResponse)
        codes = [
            answer.error_code,
            *(part.error_code for topic in answer.topics for part in topic.partitions),
        ]
        self._refuse(f"the offsets of {partitions_text(step.partitions)}", codes)

    def _refuse(self, what: str, codes: Iterable[int], done: str = "deleted") -> None:
        code = next((code for code in codes if code), 0)
        if code:
            raise KgroupError(f"{what} could not be {done}: {ErrorCode.name_of(code)}", self._seen())

    def _ask(self, request: Message, max_version: int | None = None) -> Message:
        node = self._serving.do(lambda: self._control.coordinator_of(self.group_id))
        return self._stage.ask(node, request, max_version)

    def _plays(self, name: str) -> bool:
        """Return whether a member is played."""
        return name != self._part or self._part_is_out

    def _is_part(self, instance_id: str | None, client_id: str) -> bool:
        return self._part_key is not None and (instance_id or client_id) == self._part_key

    def _names(self) -> dict[str, str]:
        """Return the names of the group's current members by member id; call in the brokers' thread."""
        ours = {actor.member.member_id: name for name, actor in self.actors.items()}
        static = {
            spec.instance_id: name
            for name, spec in self.recorded.members.items()
            if spec.instance_id is not None
        }
        names = {}
        for m in self._control.members_of(self.group_id):
            name = static.get(m.instance_id) if m.instance_id is not None else ours.get(m.member_id)
            if name is None and self._is_part(m.instance_id, m.client_id):
                name = self._part
            if name is not None:
                names[m.member_id] = name
        return names

    def _member_id(self, name: str) -> str | None:
        names = self._serving.do(self._names)
        return next((member_id for member_id, known in names.items() if known == name), None)

    def _seen(self) -> str:
        return self._serving.do(lambda: self._control.shown(self.group_id))

    def _wait(self, holds: Callable[[], T | None], missing: Callable[[], str]) -> T:
        """Return what `holds` returns once that is true; TimedOut says what is missing."""
        end = time.monotonic() + self._timeout_s
        while not (result := holds()):
            if time.monotonic() >= end:
                failed = [f"{a.name}: {a.failed.message}" for a in self.actors.values() if a.failed]
                more = f"; failed: {'; '.join(failed)}" if failed else ""
                raise TimedOut(
                    f"{missing()} within {self._timeout_s:g} s: {self.group_id} is {self._seen()}{more}"
                )
            if self._meanwhile is not None:
                self._meanwhile()
            time.sleep(LOOK_S)
        return result


def way_of(step: Stop | Restart) -> str:
    """Return how a member left or came back: the first possible way if it is unknown."""
    return step.cause if step.cause != UNKNOWN else step.possible[0]


def _part_of(recorded: Recorded, part: str) -> str:
    """Return the member with this name, instance id or client id; ConfigError unless there is exactly one."""
    if part in recorded.members:
        return part
    names = [name for name, spec in recorded.members.items() if part in (spec.instance_id, spec.client_id)]
    if len(names) == 1:
        return names[0]
    if names:
        raise ConfigError(
            f"{count_of(len(names), 'member')} are called {part!r}", f"one of {', '.join(names)}"
        )
    raise ConfigError(f"no member is called {part!r}", f"they are {', '.join(recorded.members)}")
