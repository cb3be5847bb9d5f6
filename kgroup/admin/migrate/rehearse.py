"""Rehearse a migration on a copy: the group's records in memory, upgraded and taken back there.

The coordinator is kgroup's, which decides as Kafka 4.3.1 does; `simulated_clients` play the clients. Their
assignors' results are unknown: here a leader lets each member keep what it has and assigns the rest to
those with least, with the user data it found.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from kgroup.admin.migrate.models import DOWNGRADE, UPGRADE
from kgroup.admin.migrate.rehearsal_shard import Copy, Stage, image_from
from kgroup.admin.migrate.simulated_clients import ClassicClient, ConsumerClient, Refusal, SimulatedClient
from kgroup.admin.models import CLASSIC, CONSUMER, DEAD, RANGE
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import ConsumerMember
from kgroup.domain import TopicPartition, uuid_text
from kgroup.errors import BrokerRefused, DecodeError, ErrorCode
from kgroup.history.log_items import RawRecord
from kgroup.history.raw import raw_row
from kgroup.protocol.messages.join_group import JoinGroupRequestProtocol
from kgroup.protocol.subscription import Assignment, Subscription
from kgroup.runtime.shard import Shard

BEAT_MS = 1000
MOST_BEATS = 60
DEFAULT_SESSION_MS = 45_000
CONVERTED, REFUSED, NOT_NEEDED, UNFINISHED = "converted", "refused", "not-needed", "unfinished"


Ending = Annotated[str, ("converted", "refused", "not-needed", "unfinished")]


@dataclass(frozen=True, slots=True)
class RehearsalStep:
    """One act of the rehearsal and the records it led to, as `replay-log --raw` shows records.

    `epoch` is the group epoch, or the generation of a classic group; `error_code` the refusal, if any.
    """

    phase: Annotated[str, ("upgrade", "downgrade")]
    action: str
    member: str
    type: Annotated[str, (CLASSIC, CONSUMER)]
    state: str
    epoch: Annotated[int, "or generation"]
    assignment_epoch: int | None
    error_code: str | None
    message: str | None
    records: Annotated[tuple[Mapping[str, object], ...], "as `replay-log --raw`"]


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The result; `upgrade` and `downgrade` are converted, refused, not-needed or unfinished."""

    group_id: str
    source: str
    copied: Annotated[int, "records"]
    upgrade: Ending
    downgrade: Ending
    offsets_kept: bool
    steps: tuple[RehearsalStep, ...]


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """The rehearsal of one group of several, in short; `verdict` is the plan's, null without a cluster."""

    group_id: str
    verdict: str | None
    upgrade: Ending
    downgrade: Ending
    offsets_kept: bool
    copied: Annotated[int, "records"]
    error_code: Annotated[str | None, "of the refusal"]
    message: str | None


