"""Members of groups that do what members do, with values at the bounds: zero, negative, maximal, absent.

A crew of them shares a few groups: they join, come back as static members without their id, sync, commit,
leave, remove each other, or fall silent until their sessions end. What they were answered decides what they
ask next.
"""

from __future__ import annotations

import random
import select
import socket
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kgroup.errors import DecodeError, ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.headers import decode_response, encode_request
from kgroup.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kgroup.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.end_txn import EndTxnRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kgroup.protocol.messages.init_producer_id import InitProducerIdRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kgroup.protocol.messages.list_groups import ListGroupsRequest
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kgroup.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kgroup.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    Subtopology,
    Topology,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kgroup.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.hostile.requests import Maker

TOPIC = "hostile"
GROUPS = ("bounds", "bounds-2", "bounds-3")
INSTANCES = ("a", "b", None)
KINDS = ("classic",) * 10 + ("consumer",) * 5 + ("streams",) * 3 + ("producer",) * 2 + ("operator",) * 2
SESSION_MS, REBALANCE_MS = 200, 300
SUBSCRIPTION = b"\0\0\0\0\0\1\0\7hostile\xff\xff\xff\xff"
GROUP_RESOURCE = 32
SETTINGS = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
    "streams.session.timeout.ms",
    "streams.heartbeat.interval.ms",
    "streams.assignment.interval.ms",
    "streams.initial.rebalance.delay.ms",
    "streams.num.standby.replicas",
)
NUMBERS = ("0", "1", "-1", "5000", "45000", "60000", "2147483647", "-2147483648", "9223372036854775807", "")
LISTEN_S = 0.02
FORGET = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.FENCED_MEMBER_EPOCH)


