"""Made-up programs on share groups in Kafka's group coordinator, and in ours, played as they are made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.coordinator import Coordinator
from kgroup.coordinator.outcome import Outcome, Request
from kgroup.coordinator.share import offsets, state_partitions
from kgroup.coordinator.share.group import ShareGroup
from kgroup.coordinator.share.state_partitions import Initialize, Numbers
from kgroup.domain import Topic, TopicImage, uuid_bytes, uuid_text
from kgroup.errors import ErrorCode, Refused
from kgroup.protocol.codec import Message
from kgroup.protocol.group_records import decode_key, decode_value, encode_key, encode_value
from kgroup.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
)
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kgroup.protocol.messages.share_group_describe import (
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from kgroup.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

from ..kafka import Jvm

Op = dict[str, Any]
Told = dict[str, Any]
START_MS = 1_000_000
LENGTH = 80
GROUPS, NAMES = ("g", "h"), ("a", "b", "c")
MEMBERS = tuple(f"member-{number}" for number in range(6))
ANSWERS: Mapping[str, tuple[type[Message], int]] = {
    "heartbeat": (ShareGroupHeartbeatResponse, 1),
    "alter": (AlterShareGroupOffsetsResponse, 0),
    "describe": (ShareGroupDescribeResponse, 1),
}


def kafka() -> Jvm:
    """Kafka's group coordinator, to be used in a `with`."""
    return Jvm("kafka.server.share.Groups", None, Path(__file__).resolve().parent / "java")


