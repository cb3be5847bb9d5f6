"""A client process: one group member, what it reads and commits, and the answers it waits for."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import TypeAlias

from kgroup.domain import TopicPartition, numbers_by_topic
from kgroup.members.classic import ClassicMember
from kgroup.members.consumer import ConsumerMember
from kgroup.members.effects import (
    Assigned,
    CoordinatorMoved,
    Effect,
    Failed,
    GroupMember,
    Left,
    Lost,
    NeedTopics,
    Revoke,
    Send,
    WakeAt,
)
from kgroup.members.streams import StreamsMember
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.protocol.registry import response_class_of
from kgroup.simulation.world.brokers import Brokers
from kgroup.simulation.world.network import Connection, InFlight

FETCH_VERSION = 9
PARKED_SLACK_MS = 5_000
OnChange: TypeAlias = Callable[["Process"], None]
OnPosition: TypeAlias = Callable[["Process", TopicPartition, int], None]


@dataclass(slots=True)
class ProcessSettings:
    """How a process behaves; times in ms. `older_by` is how many versions its library is behind.

    `handover_ms` is the time from the request to give partitions up until that is done.
    """

    commit_every_ms: int = 5_000
    request_timeout_ms: int = 30_000
    rebalance_timeout_ms: int = 300_000
    handover_ms: int = 0
    look_up_ms: int = 100
    restart_after_ms: int | None = 2_000
    metadata_every_ms: int = 300_000
    older_by: int = 0


class Process:
    """Runs members one after another: each `start` makes a new one with `make_member(incarnation)`.

    `holding` is what the process believes to own: it reads and commits these. `sent` are its last requests.
    `joined_step` is the step of the run in which a broker admitted it to its classic generation.
    `end_of(partition)` returns how far it could have read. `on_change` is called whenever `holding` has
    changed, `on_position` when it begins to read a partition.
    """

    def __init__(
        self,
        name: str,
        brokers: Brokers,
        rng: Random,
        make_member: Callable[[int], GroupMember],
        end_of: Callable[[TopicPartition], int],
        settings: ProcessSettings | None = None,
    ) -> None:
        self.name = name
        self._brokers, self._schedule, self._rng = brokers, brokers.schedule, rng
        self.make_member = make_member
        self._end_of = end_of
        self.settings = settings or ProcessSettings()
        self.on_change: OnChange = lambda process: None
        self.on_position: OnPosition = lambda process, partition, committed: None
        self.member: GroupMember | None = None
        self.incarnation = 0
        self.holding: frozenset[TopicPartition] = frozenset()
        self.positions: dict[TopicPartition, int] = {}
        self.paused = False
        self.wanted = False
        self._leaving = self._left = False
        self._commits = 0
        self.joined_step = -1
        self.failures: list[int] = []
        self.sent: deque[tuple[Message, int]] = deque(maxlen=40)
        self._missed: list[tuple[Callable[..., None], tuple[object, ...]]] = []
        self._coordinator: int | None = None
        self._looking = False
        self._outbox: deque[Send] = deque()
        self._wake_ms: int | None = None

    @property
    def running(self) -> bool:
        return self.member is not None and not self._leaving

    @property
    def epoch(self) -> int:
        """The generation or epoch the member believes to be at; -1 while it is in none."""
        member = self.member
        if isinstance(member, ClassicMember):
            return member.generation
        return member.epoch if isinstance(member, ConsumerMember | StreamsMember) else -1

    def start(self) -> None:
        """Start the process, unless it runs; it is `wanted` from now on."""
        self.wanted = True
        if self.member is not None:
            return
        self.incarnation += 1
        self.member = self.make_member(self.incarnation)
        self._take(self.member.start(self._schedule.now_ms))
        delay = self._rng.randint(1, max(self.settings.commit_every_ms, 1))
        self._later(delay, self._commit_tick)
        self._later(self._rng.randint(1, self.settings.metadata_every_ms), self._metadata_tick)

    def stop(self, for_good: bool = False) -> None:
        """Ask the process to leave its group and end; a paused one does so when it resumes."""
        self.wanted = False
        if self.member is not None:
            self._leaving = True
            self._awake(self._leave, self.member, for_good)

    def kill(self) -> None:
        """End the process at once, without notice."""
        self.wanted = self.paused = False
        self._end()

    def pause(self) -> None:
        """Pause the process: it receives nothing, and its beliefs stay."""
        self.paused = True

    def resume(self) -> None:
        """Resume the process, with everything that arrived meanwhile, in order."""
        self.paused = False
        missed, self._missed = self._missed, []
        for action, args in missed:
            self._awake(action, *args)

    def answered(self, connection: Connection, sent: InFlight, data: bytes) -> None:
        """See `network.Endpoint`."""
        self._awake(self._answered, self.member, sent, data)

    def gave_up(self, connection: Connection, requests: list[InFlight]) -> None:
        """See `network.Endpoint`."""
        for sent in requests:
            self._awake(self._unanswered, self.member, sent.message)

    def _awake(self, action: Callable[..., None], *args: object) -> None:
        if self.paused:
            self._missed.append((action, args))
        else:
            action(*args)

    def _later(self, delay_ms: int, action: Callable[[GroupMember], None]) -> None:
        """Call `action` then with the current member, if it has not been replaced."""
        self._schedule.after(delay_ms, self._awake, self._if_current, self.member, action)

    def _if_current(self, member: GroupMember, action: Callable[[GroupMember], None]) -> None:
        if member is self.member:
            action(member)

    def _answered(self, member: GroupMember | None, sent: InFlight, data: bytes) -> None:
        if member is None or member is not self.member:
            return
        request = sent.message
        response = response_class_of(request).decode(data, sent.version)
        self._commits -= isinstance(request, OffsetCommitRequest)
        if isinstance(response, JoinGroupResponse) and not response.error_code:
            self.joined_step = sent.answered_step
        if isinstance(response, OffsetFetchResponse):
            group = response.groups[0]
            again = bool(group.error_code)
            for topic in group.topics:
                for answer in topic.partitions:
                    partition = TopicPartition(topic.name, answer.partition_index)
                    if answer.error_code:
                        again = True
                    elif partition in self.holding and partition not in self.positions:
                        self._begin_at(partition, answer.committed_offset)
            if again:
                self._coordinator = None
                self._later(self.settings.look_up_ms, self._fetch_positions)
        else:
            self._take(member.receive(request, response, self._schedule.now_ms))
        self._end_once_committed()

    def _unanswered(self, member: GroupMember | None, request: Message) -> None:
        if member is None or member is not self.member:
            return
        self._coordinator = None
        if isinstance(request, OffsetFetchRequest):
            self._later(self.settings.look_up_ms, self._fetch_positions)
        else:
            self._commits -= isinstance(request, OffsetCommitRequest)
            self._take(member.unanswered(request, self._schedule.now_ms))
        self._end_once_committed()

    def _refresh(self, member: GroupMember) -> None:
        if member is self.member:
            self._take(member.update_topics(self._brokers.image.by_name, self._schedule.now_ms))

    def _metadata_tick(self, member: GroupMember) -> None:
        """Refresh the client's topic metadata, as clients do from time to time."""
        self._refresh(member)
        self._later(self.settings.metadata_every_ms, self._metadata_tick)

    def _leave(self, member: GroupMember, for_good: bool) -> None:
        if member is self.member:
            self._take(member.leave(self._schedule.now_ms, for_good))

    def _take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if self.member is None:
                return
            self._carry_out(self.member, effect)

    def _carry_out(self, member: GroupMember, effect: Effect) -> None:
        match effect:
            case Send():
                self._send(effect)
            case WakeAt():
                self._wake_ms = effect.ms
                self._schedule.at(effect.ms, self._awake, self._wake, member, effect.ms)
            case NeedTopics():
                self._later(self.settings.look_up_ms, self._refresh)
            case CoordinatorMoved():
                self._coordinator = None
            case Revoke():
                self._give_up(member, effect)
            case Assigned() | Lost():
                self._note_holding(member)
                self._fetch_positions(member)
            case Failed():
                self.failures.append(effect.code)
                self._end()
                self._restart_later()
            case Left():
                self._left = True
                self._end_once_committed()

    def _give_up(self, member: GroupMember, revoke: Revoke) -> None:
        """Commit, and confirm once the application is done; a member that leaves does not wait."""
        for partition in revoke.partitions:
            if partition in self.positions:
                self.positions[partition] = max(self.positions[partition], self._end_of(partition))
        due = {p: self.positions[p] for p in revoke.partitions if p in self.positions}
        if due:
            self._commit(member, due)
        if self._leaving:
            self._note_holding(member)
        else:
            self._later(self.settings.handover_ms, self._gave_up)

    def _commit(self, member: GroupMember, offsets: Mapping[TopicPartition, int]) -> None:
        self._take(member.commit(offsets, self._schedule.now_ms))

    def _gave_up(self, member: GroupMember) -> None:
        effects = member.revoked(self._schedule.now_ms)
        self._note_holding(member)
        self._take(effects)

    def _note_holding(self, member: GroupMember) -> None:
        owned = member.owned
        if owned == self.holding:
            return
        self.holding = owned
        self.on_change(self)
        for partition in [p for p in self.positions if p not in owned]:
            del self.positions[partition]

    def _end_once_committed(self) -> None:
        """End a process that has left when its last commit is answered, as a consumer's close does."""
        if self._left and not self._commits:
            self._end()
            self._restart_later()

    def _restart_later(self) -> None:
        if self.wanted and self.settings.restart_after_ms is not None:
            self._schedule.after(self.settings.restart_after_ms, self._restart, self.incarnation)

    def _restart(self, incarnation: int) -> None:
        if self.wanted and incarnation == self.incarnation:
            self.start()

    def _end(self) -> None:
        self.member = None
        self._coordinator, self._wake_ms, self._looking = None, None, False
        self._leaving, self._left, self._commits = False, False, 0
        self._outbox.clear()
        self._missed.clear()
        if self.holding:
            self.holding = frozenset()
            self.on_change(self)
        self.positions.clear()
        self._brokers.network.break_all(name=self.name)

    def _send(self, send: Send) -> None:
        self._commits += isinstance(send.request, OffsetCommitRequest)
        if self._coordinator is not None and not self._outbox:
            self._transmit(send)
            return
        self._outbox.append(send)
        if not self._looking:
            self._looking = True
            self._later(self.settings.look_up_ms, self._found_coordinator)

    def _found_coordinator(self, member: GroupMember) -> None:
        self._looking = False
        self._coordinator = self._brokers.coordinator_of(member.group_id)
        waiting, self._outbox = self._outbox, deque()
        for send in waiting:
            if self._coordinator is not None:
                self._transmit(send)
            else:
                self._later(self.settings.look_up_ms, partial(self._not_found, send.request))

    def _not_found(self, request: Message, member: GroupMember) -> None:
        self._unanswered(member, request)

    def _transmit(self, send: Send) -> None:
        assert self._coordinator is not None
        request = send.request
        versions = request.VERSIONS
        newest = min(versions[-1], 99 if send.max_version is None else send.max_version)
        version = max(newest - self.settings.older_by, send.min_version, versions[0])
        self.sent.append((request, version))
        parked = isinstance(request, JoinGroupRequest | SyncGroupRequest)
        settings = self.settings
        timeout = settings.rebalance_timeout_ms + PARKED_SLACK_MS if parked else settings.request_timeout_ms
        self._brokers.network.send(self, self._coordinator, request, version, timeout)

    def _wake(self, member: GroupMember, ms: int) -> None:
        if member is self.member and self._wake_ms == ms:
            self._wake_ms = None
            self._take(member.wake(self._schedule.now_ms))

    def _commit_tick(self, member: GroupMember) -> None:
        """Commit how far it has read, and read on."""
        due = {p: at for p, at in self.positions.items() if p in self.holding}
        if due:
            self._commit(member, due)
        for partition in self.positions:
            self.positions[partition] = max(self.positions[partition], self._end_of(partition))
        if self.member is member:
            self._later(self.settings.commit_every_ms, self._commit_tick)

    def _fetch_positions(self, member: GroupMember) -> None:
        """Ask for the committed offset of every partition held that is not being read yet."""
        by_topic = numbers_by_topic(p for p in self.holding if p not in self.positions)
        if not by_topic:
            return
        modern = isinstance(member, ConsumerMember | StreamsMember)
        group = OffsetFetchRequestGroup(
            group_id=member.group_id,
            member_id=member.member_id if modern else None,
            member_epoch=member.epoch if isinstance(member, ConsumerMember | StreamsMember) else -1,
            topics=tuple(
                OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
                for name, numbers in by_topic.items()
            ),
        )
        request = OffsetFetchRequest(groups=(group,), require_stable=True)
        self._send(Send(request, min_version=FETCH_VERSION, max_version=FETCH_VERSION))

    def _begin_at(self, partition: TopicPartition, committed: int) -> None:
        self.positions[partition] = max(committed, 0)
        self.on_position(self, partition, committed)