@dataclass(slots=True)
class _Roll:
    """The group's members as clients, and their acts one by one."""

    stage: Stage
    topic_names: Mapping[bytes, str]
    clients: list[SimulatedClient] = field(default_factory=list)
    steps: list[RehearsalStep] = field(default_factory=list)
    _shown: int = 0
    _was: dict[str, ClassicClient] = field(default_factory=dict)

    def take_members(self) -> None:
        """Create a client for each member the records describe."""
        group = self.stage.group
        if isinstance(group, ClassicGroup):
            for member in group.members.values():
                try:
                    assignment = Assignment.decode(member.assignment) if member.assignment else Assignment()
                except DecodeError:
                    assignment = Assignment()
                self.clients.append(
                    ClassicClient(
                        member_id=member.member_id,
                        instance_id=member.instance_id,
                        client_id=member.client_id,
                        host=member.client_host,
                        protocols=member.protocols,
                        session_timeout_ms=member.session_timeout_ms,
                        rebalance_timeout_ms=member.rebalance_timeout_ms,
                        assign=self._assign,
                        generation=group.generation,
                        assignment=assignment,
                    )
                )
        else:
            self.clients += [self._of_consumer_group(member) for member in group.members.values()]
        self._shown = self.stage.shard.log.end_offset

    def _of_consumer_group(self, member: ConsumerMember) -> SimulatedClient:
        about, classic = member.metadata, member.metadata.classic_member_metadata
        owned = {topic: tuple(sorted(epochs)) for topic, epochs in member.current.assigned.items()}
        if classic is None:
            return ConsumerClient(
                member_id=member.member_id,
                instance_id=about.instance_id,
                client_id=about.client_id,
                host=about.client_host,
                topics=about.subscribed_topic_names,
                regex=member.regex,
                rebalance_timeout_ms=about.rebalance_timeout_ms,
                epoch=member.epoch,
                owned=owned,
            )
        protocols = tuple(
            JoinGroupRequestProtocol(name=p.name, metadata=p.metadata) for p in classic.supported_protocols
        )
        places = tuple(
            TopicPartition(self.topic_names[topic], number)
            for topic, numbers in owned.items()
            if topic in self.topic_names
            for number in numbers
        )
        return ClassicClient(
            member_id=member.member_id,
            instance_id=about.instance_id,
            client_id=about.client_id,
            host=about.client_host,
            protocols=protocols,
            session_timeout_ms=classic.session_timeout_ms,
            rebalance_timeout_ms=about.rebalance_timeout_ms,
            assign=self._assign,
            generation=member.epoch,
            assignment=Assignment(places),
        )

    def all(self, phase: str) -> str:
        """Replace every client of the old protocol, static ones first; return how that ended."""
        old_kind = ClassicClient if phase == UPGRADE else ConsumerClient
        leavers = sorted(
            (p for p in self.clients if isinstance(p, old_kind)),
            key=lambda p: (p.instance_id is None, p.host, p.name),
        )
        if not leavers and self.stage.type == (CONSUMER if phase == UPGRADE else CLASSIC):
            return NOT_NEEDED
        try:
            if not leavers:
                self._convert_empty(phase)
            for number, leaver in enumerate(leavers):
                self.clients.remove(leaver)
                leaver.leave(self.stage)
                self._settle()
                gone = "falls silent" if leaver.instance_id and phase == UPGRADE else "leaves"
                self._show(phase, f"{leaver.name} {gone}", leaver)
                self._enter(phase, self._successor(phase, leaver, number))
        except Refusal:
            return REFUSED
        return CONVERTED if self.stage.type == (CONSUMER if phase == UPGRADE else CLASSIC) else UNFINISHED

    def _enter(self, phase: str, client: SimulatedClient) -> None:
        """Let the newcomer join and all others follow until nothing moves; a Refusal becomes the step's."""
        kind = CONSUMER if isinstance(client, ConsumerClient) else CLASSIC
        action = f"{client.name or client.client_id} joins with the {kind} protocol"
        try:
            client.join(self.stage)
            self.clients.append(client)
            self._settle()
        except Refusal as refusal:
            self._show(phase, action, client, refusal)
            raise
        self._show(phase, action, client)

    def _convert_empty(self, phase: str) -> None:
        """Convert as `upgrade execute` does: one member joins, subscribes to nothing and leaves."""
        member: SimulatedClient
        if phase == UPGRADE:
            member = ConsumerClient(_member_id(self.stage.group_id), None, "kgroup", "/127.0.0.1", ())
        else:
            member = ClassicClient(
                member_id="",
                instance_id=None,
                client_id="kgroup",
                host="/127.0.0.1",
                protocols=_range(()),
                session_timeout_ms=DEFAULT_SESSION_MS,
                rebalance_timeout_ms=DEFAULT_SESSION_MS,
                assign=self._assign,
            )
        self._enter(phase, member)
        self.clients.remove(member)
        member.leave(self.stage)
        self._settle()
        self._show(phase, f"{member.name} leaves", member)

    def _successor(self, phase: str, leaver: SimulatedClient, number: int) -> SimulatedClient:
        if isinstance(leaver, ClassicClient):
            member_id = _member_id(f"{self.stage.group_id}/{number}/{leaver.name}")
            self._was[member_id] = leaver
            return ConsumerClient(
                member_id=member_id,
                instance_id=leaver.instance_id,
                client_id=leaver.client_id,
                host=leaver.host,
                topics=leaver.topics,
                rebalance_timeout_ms=leaver.rebalance_timeout_ms,
            )
        was = self._was.get(leaver.member_id)
        protocols = was.protocols if was is not None else _range(leaver.topics)
        session = was.session_timeout_ms if was is not None else DEFAULT_SESSION_MS
        return ClassicClient(
            member_id="",
            instance_id=leaver.instance_id,
            client_id=leaver.client_id,
            host=leaver.host,
            protocols=protocols,
            session_timeout_ms=session,
            rebalance_timeout_ms=leaver.rebalance_timeout_ms,
            assign=self._assign,
        )

    def _settle(self) -> None:
        """Send heartbeats of all, every second, until two rounds in a row change nothing."""
        quiet = 0
        for _ in range(MOST_BEATS):
            before = self._moment()
            for client in list(self.clients):
                client.beat(self.stage)
            self.stage.pass_time(BEAT_MS)
            quiet = quiet + 1 if self._moment() == before else 0
            if quiet == 2:
                return

    def _moment(self) -> object:
        group = self.stage.shard.coordinator.state.groups.get(self.stage.group_id)
        return self.stage.shard.log.end_offset, None if group is None else group.state

    def _assign(self, member_ids: Collection[str]) -> Mapping[str, Assignment]:
        """Let each member keep what it has, with its user data; assign the rest to those with least."""
        classic = {p.member_id: p for p in self.clients if isinstance(p, ClassicClient)}
        given = {m: list(classic[m].assignment.partitions) if m in classic else [] for m in member_ids}
        held = {partition for places in given.values() for partition in places}
        image = self.stage.shard.coordinator.state.image
        topics = {topic for m in member_ids if m in classic for topic in classic[m].topics}
        for topic in sorted(topics & image.by_name.keys()):
            able = [m for m in sorted(given) if m in classic and topic in classic[m].topics]
            for number in range(image.by_name[topic].partitions):
                partition = TopicPartition(topic, number)
                if partition not in held:
                    given[min(able, key=lambda m: len(given[m]))].append(partition)
        data = {m: classic[m].assignment.user_data if m in classic else None for m in given}
        return {m: Assignment(tuple(sorted(places)), data[m]) for m, places in given.items()}

    def _show(self, phase: str, action: str, client: SimulatedClient, refusal: Refusal | None = None) -> None:
        """Keep the act, with the records that have come since the last one."""
        group = self.stage.shard.coordinator.state.groups.get(self.stage.group_id)
        consumer = isinstance(group, ConsumerGroup)
        epoch = 0
        if isinstance(group, ConsumerGroup):
            epoch = group.epoch
        elif isinstance(group, ClassicGroup):
            epoch = group.generation
        log = self.stage.shard.log
        records = tuple(
            raw_row(
                RawRecord(r.offset, r.timestamp_ms, r.key, r.value, batch.base_offset, -1),
                self.stage.shard.partition,
                batch.control,
                self.topic_names,
            )
            for batch in log.batches(self._shown)
            for r in batch.records
        )
        self._shown = log.end_offset
        self.steps.append(
            RehearsalStep(
                phase=phase,
                action=action,
                member=client.name,
                type=CONSUMER if consumer else CLASSIC,
                state=str(group.state.value) if group is not None else DEAD,
                epoch=epoch,
                assignment_epoch=group.assignment_epoch if isinstance(group, ConsumerGroup) else None,
                error_code=None if refusal is None else ErrorCode.name_of(refusal.code),
                message=None if refusal is None else refusal.message,
                records=records,
            )
        )