class Ours:
    """One program under way on our coordinator."""

    def __init__(self, setup: Told) -> None:
        self.now_ms = START_MS
        self.config = GroupConfig.of(setup["broker"])
        self.topics: dict[str, Topic] = {}
        self.image = TopicImage.of([])
        self.log: list[tuple[bytes, bytes | None]] = []
        self.written: list[tuple[bytes, bytes | None]] = []
        self.coordinator = self.reloaded()
        for topic in setup["topics"]:
            self._topic(topic)

    def reloaded(self) -> Coordinator:
        """A coordinator that has read the log from its start."""
        fresh = Coordinator(self.config, "seed", self.image)
        for offset, (key, value) in enumerate(self.log):
            decoded = decode_key(key)
            fresh.replay(_record(decoded, decode_value(decoded, value)), offset)  # type: ignore[arg-type]
        return fresh

    def play(self, op: Op) -> Told:
        """Carry out an operation; what it did, as the JVM reports it."""
        told: Told = {}
        try:
            told = getattr(self, f"_{op['op']}")(op) or {}
        except Refused as refused:
            told = {"error": refused.code.name, "message": refused.message}
        told["records"] = [[key.hex(), None if value is None else value.hex()] for key, value in self.written]
        self.written.clear()
        return told

    def _append(self, outcome: Outcome) -> None:
        for record in outcome.records:
            self.coordinator.replay(record, len(self.log))
            entry = encode_key(record.key), encode_value(record.value)
            self.log.append(entry)
            self.written.append(entry)

    def _run(self, operation: Callable[..., Any], *given: Any) -> Any:
        result, outcome = self.coordinator.run(lambda step: operation(step, *given), self.now_ms)
        self._append(outcome)
        return result

    def _submit(self, body: Message, client: str = "") -> Any:
        outcome = self.coordinator.step(
            0, Request(body, body.VERSIONS[-1], client, "/127.0.0.1"), self.now_ms
        )
        self._append(outcome)
        [reply] = outcome.replies
        return reply.response

    def _heartbeat(self, op: Op) -> Told:
        self._wait({"ms": 1})
        request = ShareGroupHeartbeatRequest.decode(bytes.fromhex(op["request"]), 1)
        answer = self._submit(request, op["client"])
        if answer.error_code:
            return {"error": ErrorCode(answer.error_code).name, "message": answer.error_message}
        asked = self.coordinator.take_to_initialize(request.group_id)
        told = {"answer": answer.encode(1).hex()}
        return told if asked is None else told | {"initialize": _asked(asked)}

    def _initialized(self, op: Op) -> None:
        self._run(state_partitions.initialized, self.group(op["group"]), _numbers(op))

    def _failed(self, op: Op) -> None:
        self._run(state_partitions.abandoned, self.group(op["group"]), _numbers(op))

    def group(self, group_id: str) -> ShareGroup:
        group = self.coordinator.state.groups[group_id]
        assert isinstance(group, ShareGroup)
        return group

    def _alter(self, op: Op) -> Told:
        request = AlterShareGroupOffsetsRequest.decode(bytes.fromhex(op["request"]), 0)
        answer, asked = self._run(offsets.alter, request)
        return {"answer": answer.encode(0).hex(), "initialize": _asked(asked)}

    def _begin_delete(self, op: Op) -> Told:
        request = DeleteShareGroupOffsetsRequest.decode(bytes.fromhex(op["request"]), 0)
        try:
            absent, found = self._run(offsets.begin_delete, request)
        except Refused as refused:
            return {"code": refused.code.name}
        told = {"code": "NONE", "absent": [f"{topic.topic_name}: {topic.error_message}" for topic in absent]}
        return told | ({"delete": _listed(found)} if found else {})

    def _end_delete(self, op: Op) -> None:
        self._run(offsets.end_delete, op["group"], [uuid_bytes(topic) for topic in op["topics"]])

    def _begin_delete_group(self, op: Op) -> Told:
        try:
            found = self._run(offsets.begin_delete_group, op["group"])
        except Refused as refused:
            return {"code": refused.code.name}
        return {"code": "NONE", "delete": _listed(found)} if found else {}

    def _delete_group(self, op: Op) -> Told:
        answer = self._submit(DeleteGroupsRequest(groups_names=(op["group"],)))
        return {"code": ErrorCode(answer.results[0].error_code).name}

    def _describe(self, op: Op) -> Told:
        answer = self._submit(ShareGroupDescribeRequest(group_ids=(op["group"],)))
        return {"answer": answer.encode(1).hex()}

    def _topic(self, op: Op) -> None:
        name, topic_id = op["name"], uuid_bytes(op["id"])
        if op["partitions"]:
            self.topics[name] = Topic(name, topic_id, op["partitions"])
        else:
            del self.topics[name]
        self.image = self.image.changed({name: self.topics.get(name)})
        self._append(self.coordinator.topics_changed(self.image, self.now_ms))

    def _settings(self, op: Op) -> None:
        self._append(self.coordinator.group_settings_changed(op["group"], op["settings"], self.now_ms))

    def _wait(self, op: Op) -> None:
        until = self.now_ms + op["ms"]
        while (due := self.coordinator.next_wake_ms()) is not None and due <= until:
            self.now_ms = max(self.now_ms, due)
            self._append(self.coordinator.wake(self.now_ms))
        self.now_ms = until

    def _load(self, _: Op) -> None:
        settings = self.coordinator.state.group_configs
        self.coordinator = self.reloaded()
        self.coordinator.state.group_configs = settings
        self._append(self.coordinator.loaded(self.now_ms))


def _record(key: Any, value: Any) -> Any:
    from kgroup.coordinator.outcome import Record

    return Record(key, value)


def _asked(asked: Initialize) -> Told:
    return {
        uuid_text(topic_id): {str(number): f"{asked.state_epoch} {offset}" for number, offset in each.items()}
        for topic_id, each in asked.offsets.items()
    }


def _listed(found: Numbers) -> Told:
    return {uuid_text(topic_id): sorted(numbers) for topic_id, numbers in found.items()}


def _numbers(op: Op) -> Numbers:
    return {uuid_bytes(topic): set(numbers) for topic, numbers in op["partitions"].items()}


