"""Our coordinator as the trace of Kafka's shows its own: the ids it is handed, its timers, its state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from kgroup.coordinator.assignors import SERVER_ASSIGNORS
from kgroup.coordinator.assignors.interface import Assignment, AssignorError, GroupSpec
from kgroup.coordinator.classic.group import ClassicGroup
from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.coordinator import Coordinator
from kgroup.coordinator.ids import Ids
from kgroup.coordinator.offset_store import GroupOffsets
from kgroup.coordinator.state import Group, State
from kgroup.coordinator.streams.group import StreamsGroup
from kgroup.coordinator.streams.member import HeldTasks
from kgroup.coordinator.tasks.sticky import Placed, TaskKind
from kgroup.coordinator.tasks.sticky import assign as assign_tasks
from kgroup.coordinator.tasks.values import Tasks, TaskSet
from kgroup.coordinator.timer_kinds import SWEEP, TimerKind
from kgroup.domain import Topic, TopicImage, uuid_bytes, uuid_text
from kgroup.timers import TimerKey, Timers

UNCOMPARED_TIMERS = {"group-size-counter"}
GROUP_TIMERS = {"join": TimerKind.CLASSIC_JOIN, "sync": TimerKind.CLASSIC_SYNC}
MEMBER_TIMERS = {
    "heartbeat": TimerKind.CLASSIC_SESSION,
    "session-timeout": TimerKind.CONSUMER_SESSION,
    "rebalance-timeout": TimerKind.CONSUMER_REVOCATION,
    "join": TimerKind.CONSUMER_JOIN,
    "sync": TimerKind.CONSUMER_SYNC,
}
STREAMS_INITIAL = "initial-rebalance-timeout"
KIND_NAMES = {kind: name for name, kind in (*GROUP_TIMERS.items(), *MEMBER_TIMERS.items())}
STREAMS_TIMERS = {
    "session-timeout": TimerKind.STREAMS_SESSION,
    "rebalance-timeout": TimerKind.STREAMS_REVOCATION,
}
KIND_NAMES |= {kind: name for name, kind in STREAMS_TIMERS.items()}
KIND_NAMES[TimerKind.STREAMS_INITIAL] = STREAMS_INITIAL
SWEEP_NAME = "expire-group-metadata"


class KafkasIds(Ids):
    """Gives out the ids that Kafka drew for the same request."""

    def __init__(self) -> None:
        super().__init__("")
        self.drawn: list[str] = []

    def classic_member(self, prefix: str) -> str:
        return f"{prefix}-{self._take()}"

    def consumer_member(self) -> str:
        return uuid_text(UUID(self._take()).bytes)

    def _take(self) -> str:
        return self.drawn.pop() if self.drawn else str(UUID(int=0))


class ChosenTimers(Timers):
    """Of timers that are due at the same time, fires the one that Kafka fired."""

    wanted: TimerKey | None = None

    def pop_due(self, now_ms: int) -> tuple[TimerKey, object] | None:
        wanted = self.wanted
        if wanted is None:
            return super().pop_due(now_ms)
        deadline, what = self._deadlines[wanted]
        assert deadline <= now_ms
        del self._deadlines[wanted]
        return wanted, what

    def all(self) -> dict[TimerKey, int]:
        return {key: deadline for key, (deadline, _) in self._deadlines.items()}


class KafkasAnswers:
    """An assignor that answers what Kafka's did, and keeps what either was given."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.expected: list[dict[str, Any]] = []
        self.differences: list[tuple[Any, Any]] = []

    def expect(self, assigned: list[dict[str, Any]]) -> None:
        self.expected = [one for one in assigned if one["name"] == self.name]
        self.differences = []

    def assign(self, spec: GroupSpec) -> dict[str, Assignment]:
        seen = {
            "name": self.name,
            "homogeneous": spec.homogeneous,
            "members": {
                member_id: {
                    "topics": sorted(map(uuid_text, member.topic_ids), key=_utf16),
                    "rack": member.rack_id,
                    "instance": member.instance_id,
                    "current": _partitions(member.current),
                }
                for member_id, member in spec.members.items()
            },
        }
        if not self.expected:
            self.differences.append((None, seen))
            return {member_id: member.current for member_id, member in spec.members.items()}
        kafkas = self.expected.pop(0)
        answer = kafkas.get("answer")
        given = {key: value for key, value in kafkas.items() if key != "answer"}
        if given != seen:
            self.differences.append((given, seen))
        if answer is None:
            raise AssignorError("told to fail")
        if given == seen:
            self._own(spec, answer)
        return {
            member_id: {
                uuid_bytes(topic): tuple(numbers) for topic, numbers in answer.get(member_id, {}).items()
            }
            for member_id in spec.members
        }

    def _own(self, spec: GroupSpec, answer: dict[str, dict[str, list[int]]]) -> None:
        """Our own assignor's answer: range's is Kafka's; uniform's is as even where all subscribe alike."""
        if self.name == "uniform" and not spec.homogeneous:
            return
        assigned = SERVER_ASSIGNORS[self.name].assign(spec)
        own: Any = {member_id: _partitions(held) for member_id, held in assigned.items()}
        kafkas: Any = {member_id: answer.get(member_id, {}) for member_id in spec.members}
        if self.name == "uniform":
            own, kafkas = _sizes(own), _sizes(kafkas)
        if own != kafkas:
            self.differences.append(({"answer": kafkas}, {"answer": own}))