def rehearse(
    copy: Copy,
    group_id: str,
    *,
    settings: Mapping[str, str],
    topic_names: Mapping[bytes, str],
    partition_counts: Mapping[str, int],
) -> Rehearsal:
    """Upgrade a copy of the group and take it back.

    `settings` are the coordinator's, under Kafka's names (unknown ones are omitted); topics are those of
    `topic_names` with `partition_counts`.
    """
    known = {name: value for name, value in settings.items() if name in GroupConfig.names()}
    image = image_from(topic_names, partition_counts)
    shard = Shard(copy.partition, copy.log, GroupConfig.of(known), 0, image)
    shard.load(copy.last_ms)
    stage = Stage(group_id, shard, copy.last_ms)
    if group_id not in shard.coordinator.state.groups:
        raise BrokerRefused(ErrorCode.GROUP_ID_NOT_FOUND, f"group {group_id} is deleted, or only has offsets")
    before = stage.offsets()
    roll = _Roll(stage, topic_names)
    roll.take_members()
    upgraded = roll.all(UPGRADE)
    back = NOT_NEEDED if upgraded == REFUSED else roll.all(DOWNGRADE)
    kept = sorted(map(str, before)) == sorted(map(str, stage.offsets()))
    return Rehearsal(group_id, copy.source, copy.count, upgraded, back, kept, tuple(roll.steps))


def _member_id(text: str) -> str:
    """Return a member id as clients make them, the same in every rehearsal."""
    return uuid_text(hashlib.sha256(text.encode()).digest()[:16])


def _range(topics: tuple[str, ...]) -> tuple[JoinGroupRequestProtocol, ...]:
    return (JoinGroupRequestProtocol(name=RANGE, metadata=Subscription(topics).encode()),)
