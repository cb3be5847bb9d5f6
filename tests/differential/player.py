"""Plays the trace of a program that Kafka played on our coordinator, and compares after every operation."""

from __future__ import annotations

import traceback
from typing import Any

from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.coordinator import Coordinator
from kgroup.coordinator.outcome import Outcome, Reply, Request
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.timer_kinds import TimerKind
from kgroup.domain import NO_PRODUCER_ID, TopicImage
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest
from kgroup.protocol.messages.leave_group import LeaveGroupRequest
from kgroup.protocol.messages.list_groups import ListGroupsRequest
from kgroup.protocol.messages.offset_commit import OffsetCommitRequest
from kgroup.protocol.messages.offset_delete import OffsetDeleteRequest
from kgroup.protocol.messages.offset_fetch import OffsetFetchRequest
from kgroup.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kgroup.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from kgroup.protocol.messages.sync_group import SyncGroupRequest
from kgroup.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from kgroup.protocol.releases import Change, Release
from kgroup.timers import TimerKey

from .differences import ABSENT, Difference, Pair, decoded, encoded, leaves, of_records, of_reply, plain
from .log import Log
from .ours import (
    UNCOMPARED_TIMERS,
    ChosenTimers,
    KafkasAnswers,
    KafkasIds,
    KafkasTasks,
    image_of,
    state_of,
    timer_name,
    timer_of,
    votes_are_tied,
)

HOST = "localhost/127.0.0.1"
REQUESTS: dict[str, type[Message]] = {
    "join": JoinGroupRequest,
    "sync": SyncGroupRequest,
    "heartbeat": HeartbeatRequest,
    "leave": LeaveGroupRequest,
    "consumer_heartbeat": ConsumerGroupHeartbeatRequest,
    "commit": OffsetCommitRequest,
    "txn_commit": TxnOffsetCommitRequest,
    "fetch": OffsetFetchRequest,
    "offset_delete": OffsetDeleteRequest,
    "delete_groups": DeleteGroupsRequest,
    "list": ListGroupsRequest,
    "describe": DescribeGroupsRequest,
    "consumer_describe": ConsumerGroupDescribeRequest,
    "streams_heartbeat": StreamsGroupHeartbeatRequest,
    "streams_describe": StreamsGroupDescribeRequest,
}
INTERNAL = {"group.streams.num.warmup.replicas"}
"""Settings of Kafka's that it does not document, and that we have not."""
Event = dict[str, Any]