class KafkasTasks:
    """A task assignor that answers what Kafka's did, held against ours with members in the same order."""

    NAME = "sticky tasks"

    def __init__(self) -> None:
        self.expected: list[dict[str, Any]] = []
        self.differences: list[tuple[Any, Any]] = []

    def expect(self, assigned: list[dict[str, Any]]) -> None:
        self.expected = [one for one in assigned if one["name"] == self.NAME]
        self.differences = []

    def assign(
        self,
        members: Mapping[str, Placed],
        subtopologies: Mapping[str, TaskKind],
        standbys: int,
        by_offset: bool,
    ) -> dict[str, TaskSet]:
        seen: dict[str, Any] = {
            "name": self.NAME,
            "standbys": standbys,
            "subtopologies": {name: list(kind) for name, kind in subtopologies.items()},
            "members": {
                member_id: {
                    "process": placed.process_id,
                    **_task_set(placed.before),
                    **({"offsets": _numbers(placed.offsets)} if by_offset else {}),
                }
                for member_id, placed in members.items()
            },
        }
        if not self.expected:
            self.differences.append((None, seen))
            return assign_tasks(members, subtopologies, standbys, by_offset)
        kafkas = self.expected.pop(0)
        given = {key: value for key, value in kafkas.items() if key not in ("answer", "order")}
        if given != seen:
            self.differences.append((given, seen))
            return assign_tasks(members, subtopologies, standbys, by_offset)
        ordered = {member_id: members[member_id] for member_id in kafkas["order"]}
        answer = assign_tasks(ordered, subtopologies, standbys, by_offset)
        own = {member_id: _task_set(tasks) for member_id, tasks in answer.items()}
        if own != kafkas["answer"]:
            self.differences.append(({"answer": kafkas["answer"]}, {"answer": own}))
        return answer


def _task_set(tasks: TaskSet) -> dict[str, Any]:
    return {"active": _tasks(tasks.active), "standby": _tasks(tasks.standby)}


def _sizes(answer: dict[str, dict[str, list[int]]]) -> Any:
    return sorted(sum(map(len, held.values())) for held in answer.values())


def image_of(stored: Mapping[str, Any]) -> TopicImage:
    """The topics as the trace has them."""
    topics = [
        Topic(t["name"], uuid_bytes(t["id"]), t["partitions"], tuple(map(tuple, t["racks"])))
        for t in stored["topics"]
    ]
    return TopicImage.of(topics, stored["version"], stored["created"])