@dataclass
class Program:
    """A program that is being made up, and what ours answers."""

    rng: Random
    setup: Told
    ours: Ours
    ops: list[Op] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    initializing: list[tuple[str, Told]] = field(default_factory=list)
    deleting: list[tuple[str, list[str]]] = field(default_factory=list)
    made: int = 0

    @classmethod
    def of(cls, seed: int, length: int) -> Program:
        rng = Random(seed)
        topics = [
            {"name": name, "id": _id(rng, number), "partitions": rng.choice((1, 2, 3, 7))}
            for number, name in enumerate(NAMES[: rng.choice((1, 2, 3))])
        ]
        broker = {"group.share.assignment.interval.ms": rng.choice(("0", "0", "1000"))}
        if rng.random() < 0.2:
            broker["group.share.max.size"] = "2"
        setup = {"broker": broker, "topics": topics}
        program = cls(rng, setup, Ours(setup), made=len(topics))
        while len(program.ops) < length:
            program.go_on()
        for group in GROUPS:
            program.say("describe", group=group)
        return program

    def say(self, kind: str, **given: Any) -> Told:
        op: Op = {"op": kind, **given}
        self.ops.append(op)
        self.told.append(self.ours.play(op))
        told = self.told[-1]
        if told.get("initialize"):
            partitions = {topic: sorted(map(int, each)) for topic, each in told["initialize"].items()}
            self.initializing.append((given["group"], partitions))
        return told

    def go_on(self) -> None:
        """Take one step of many kinds."""
        steps: list[tuple[int, Callable[[], object]]] = [
            (50, self.beat),
            (20, self.answer_initialize),
            (
                12,
                lambda: self.say("wait", ms=self.rng.choice((0, 1, 500, 1000, 5000, 20_000, 30_000, 45_000))),
            ),
            (4, self.topic),
            (3, self.alter),
            (3, self.begin_delete),
            (4, self.end_delete),
            (3, self.delete_group),
            (2, lambda: self.say("describe", group=self.rng.choice(GROUPS))),
            (2, self.load),
            (1, self.settings),
        ]
        self.rng.choices([step for _, step in steps], [weight for weight, _ in steps])[0]()

    def beat(self) -> None:
        rng = self.rng
        group_id, member = rng.choice(("g", "g", "g", "h")), rng.choice(MEMBERS)
        group = self.ours.coordinator.state.groups.get(group_id)
        known = group.members.get(member) if isinstance(group, ShareGroup) else None
        epoch = known.epoch if known is not None else 0
        roll = rng.random()
        if roll < 0.08:
            epoch = -1
        elif roll < 0.13:
            epoch = 0
        elif roll < 0.2:
            epoch += rng.choice((-2, -1, 1, 3))
        names = None
        if epoch == 0 or rng.random() < 0.15:
            names = tuple(rng.choices((*NAMES, "absent"), k=rng.choice((1, 1, 2, 3))))
        if rng.random() < 0.03:
            names = rng.choice((None, ()))
        request = ShareGroupHeartbeatRequest(
            group_id=group_id,
            member_id=member,
            member_epoch=max(epoch, -1),
            rack_id=rng.choice((None, None, None, "r1")),
            subscribed_topic_names=names,
        )
        if request.member_epoch == 0 and not names:
            return  # the service refuses it before the coordinator looks
        client = rng.choice(("c", "c", "c", "d"))
        self.say("heartbeat", group=group_id, client=client, request=request.encode(1).hex())

    def answer_initialize(self) -> None:
        if self.initializing:
            group_id, partitions = self.initializing.pop(self.rng.randrange(len(self.initializing)))
            if isinstance(self.ours.coordinator.state.groups.get(group_id), ShareGroup):
                name = "initialized" if self.rng.random() < 0.85 else "failed"
                self.say(name, group=group_id, partitions=partitions)

    def topic(self) -> None:
        name = self.rng.choice(NAMES)
        known = self.ours.topics.get(name)
        if known is None:
            self.made += 1
            given = {"id": _id(self.rng, self.made), "partitions": self.rng.choice((1, 2, 5))}
        else:
            grown = known.partitions + self.rng.choice((1, 2))
            given = {"id": uuid_text(known.topic_id), "partitions": self.rng.choice((grown, grown, 0))}
        self.say("topic", name=name, **given)

    def alter(self) -> None:
        group_id = self.rng.choice(GROUPS)
        topics = tuple(
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=tuple(
                    AlterShareGroupOffsetsRequestPartition(partition_index=number, start_offset=5 * number)
                    for number in sorted(self.rng.sample(range(8), self.rng.choice((1, 2, 4))))
                ),
            )
            for name in self.rng.sample((*NAMES, "absent"), self.rng.choice((1, 2)))
        )
        request = AlterShareGroupOffsetsRequest(group_id=group_id, topics=topics)
        self.say("alter", group=group_id, request=request.encode(0).hex())

    def begin_delete(self) -> None:
        group_id = self.rng.choice(GROUPS)
        topics = tuple(
            DeleteShareGroupOffsetsRequestTopic(topic_name=name)
            for name in self.rng.sample((*NAMES, "absent"), self.rng.choice((1, 2)))
        )
        request = DeleteShareGroupOffsetsRequest(group_id=group_id, topics=topics)
        told = self.say("begin_delete", group=group_id, request=request.encode(0).hex())
        if told.get("delete"):
            self.deleting.append((group_id, list(told["delete"])))

    def end_delete(self) -> None:
        if self.deleting:
            group_id, topics = self.deleting.pop()
            self.say("end_delete", group=group_id, topics=topics)

    def delete_group(self) -> None:
        group_id = self.rng.choice(GROUPS)
        told = self.say("begin_delete_group", group=group_id)
        if told.get("code", "NONE") == "NONE" and self.rng.random() < 0.8:
            self.say("delete_group", group=group_id)

    def load(self) -> None:
        """Have the log read; the order is that in which sessions that are armed then end."""
        groups = self.ours.coordinator.state.groups.values()
        self.say("load", order=[f"{each.group_id}-{member}" for each in groups for member in each.members])

    def settings(self) -> None:
        own = self.rng.choice(
            ({}, {"share.session.timeout.ms": "50000"}, {"share.heartbeat.interval.ms": "7000"})
        )
        self.say("settings", group=self.rng.choice(GROUPS), settings=own)