@dataclass
class Member:
    """One member on a connection of its own, and what it was answered."""

    port: int
    maker: Maker
    chance: random.Random
    kind: str
    group: str
    number: int
    there: socket.socket | None = None
    heard: bytes = b""
    asked: tuple[Message, int] | None = None
    member_id: str = ""
    epoch: int = 0
    members: tuple[str, ...] = ()
    producer: tuple[int, int] = (-1, -1)
    instance: str | None = field(init=False)

    def __post_init__(self) -> None:
        self.instance = INSTANCES[self.number % len(INSTANCES)]

    def turn(self) -> int:
        """Ask for something, unless an answer is awaited; how many requests were sent."""
        with suppress(OSError):
            if self.asked is not None and not self._listen():
                if self.chance.random() < 0.1:
                    self.hang_up()
                return 0
            if self.chance.random() < 0.02:
                self.hang_up()
            request: Message = getattr(self, f"_{self.kind}")()
            version = self.chance.choice(request.VERSIONS)
            if self.chance.random() < 0.5:
                request = self.maker.bent(request, version)
            self._send(request, version)
            return 1
        self.hang_up()
        return 0

    def _send(self, request: Message, version: int) -> None:
        if self.there is None:
            self.there = socket.create_connection(("127.0.0.1", self.port), timeout=5)
        self.there.sendall(encode_request(request, version, 1, f"m{self.number}"))
        self.asked = request, version

    def hang_up(self) -> None:
        """Close the connection; an answer still to come is not waited for."""
        if self.there is not None:
            self.there.close()
        self.there, self.heard, self.asked = None, b"", None

    def _listen(self) -> bool:
        """Whether the answer is here."""
        assert self.there is not None and self.asked is not None
        while len(self.heard) < 4 or len(self.heard) < 4 + int.from_bytes(self.heard[:4], "big"):
            if not select.select([self.there], [], [], LISTEN_S)[0]:
                return False
            data = self.there.recv(1 << 16)
            if not data:
                raise ConnectionError
            self.heard += data
        size = 4 + int.from_bytes(self.heard[:4], "big")
        (request, version), self.asked = self.asked, None
        frame, self.heard = self.heard[4:size], self.heard[size:]
        with suppress(DecodeError):
            self._take(request, decode_response(frame, request.API, version)[1])
        return True

    def _take(self, request: Message, answer: Any) -> None:
        code = getattr(answer, "error_code", 0)
        if code in FORGET or isinstance(request, LeaveGroupRequest):
            self.member_id, self.epoch, self.members = "", 0, ()
        elif isinstance(request, JoinGroupRequest) and code in (0, ErrorCode.MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
            self.epoch = max(answer.generation_id, 0)
            self.members = tuple(member.member_id for member in answer.members)
        elif isinstance(request, ConsumerGroupHeartbeatRequest | StreamsGroupHeartbeatRequest) and not code:
            self.member_id, self.epoch = answer.member_id, max(answer.member_epoch, 0)
        elif isinstance(request, InitProducerIdRequest) and not code:
            self.producer = answer.producer_id, answer.producer_epoch

    def _classic(self) -> Message:
        roll = self.chance.random()
        if not self.member_id or roll < 0.35:
            return self._join()
        if roll < 0.6:
            return self._sync()
        if roll < 0.75:
            return HeartbeatRequest(
                group_id=self.group,
                generation_id=self.epoch,
                member_id=self.member_id,
                group_instance_id=self.instance,
            )
        return self._leave() if roll < 0.85 else self._offsets()

    def _join(self) -> Message:
        back = self.instance is not None and self.chance.random() < 0.5
        return JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=self.chance.choice((REBALANCE_MS, REBALANCE_MS, 0, -1, 1)),
            member_id="" if back else self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
        )

    def _sync(self) -> Message:
        shares = [SyncGroupRequestAssignment(member_id=name, assignment=b"\0\0") for name in self.members]
        return SyncGroupRequest(
            group_id=self.group,
            generation_id=self.epoch,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(shares),
        )

    def _leave(self) -> Message:
        """Of itself, or of another by its instance id, as an operator removes members."""
        other = self.chance.choice(INSTANCES[:2])
        identity = self.chance.choice(
            (
                MemberIdentity(member_id=self.member_id, group_instance_id=self.instance),
                MemberIdentity(member_id="", group_instance_id=other),
                MemberIdentity(member_id="", group_instance_id=self.instance),
            )
        )
        return LeaveGroupRequest(
            group_id=self.group,
            member_id=self.member_id,
            members=(identity,) * self.chance.choice((0, 1, 1, 1, 2)),
        )

    def _consumer(self) -> Message:
        roll = self.chance.random()
        if roll > 0.9:
            return self._offsets()
        joins = self.epoch == 0 or roll < 0.1
        self.member_id = self.member_id or fresh_id(self.chance)
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=0 if joins else self.chance.choice((self.epoch,) * 8 + (-1, -2)),
            instance_id=self.instance,
            rebalance_timeout_ms=REBALANCE_MS,
            subscribed_topic_names=(TOPIC,) if joins else None,
            topic_partitions=() if joins else None,
        )

    def _streams(self) -> Message:
        roll = self.chance.random()
        joins = self.epoch == 0 or roll < 0.1
        self.member_id = self.member_id or fresh_id(self.chance)
        part = Subtopology(subtopology_id="0", source_topics=(TOPIC,))
        return StreamsGroupHeartbeatRequest(
            group_id=f"{self.group}-streams",
            member_id=self.member_id,
            member_epoch=0 if joins else self.chance.choice((self.epoch,) * 8 + (-1, -2)),
            rebalance_timeout_ms=REBALANCE_MS,
            topology=Topology(epoch=0, subtopologies=(part,)) if joins else None,
            active_tasks=() if joins else None,
            standby_tasks=() if joins else None,
            warmup_tasks=() if joins else None,
            process_id=f"p{self.number}" if joins else None,
        )

    def _offsets(self) -> Message:
        part = OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
        named = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,))
        group = OffsetFetchRequestGroup(group_id=self.group, topics=(named,))
        return self.chance.choice(
            (
                OffsetCommitRequest(
                    group_id=self.group,
                    generation_id_or_member_epoch=self.epoch,
                    member_id=self.member_id,
                    group_instance_id=self.instance,
                    topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(part,)),),
                ),
                OffsetFetchRequest(
                    group_id=self.group,
                    topics=(OffsetFetchRequestTopic(name=TOPIC, partition_indexes=(0,)),),
                    groups=(group,) * self.chance.choice((1, 2)),
                ),
            )
        )

    def _producer(self) -> Message:
        producer, epoch = self.producer
        name = f"bounds-{self.number}"
        if producer < 0 or self.chance.random() < 0.05:
            return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000)
        part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7)
        return self.chance.choice(
            (
                AddOffsetsToTxnRequest(
                    transactional_id=name, producer_id=producer, producer_epoch=epoch, group_id=self.group
                ),
                TxnOffsetCommitRequest(
                    transactional_id=name,
                    group_id=self.group,
                    producer_id=producer,
                    producer_epoch=epoch,
                    topics=(TxnOffsetCommitRequestTopic(name=TOPIC, partitions=(part,)),),
                ),
                EndTxnRequest(
                    transactional_id=name,
                    producer_id=producer,
                    producer_epoch=epoch,
                    committed=self.chance.random() < 0.5,
                ),
            )
        )

    def _operator(self) -> Message:
        chance = self.chance
        setting = AlterableConfig(
            name=chance.choice(SETTINGS),
            config_operation=chance.choice((0, 0, 1)),
            value=chance.choice(NUMBERS),
        )
        altered = AlterConfigsResource(
            resource_type=GROUP_RESOURCE,
            resource_name=chance.choice((self.group, f"{self.group}-streams")),
            configs=(setting,),
        )
        part = OffsetDeleteRequestPartition(partition_index=0)
        deleted = OffsetDeleteRequestTopic(name=TOPIC, partitions=(part,))
        return chance.choice(
            (
                IncrementalAlterConfigsRequest(resources=(altered,)),
                DeleteGroupsRequest(groups_names=(self.group, f"{self.group}-streams")),
                DescribeGroupsRequest(groups=(self.group,)),
                ConsumerGroupDescribeRequest(group_ids=(self.group,)),
                StreamsGroupDescribeRequest(group_ids=(f"{self.group}-streams",)),
                ListGroupsRequest(),
                OffsetDeleteRequest(group_id=self.group, topics=(deleted,)),
                self._leave(),
            )
        )


def fresh_id(chance: random.Random) -> str:
    """A member id as clients make theirs."""
    return f"member-{chance.randrange(1 << 32)}"


class Crew:
    """Members of every kind that take turns."""

    def __init__(self, port: int, maker: Maker, chance: random.Random) -> None:
        self._chance = chance
        self._members = [
            Member(port, maker, chance, kind, GROUPS[number % len(GROUPS)], number)
            for number, kind in enumerate(KINDS)
        ]

    def play(self, requests: int, seconds: float) -> int:
        """Send so many requests, or what that time allows; how many they were."""
        ends, sent = time.monotonic() + seconds, 0
        while sent < requests and time.monotonic() < ends:
            sent += self._chance.choice(self._members).turn()
        return sent

    def close(self) -> None:
        """Close every connection."""
        for member in self._members:
            member.hang_up()