def timer_of(name: str, is_streams: Callable[[str], bool] = lambda group_id: False) -> TimerKey | None:
    """Our key of one of Kafka's timers; None for one that we have no use for. Group ids have no dash here.

    Members of consumer and of streams groups have timers of the same names: `is_streams` tells them apart.
    """
    if name == SWEEP_NAME:
        return SWEEP
    if name.endswith("-regex"):
        return TimerKey(TimerKind.CONSUMER_REGEX, name.removesuffix("-regex"))
    if name.startswith(f"{STREAMS_INITIAL}-"):
        return TimerKey(TimerKind.STREAMS_INITIAL, name.removeprefix(f"{STREAMS_INITIAL}-"))
    for prefix, kind in MEMBER_TIMERS.items():
        if name.startswith(f"{prefix}-"):
            group_id, dash, member_id = name.removeprefix(f"{prefix}-").partition("-")
            if is_streams(group_id):
                kind = STREAMS_TIMERS.get(prefix, kind)
            return TimerKey(kind if dash else GROUP_TIMERS[prefix], group_id, member_id)
    return None


def timer_name(key: TimerKey) -> str:
    """Kafka's name of one of our timers."""
    if key == SWEEP:
        return SWEEP_NAME
    name = f"{KIND_NAMES[key.kind]}-{key.group_id}"
    return f"{name}-{key.member_id}" if key.member_id else name


def state_of(coordinator: Coordinator) -> dict[str, Any]:
    """The whole state, as `States.java` writes Kafka's."""
    state = coordinator.state
    timers = state.timers
    assert isinstance(timers, ChosenTimers)
    return {
        "groups": {group_id: _group(group) for group_id, group in state.groups.items()},
        **offsets_of(state),
        "timers": {
            timer_name(key): deadline
            for key, deadline in timers.all().items()
            if key.kind != TimerKind.CONSUMER_REGEX
        },
    }


def offsets_of(state: State) -> dict[str, Any]:
    """Committed offsets, and those of open transactions by producer."""
    store = state.offsets
    pending = {
        str(producer): {
            name: value for group, topics in groups.items() for name, value in _offsets(group, topics)
        }
        for producer, groups in store._pending.items()  # nobody else needs all of it
    }
    return {
        "offsets": {
            name: value
            for group_id in store.groups()
            for name, value in _offsets(group_id, store.of_group(group_id))
        },
        "pending": pending,
    }


def _offsets(group_id: str, topics: GroupOffsets) -> list[tuple[str, list[Any]]]:
    return [
        (
            f"{group_id}/{topic}/{number}",
            [
                (value := stored.value).offset,
                value.leader_epoch,
                value.metadata,
                value.commit_timestamp,
                value.expire_timestamp,
                uuid_text(value.topic_id),
            ],
        )
        for topic, by_partition in topics.items()
        for number, stored in by_partition.items()
    ]


def _group(group: Group) -> dict[str, Any]:
    if isinstance(group, ClassicGroup):
        return _classic(group)
    return _consumer(group) if isinstance(group, ConsumerGroup) else _streams(group)


def _classic(group: ClassicGroup) -> dict[str, Any]:
    return {
        "type": "classic",
        "state": str(group.state),
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "leader": group.leader,
        "members": {
            member.member_id: {
                "instance": member.instance_id,
                "client": member.client_id,
                "host": member.client_host,
                "rebalance": member.rebalance_timeout_ms,
                "session": member.session_timeout_ms,
                "protocol_type": member.protocol_type,
                "assignment": member.assignment.hex(),
                "new": member.is_new,
                "joining": member.join is not None,
                "syncing": member.sync is not None,
                "protocols": [[p.name, p.metadata.hex()] for p in member.protocols],
            }
            for member in group.members.values()
        },
        "pending_join": sorted(group.pending_joiners),
        "pending_sync": sorted(group.pending_sync),
        "awaiting": group.awaiting_join,
    }


def _consumer(group: ConsumerGroup) -> dict[str, Any]:
    return {
        "type": "consumer",
        "state": str(group.state),
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assigned_at": group.assignment_timestamp_ms,
        "hash": group.metadata_hash,
        "members": {
            member.member_id: {
                "instance": member.instance_id,
                "rack": member.metadata.rack_id,
                "client": member.metadata.client_id,
                "host": member.metadata.client_host,
                "rebalance": member.metadata.rebalance_timeout_ms,
                "names": sorted(member.names),
                "pattern": member.metadata.subscribed_topic_regex or "",
                "assignor": member.metadata.server_assignor,
                "epoch": member.epoch,
                "previous": member.current.previous_epoch,
                "state": member.current.state.name,
                "classic": member.is_classic,
                "assigned": _epochs(member.current.assigned),
                "revoking": _epochs(member.current.revoking),
            }
            for member in group.members.values()
        },
        "targets": {member_id: _partitions(target) for member_id, target in group.targets.items()},
        "resolved": {
            pattern: {"version": value.version, "at": value.timestamp, "topics": sorted(value.topics)}
            for pattern, value in group.resolved.items()
        },
    }