def _id(rng: Random, number: int) -> str:
    return uuid_text(rng.randbytes(15) + bytes([number]))


def differences(running: Jvm, seed: int, length: int) -> list[str]:
    """Where Kafka and ours come apart in a seed's program; empty where they do not."""
    program = Program.of(seed, length)
    theirs: list[Told] = running.ask({"setup": program.setup, "ops": program.ops})  # type: ignore[assignment]
    for at, (op, mine, kafkas) in enumerate(zip(program.ops, program.told, theirs, strict=True)):
        if "crash" in kafkas:
            return [f"seed {seed} #{at} {op}", f"crash: {kafkas['crash']}, ours {mine}"]
        one, other = _plain(op, kafkas), _plain(op, mine)
        found = [
            f"{name}: {one.get(name)} ours {other.get(name)}"
            for name in {*one, *other}
            if one.get(name) != other.get(name)
        ]
        if found:
            return [f"seed {seed} #{at} {op}", *found]
    ours = program.ours
    groups, again = ours.coordinator.state.groups, ours.reloaded().state.groups
    soft = {"refresh_deadline_ms": 0, "refresh_epoch": 0}
    if {k: replace(g, **soft) for k, g in groups.items()} != {
        k: replace(g, **soft) for k, g in again.items()
    }:  # type: ignore[arg-type]
        return [f"seed {seed}: another state after a restart"]
    return []


def _plain(op: Op, told: Told) -> Told:
    """What an operation did, decoded; Kafka lists sets in any order."""
    plain = dict(told)
    plain["records"] = [_decoded(*record) for record in told["records"]]
    if op["op"] == "topic":  # of several groups
        plain["records"].sort(key=repr)
    if "answer" in told:
        kind, version = ANSWERS[op["op"]]
        plain["answer"] = _sorted(kind.decode(bytes.fromhex(told["answer"]), version))
    return plain


def _decoded(key: str, value: str | None) -> object:
    decoded = decode_key(bytes.fromhex(key))
    data = None if value is None else bytes.fromhex(value)
    return decoded, _sorted(decode_value(decoded, data))  # type: ignore[arg-type]


def _sorted(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, {each.name: _sorted(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple):
        return sorted((_sorted(each) for each in value), key=repr)
    return value
