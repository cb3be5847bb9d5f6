"""What plans are about is done: on a copy of the cluster, by requests, with the members of the state."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar, cast

from kgroup.domain import TopicPartition
from kgroup.errors import ErrorCode
from kgroup.protocol.messages import alter_share_group_offsets as alter
from kgroup.protocol.messages import describe_share_group_offsets as shares
from kgroup.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kgroup.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsResponse,
)
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kgroup.protocol.messages.join_group import JoinGroupResponse
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kgroup.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)

from .machine import FULL, HOUR_MS, Slot
from .playing import Group, Member
from .states import State

T = TypeVar("T")
Offsets = dict[TopicPartition, int]
ROUNDS = 8
"""As often each member is heard until all have what they shall have."""
STEP_MS = 500
STILL_MS, LOOKS = 10_000, 6
"""How often it is looked who is left of silent members."""
ROOMS: Mapping[str, tuple[str, int]] = {
    "enough": ("group.consumer.max.size", FULL),
    "two": ("group.consumer.max.size", 2),
    "one": ("group.consumer.max.size", 1),
    "classic-one": ("group.max.size", 1),
    "short-session": ("group.consumer.session.timeout.ms", 45_000),
}


@dataclass
class Followed:
    """What was answered, and what is true of the group afterwards."""

    refusals: list[tuple[str, str]] = field(default_factory=list)
    """Each code with its reason, of what was refused."""
    type: str = ""
    owners: dict[TopicPartition, str] = field(default_factory=dict)
    offsets: Offsets = field(default_factory=dict)
    codes: dict[object, str] = field(default_factory=dict)
    """The answer about each member, partition or group."""
    members: int = 0
    classic: int = 0
    """How many of them speak the classic protocol."""
    still: dict[int, int] = field(default_factory=dict)
    """How many members of the consumer protocol there are, so many milliseconds after they fell silent."""
    settled: bool = True
    """Whether all that is left is at rest."""


class Refused(Exception):
    """A member is refused."""


def settings_of(state: State) -> dict[str, str]:
    """What the brokers of a state are told about groups when plans are made."""
    name, most = ROOMS[state.room]
    return {"group.consumer.migration.policy": state.policy, name: str(most)}


def apart(work: Callable[[], T]) -> T:
    """Do it in a copy of this process, which ends then; return its result. Windows has no such thing."""
    if sys.platform == "win32":
        raise NotImplementedError
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Threads of others hold nothing that this needs.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if not pid:
        with os.fdopen(write, "wb") as out:
            try:
                pickle.dump((work(), ""), out)
            except BaseException:
                pickle.dump((None, traceback.format_exc()), out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        result, failure = pickle.load(answer)
    os.waitpid(pid, 0)
    assert not failure, failure
    return cast(T, result)


def carried_out(group: Group, step: Callable[[Driver], Followed]) -> Followed:
    """Carry a step out for a group on a copy of its cluster, where nothing else happens."""

    def work() -> Followed:
        group.machine.forget()
        group.machine.restart(settings_of(group.state))
        return step(Driver(group))

    try:
        return apart(work)
    except AssertionError as failed:
        raise AssertionError(f"cannot be carried out: {group.state}") from failed


class Driver:
    """The members of one group, who go on."""

    def __init__(self, group: Group) -> None:
        self.group, self.machine = group, group.machine
        self.found = Followed()
        group.rolls = group.state.protocol == "classic"
        if group.rolls:
            # Who did not rejoin in time is no member any more.
            asked = DescribeGroupsRequest(groups=(group.name,))
            there = self.machine.ask(asked, DescribeGroupsResponse).groups[0].members
            group.members = [m for m in group.members if m.member_id in {each.member_id for each in there}]

    @property
    def live(self) -> list[Member]:
        return [m for m in self.group.members if not m.left and not self.group.dead(m)]

    @property
    def type(self) -> str:
        asked = ConsumerGroupDescribeRequest(group_ids=(self.group.name,))
        answer = self.machine.ask(asked, ConsumerGroupDescribeResponse).groups[0]
        return "classic" if answer.error_code else "consumer"

    def run(self, ms: int = STEP_MS) -> None:
        self.machine.run(self.machine.now_ms + ms)

    # rolls

    def upgrade(self) -> Followed:
        """Stop each member of the classic protocol, and start its successor."""
        return self._roll(to_classic=False)

    def downgrade(self) -> Followed:
        """The same, to the classic protocol."""
        return self._roll(to_classic=True)

    def _roll(self, *, to_classic: bool) -> Followed:
        with suppress(Refused):
            old_ones = [m for m in self.group.members if m.classic != to_classic]
            for old in sorted(old_ones, key=lambda m: m.instance is None):
                self._stop(old)
                self._start(old, classic=to_classic)
            self._settle()
        return self._after()

    def back(self) -> Followed:
        """Start one member of the consumer protocol where none is, and then stop all that speak it."""
        if self.group.members and self.group.classic:
            extra = Member("x", self.group.members[0].topics)
            with suppress(Refused):
                self._start(extra, classic=False)
        for member in [m for m in self.group.members if not m.classic]:
            self.group._beat(member, epoch=-1)
            self.group.members.remove(member)
        self.run()
        return self._after()

    def silent(self) -> Followed:
        """All move to the consumer protocol, and fall silent."""
        found = self.upgrade()
        ids = {member.member_id for member in self.live}
        for look in range(LOOKS if not found.refusals else 0):
            asked = ConsumerGroupDescribeRequest(group_ids=(self.group.name,))
            there = self.machine.ask(asked, ConsumerGroupDescribeResponse).groups[0].members
            found.still[look * STILL_MS] = len(ids & {member.member_id for member in there})
            self.run(STILL_MS)
        return found

    def _stop(self, old: Member) -> None:
        gone = self.group.dead(old) or old.left
        # A static member of the classic protocol says nothing when it stops.
        if not gone and old.instance is None:
            self.group._leave(old)
        elif not gone and not old.classic:
            self.group._beat(old, epoch=-2)
        self.group.members = [member for member in self.group.members if member is not old]
        # librdkafka adds its user data in the rebalance that this begins.
        rebalances = self.group.state.seed % 2 or self.group.state.client == "librdkafka"
        if rebalances and len(self.live) == len(self.group.members):
            self._settle()

    def _start(self, old: Member, *, classic: bool) -> None:
        fresh = Member(old.name, old.topics, old.instance, None if classic else old.regex, classic)
        fresh.stops_ms = self.machine.now_ms + HOUR_MS
        self.machine.run(self.machine.now_ms + 1)
        if not classic:
            fresh.member_id = f"{self.machine.now_ms:022d}"
            fresh.epoch = 0
            try:
                self.group._beat(fresh, first=True)
            except AssertionError as failed:
                answer = failed.args[0]
                if not isinstance(answer, ConsumerGroupHeartbeatResponse):
                    raise
                self._refused(answer.error_code, answer.error_message or "")
            self.group.members.append(fresh)
        else:
            self._joins(fresh)
        self._settle()

    def _refused(self, code: int, reason: str = "") -> NoReturn:
        self.found.refusals.append((ErrorCode(code).name, reason))
        raise Refused

    def _joins(self, fresh: Member) -> None:
        """A member of the classic protocol joins whatever group there is."""
        self.group.members.append(fresh)
        slot = self.group._send_join(fresh)
        if slot.answer is None:
            # The others are to join, too, which they learn by their next heartbeat.
            slots = [(m, self.group._send_join(m)) for m in self.live if m is not fresh and m.classic]
            self.run()
            self._sync([*slots, (fresh, slot)])
            return
        answer = slot.of(JoinGroupResponse)
        if answer.error_code:
            self.group.members.remove(fresh)
            self._refused(answer.error_code)
        # It joins once more, and gets its partitions, with the others.
        fresh.member_id = answer.member_id

    def _sync(self, slots: list[tuple[Member, Slot]]) -> None:
        if any(slot.answer is None for _, slot in slots):
            self.found.settled = False  # it waits for one that is dead
            return
        for _, slot in slots:
            if code := slot.of(JoinGroupResponse).error_code:
                self._refused(code)
        self.group._sync(slots)

    def _settle(self) -> None:
        """All that are alive go on until each has what it shall have."""
        for _ in range(ROUNDS if not self.group.share else 0):
            self.run()
            if self.group.state.protocol != "streams" and self.type == "classic":
                live = self.live
                if live and all(m.classic for m in live):
                    slots = [(m, self.group._send_join(m)) for m in live]
                    self.run()
                    self._sync(slots)
                return
            for member in self.live:
                self.group._beat(member, first=member.classic and member.epoch < 0)

    def _after(self) -> Followed:
        found, group = self.found, self.group
        found.type = self.type
        found.members = len(group.members)
        found.classic = sum(m.classic for m in group.members)
        found.owners = {place: m.name for m in self.live for place in m.owned}
        found.offsets = self.offsets()
        return found

    # changes

    def remove(self, members: Sequence[tuple[str | None, str | None]]) -> Followed:
        """Remove members by hand; the others go on."""
        identities = tuple(
            MemberIdentity(member_id=member or "", group_instance_id=instance) for instance, member in members
        )
        answer = self.machine.ask(
            LeaveGroupRequest(group_id=self.group.name, members=identities), LeaveGroupResponse
        )
        self.found.codes[""] = ErrorCode(answer.error_code).name
        for asked, each in zip(members, answer.members, strict=True):
            self.found.codes[asked] = ErrorCode(each.error_code).name
        gone = {(m.group_instance_id, m.member_id) for m in answer.members if not m.error_code}
        ids = {member for _, member in gone}
        instances = {instance for instance, _ in gone if instance}
        self.group.members = [
            m for m in self.group.members if m.member_id not in ids and m.instance not in instances
        ]
        self._settle()
        return self._after()

    def commit(self, offsets: Offsets) -> Followed:
        """Commit offsets as no member; of a share group, set where it begins."""
        if self.group.share:
            return self._set_starts(offsets)
        for place, offset in offsets.items():
            part = OffsetCommitRequestPartition(partition_index=place.partition, committed_offset=offset)
            topic = OffsetCommitRequestTopic(name=place.topic, partitions=(part,))
            request = OffsetCommitRequest(
                group_id=self.group.name, generation_id_or_member_epoch=-1, member_id="", topics=(topic,)
            )
            answer = self.machine.ask(request, OffsetCommitResponse, 9)
            self.found.codes[place] = ErrorCode(answer.topics[0].partitions[0].error_code).name
        return self._after()

    def _set_starts(self, starts: Offsets) -> Followed:
        for place, start in starts.items():
            part = alter.AlterShareGroupOffsetsRequestPartition(
                partition_index=place.partition, start_offset=start
            )
            topic = alter.AlterShareGroupOffsetsRequestTopic(topic_name=place.topic, partitions=(part,))
            request = alter.AlterShareGroupOffsetsRequest(group_id=self.group.name, topics=(topic,))
            answer = self.machine.ask(request, alter.AlterShareGroupOffsetsResponse)
            code = answer.error_code or answer.responses[0].partitions[0].error_code
            self.found.codes[place] = ErrorCode(code).name
        self.found.offsets = self._starts()
        return self.found

    def _starts(self) -> Offsets:
        asked = shares.DescribeShareGroupOffsetsRequestGroup(group_id=self.group.name)
        request = shares.DescribeShareGroupOffsetsRequest(groups=(asked,))
        answer = self.machine.ask(request, shares.DescribeShareGroupOffsetsResponse).groups[0]
        return {
            TopicPartition(topic.topic_name, part.partition_index): part.start_offset
            for topic in answer.topics
            for part in topic.partitions
        }

    def forget(self, places: Sequence[TopicPartition]) -> Followed:
        """Delete offsets; of a share group, of whole topics."""
        for name in {place.topic for place in places} if self.group.share else ():
            whole = DeleteShareGroupOffsetsRequest(
                group_id=self.group.name, topics=(DeleteShareGroupOffsetsRequestTopic(topic_name=name),)
            )
            said = self.machine.ask(whole, DeleteShareGroupOffsetsResponse)
            answered = ErrorCode(said.error_code or said.responses[0].error_code).name
            self.found.codes |= {place: answered for place in places if place.topic == name}
        for place in () if self.group.share else places:
            part = OffsetDeleteRequestPartition(partition_index=place.partition)
            topic = OffsetDeleteRequestTopic(name=place.topic, partitions=(part,))
            request = OffsetDeleteRequest(group_id=self.group.name, topics=(topic,))
            answer = self.machine.ask(request, OffsetDeleteResponse)
            code = answer.error_code or answer.topics[0].partitions[0].error_code
            self.found.codes[place] = ErrorCode(code).name
        return self._after()

    def delete(self) -> Followed:
        """Delete the group."""
        answer = self.machine.ask(DeleteGroupsRequest(groups_names=(self.group.name,)), DeleteGroupsResponse)
        self.found.codes[""] = ErrorCode(answer.results[0].error_code).name
        return self._after()

    def offsets(self) -> Offsets:
        """What is committed, by the coordinator."""
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=self.group.name, topics=None),))
        answer = self.machine.ask(request, OffsetFetchResponse, 8).groups[0]
        return {
            TopicPartition(topic.name, part.partition_index): part.committed_offset
            for topic in answer.topics
            for part in topic.partitions
        }