def _streams(group: StreamsGroup) -> dict[str, Any]:
    return {
        "type": "streams",
        "state": str(group.state),
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch,
        "assigned_at": group.assignment_timestamp_ms,
        "hash": group.metadata_hash,
        "validated": group.validated_topology_epoch,
        "topology": -1 if group.topology is None else group.topology.epoch,
        "shutdown": group.shutdown_by,
        "configs": dict(group.assignment_configs),
        "members": {
            member.member_id: {
                "instance": member.metadata.instance_id,
                "rack": member.metadata.rack_id,
                "client": member.metadata.client_id,
                "host": member.metadata.client_host,
                "rebalance": member.metadata.rebalance_timeout_ms,
                "process": member.process_id,
                "topology": member.metadata.topology_epoch,
                "endpoint": None if (place := member.metadata.user_endpoint) is None else place.host,
                "tags": {tag.key: tag.value for tag in member.metadata.client_tags},
                "epoch": member.epoch,
                "previous": member.current.previous_epoch,
                "state": member.current.state.name,
                "assigned": _held(member.current.assigned),
                "revoking": _held(member.current.revoking),
            }
            for member in group.members.values()
        },
        "targets": {member_id: _task_set(target) for member_id, target in group.targets.items()},
    }


def _held(held: HeldTasks) -> dict[str, Any]:
    return {
        "active": _numbers(held.active),
        "standby": _tasks(held.standby),
        "warmup": _tasks(held.warmup),
    }


def _numbers(by_task: Mapping[str, Mapping[int, int]]) -> dict[str, dict[str, int]]:
    return {name: {str(n): number for n, number in numbers.items()} for name, numbers in by_task.items()}


def _tasks(tasks: Tasks) -> dict[str, list[int]]:
    return {name: sorted(numbers) for name, numbers in tasks.items()}


def _epochs(held: Mapping[bytes, Mapping[int, int]]) -> dict[str, dict[str, int]]:
    return {
        uuid_text(topic): {str(number): epoch for number, epoch in numbers.items()}
        for topic, numbers in held.items()
        if numbers
    }


def _partitions(held: Mapping[bytes, tuple[int, ...]]) -> dict[str, list[int]]:
    return {uuid_text(topic): sorted(numbers) for topic, numbers in held.items() if numbers}


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def is_gone(key: TimerKey, state: State) -> bool:
    """Whether a timer's member, or its kind of group, is no more."""
    group = state.groups.get(key.group_id)
    if isinstance(group, ClassicGroup) and key.kind.startswith("classic-"):
        return bool(key.member_id) and key.member_id not in {*group.members, *group.pending_joiners}
    if isinstance(group, ConsumerGroup) and key.kind.startswith("consumer-"):
        return key.member_id not in group.members
    if isinstance(group, StreamsGroup) and key.kind.startswith("streams-"):
        return bool(key.member_id) and key.member_id not in group.members
    return True


def votes(group: ClassicGroup) -> Counter[str]:
    """How many members would choose each of the protocols that all of them list."""
    common = {name for name, count in group.supporters.items() if count == len(group.members)}
    return Counter(next(p.name for p in m.protocols if p.name in common) for m in group.members.values())


def votes_tie(group: object) -> bool:
    """Whether a static member that comes back finds its group undecided between two protocols."""
    best = votes(group).most_common(2) if isinstance(group, ClassicGroup) and group.members else []
    return len(best) == 2 and best[0][1] == best[1][1]


def votes_are_tied(coordinator: Coordinator, event: Mapping[str, Any]) -> bool:
    """Whether as many members of the group that a request is of ask for one assignor as for another."""
    group = coordinator.state.groups.get(event["op"].get("group", ""))
    best = group.by_assignor.most_common(2) if isinstance(group, ConsumerGroup) else []
    return len(best) == 2 and best[0][1] == best[1][1] > 0