class Player:
    """Our coordinator beside a trace of Kafka's."""

    def __init__(self, start: Event) -> None:
        config = GroupConfig.of(
            {name: text for name, text in start["setup"]["config"].items() if name not in INTERNAL},
            Release.of(start["kafka"]),
        )
        self.event: Event = start
        self.votes_bump = config.kafka.has(Change.ASSIGNOR_VOTES_BUMP)
        self.log, self.ids = Log(), KafkasIds()
        self.assignors = {name: KafkasAnswers(name) for name in config.consumer_assignors}
        self.tasks = KafkasTasks()
        self.coordinator = self._loaded(config, image_of(start["image"]), {})
        self.asked: dict[int, tuple[str, int]] = {}
        self.step = 0
        self.request: Any = None
        self.said: dict[tuple[str, int, str], Any] = {}
        self.patterns_seen = self.two_instances = False
        self.refused_at = -1
        self.ages_differ = False
        self.stale_timers: dict[str, int] = {}
        self.leaders: dict[str, str | None] = {}
        self.found: list[Difference] = []
        self.theirs: list[tuple[list[Pair], int, bool | None]] = []
        self.takes_over = self.lasting = self.wrote_nothing = False
        self._settle(self.coordinator.loaded(start["now"]))
        self._state(start)

    def _loaded(self, config: GroupConfig, image: TopicImage, own: dict[str, GroupConfig]) -> Coordinator:
        """A coordinator of ours that has read the log so far, in Kafka's hands where chance would decide."""
        coordinator = Coordinator(config, "differential", image)
        coordinator.between_timers_ms = 0  # as in Kafka, whose timers only queue work
        self.timers = ChosenTimers()
        state = coordinator.state
        state.ids, state.timers, state.assignors, state.group_configs = (
            self.ids,
            self.timers,
            self.assignors,
            own,
        )
        state.assign_tasks = self.tasks.assign
        self.log.replay(coordinator)
        return coordinator

    def hear(self, event: Event) -> None:
        """Note what Kafka wrote."""
        op = event.get("op", {})
        if event["kind"] == "end_txn":
            self.theirs.append(([], op["producer"], op["commit"]))
        elif event.get("records"):
            producer = op["producer"] if event["kind"] == "txn_commit" else NO_PRODUCER_ID
            self.theirs.append(([(key, value) for key, value in event["records"]], producer, None))

    def take_over(self) -> None:
        """Have the next restart load the log that Kafka wrote, and forget what only this process knew."""
        self.takes_over = True
        self.refused_at = -1
        self.leaders.clear()

    def play(self, event: Event) -> list[Difference]:
        """Carry out what the event says; how the outcome differs from Kafka's."""
        self.step += 1
        self.found, self.event = [], event
        self.tied = event["kind"] == "consumer_heartbeat" and votes_are_tied(self.coordinator, event)
        if event["kind"] == "broken":
            self._note({"kind": event["op"]["do"]}, "broken", "Kafka's machine", event["said"], "goes on")
            return self.found
        self.hear(event)
        groups = event["state"]["groups"].values()
        resolved = (group["resolved"].values() for group in groups if "resolved" in group)
        self.ages_differ = self.ages_differ or any(len({one["at"] for one in of}) > 1 for of in resolved)
        self.ids.drawn = list(event["drawn"])
        for assignor in (*self.assignors.values(), self.tasks):
            assignor.expect(event["assigned"])
        if event["kind"] in REQUESTS:
            self.asked[event["ticket"]] = event["kind"], event["version"]
        if event["kind"] == "streams_heartbeat" or event.get("records"):
            self.wrote_nothing = not event.get("records")
        if "error" in event:
            self.refused_at = event["now"]
        try:
            outcome = self._carry_out(event)
            replies = {reply.ticket: reply.response for reply in outcome.replies}
            records = self._settle(outcome)
        except Exception as crash:
            place = traceback.extract_tb(crash.__traceback__)[-1]
            said = f"{type(crash).__name__}: {crash} in {place.name}"
            self._note(event, "crash", type(crash).__name__, event.get("said", "carries it out"), said)
            return self.found
        self._replies(event, replies)
        for where, kafka, ours in of_records([(k, v) for k, v in event["records"]], records):
            self._note(event, "records", where, kafka, ours)
        self._assignors(event)
        self._state(event)
        return self.found

    def _carry_out(self, event: Event) -> Outcome:
        kind, now, op = event["kind"], event["now"], event.get("op", {})
        machine = self.coordinator
        if kind in REQUESTS:
            said = kind, event["version"], event["request"]
            # As the broker has it: what is said again is the same request.
            body = self.said.get(said)
            if body is None:
                body = self.said[said] = REQUESTS[kind].decode(bytes.fromhex(said[2]), said[1])
            self.request = body
            self._remember(kind, op, body)
            request = Request(body, event["version"], event["client"], HOST)
            return machine.step(event["ticket"], request, now)
        if kind in ("fire", "task"):
            return self._fire(event, now)
        if kind == "advanced":
            return self._overdue(event)
        if kind == "restart":
            before = machine.state
            self.stale_timers.clear()
            if self.takes_over:
                self._copy_log()
            self.coordinator = self._loaded(before.config, image_of(event["image"]), before.group_configs)
            return self.coordinator.loaded(now)
        if kind == "topic" and image_of(event["image"]).version != machine.state.image.version:
            return machine.topics_changed(image_of(event["image"]), now)
        if kind == "end_txn":
            machine.end_transaction(op["producer"], committed=op["commit"])
            self.log.end(op["producer"], op["commit"])
        elif kind == "config":
            self._configure(op["group"], op["settings"])
        return Outcome()

    def _remember(self, kind: str, op: dict[str, Any], body: Any) -> None:
        """What the allowed differences want to know of the past."""
        self.patterns_seen = self.patterns_seen or bool(op.get("pattern"))
        for group_id, group in self.coordinator.state.groups.items():
            self.leaders[group_id] = getattr(group, "leader", None)
        if kind == "consumer_heartbeat" and "error" not in self.event:
            group = self.coordinator.state.groups.get(body.group_id)
            # A classic group counts: the heartbeat may have converted it.
            known = group.members if isinstance(group, ClassicGroup | ConsumerGroup) else {}
            member = known.get(body.member_id)
            if member is not None and member.instance_id != body.instance_id is not None:
                self.two_instances = True

    def _configure(self, group_id: str, settings: dict[str, str]) -> None:
        self.coordinator.configure(group_id, settings)

    def _fire(self, event: Event, now: int) -> Outcome:
        key = timer_of(event["key"], self._is_streams)
        if key is None or key not in self.timers:
            return Outcome()
        return self._wake(key, now)

    def _wake(self, key: TimerKey, now: int) -> Outcome:
        self.timers.wanted = key
        try:
            return self.coordinator.wake(now)
        finally:
            self.timers.wanted = None

    def _is_streams(self, group_id: str) -> bool:
        return isinstance(self.coordinator.state.groups.get(group_id), StreamsGroup)

    def _overdue(self, event: Event) -> Outcome:
        """What the timers do that are due and that Kafka has not."""
        replies: list[Reply] = []
        for key, deadline in self.timers.all().items():
            if deadline > event["now"] or key not in self.timers:
                continue
            name = "regex" if key.kind == TimerKind.CONSUMER_REGEX else timer_name(key)
            if name not in event["state"]["timers"]:
                outcome = self._wake(key, event["now"])
                replies += outcome.replies
                if outcome.records:
                    self._note(event, "records", f"timer {name}", ABSENT, self._settle(outcome))
        return Outcome(replies=replies)

    def _copy_log(self) -> None:
        self.takes_over = False
        self.log = Log()
        for pairs, producer, committed in self.theirs:
            if committed is None:
                self.log.append(decoded(pairs), producer)
            else:
                self.log.end(producer, committed)

    def _settle(self, outcome: Outcome) -> list[tuple[str, str | None]]:
        """Append and replay as a host does; the records' bytes."""
        pairs = encoded(outcome.records)
        producer = outcome.producer.producer_id if outcome.producer else -1
        records = decoded(pairs)
        self.coordinator.replay_all(records, self.log.next_offset, producer)
        self.log.append(records, producer)
        return pairs

    def _note(self, event: Event, kind: str, where: str, kafka: Any, ours: Any) -> None:
        self.found.append(Difference(kind, event["kind"], where, kafka, ours, self.step))

    def _replies(self, event: Event, ours: dict[int, Message]) -> None:
        theirs = {reply["ticket"]: reply["reply"] for reply in event["replies"]}
        for ticket in sorted({*theirs, *ours}):
            kind, version = self.asked[ticket]
            place = kind if ticket == event.get("ticket") else f"parked {kind}"
            if ticket not in ours:
                reply = _response_type(kind).decode(bytes.fromhex(theirs[ticket]), version)
                self._note(event, "reply", place, plain(reply), ABSENT)
            elif ticket not in theirs:
                self._note(event, "reply", place, ABSENT, plain(ours[ticket]))
            else:
                for where, one, other in of_reply(theirs[ticket], ours[ticket], version):
                    self._note(event, "reply", f"{place} {where}", one, other)

    def _assignors(self, event: Event) -> None:
        named = {**self.assignors, KafkasTasks.NAME: self.tasks}
        for name, assignor in named.items():
            for kafka, ours in assignor.differences:
                if kafka is None:
                    self._note(event, "assignor", name, ABSENT, ours)
                for where, one, other in leaves(kafka, ours) if kafka else ():
                    self._note(event, "assignor", where, one, other)
            for left in assignor.expected:
                self._note(event, "assignor", name, left, ABSENT)

    def _state(self, event: Event) -> None:
        ours = state_of(self.coordinator)
        theirs = event["state"]
        for name in UNCOMPARED_TIMERS:
            theirs["timers"].pop(name, None)
        if ours == theirs:
            return
        for part in ("groups", "offsets", "pending", "timers"):
            kind = "timer" if part == "timers" else "state"
            for where, one, other in leaves(theirs[part], ours[part]):
                place = where if part in ("groups", "timers") else f"{part} {where}"
                self._note(event, kind, place, one, other)


def _response_type(kind: str) -> type[Message]:
    import sys

    request = REQUESTS[kind]
    name = request.__name__.removesuffix("Request") + "Response"
    found: type[Message] = getattr(sys.modules[request.__module__], name)
    return found
