"""The user data of Kafka Streams' assignor in the consumer protocol's bytes, and names that contain more.

A member of such a group is a thread of a process. Its subscription says which process, which tasks it had and
how far their state is; its assignment says which tasks to run and to keep standbys of. The layouts are those
of SubscriptionInfoData.json and AssignmentInfo in kafka-streams 4.3.1, versions 1 to 11.
"""

import re
from dataclasses import dataclass
from typing import Annotated

from kgroup.errors import DecodeError
from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.embedded.cursor import Cursor
from kgroup.protocol.embedded.undecoded import ASSIGNMENT, METADATA, Undecoded, Unknown, attempt
from kgroup.protocol.types import Bytes, Int8, Int32, Int64, Since, String, Until, Uuid

ASSIGNOR = "stream"
"""The name of Streams' assignor, which no other client has."""
OLDEST, NEWEST = 1, 11
NEWEST_KNOWN, SUMS, NAMED_TOPOLOGIES = 3, 7, 10
"""First versions with the newest version known to the writer, offset sums by task, named topologies."""
RUNNING = -2
"""In place of a sum of offsets: the task was active and running."""
NEVER_MS = (1 << 63) - 1
ERRORS = {0: None, 1: "INCOMPLETE_SOURCE_TOPIC_METADATA", 2: "VERSION_PROBING", 3: "ASSIGNMENT_ERROR"}
ERRORS |= {4: "SHUTDOWN_REQUESTED"}
_THREAD = re.compile(r"(?P<thread>.+-StreamThread-[0-9]+)-consumer")


@dataclass(frozen=True, slots=True)
class PreviousTask:
    """A task a thread had state of when it joined: `role` is active (it ran) or standby (state is there).

    `offset_sum` adds up how far the state's changelogs are restored; None for a running task, and where it
    is not known.
    """

    task: str
    role: Annotated[str, ("active", "standby")]
    offset_sum: int | None


@dataclass(frozen=True, slots=True)
class ClientTag:
    """A tag of the process, by which standbys are spread (KIP-708)."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class StreamsSubscription:
    """What a thread joined with. `latest_version` is the newest it knows; None if its version has no such.

    `user_endpoint` is the process's application.server; `unique_field` changes to make a rejoin differ.
    `error` is a name, None for none. None is also what a version does not have.
    """

    version: int
    latest_version: int | None
    process_id: str
    previous: tuple[PreviousTask, ...]
    user_endpoint: str | None
    unique_field: int | None
    error: str | None
    client_tags: tuple[ClientTag, ...]


@dataclass(frozen=True, slots=True)
class TopicNumbers:
    """Partitions of one topic."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HostPartitions:
    """What the process behind an application.server has: partitions of its active tasks, of its standbys."""

    host: str
    port: int
    active: tuple[TopicNumbers, ...]
    standby: tuple[TopicNumbers, ...]


@dataclass(frozen=True, slots=True)
class StreamsAssignment:
    """A thread's assignment: tasks by name, active and standby (warm-ups travel as standbys).

    `next_rebalance_ms` is when the leader wants it to rejoin, None for never; in versions before 7 too.
    """

    version: int
    latest_version: int | None
    active: tuple[str, ...]
    standby: tuple[str, ...]
    hosts: tuple[HostPartitions, ...]
    error: str | None
    next_rebalance_ms: int | None


@dataclass(frozen=True, slots=True)
class StreamsThread:
    """One thread of an application; a part is None if missing or not understood.

    `thread` is its name by Streams' own client ids, None for a client id that is not of that form.
    """

    thread: str | None
    subscription: StreamsSubscription | None
    assignment: StreamsAssignment | None


class TaskId(Struct):
    """A task, before sums of offsets came."""

    subtopology: Int32
    partition: Int32


class PartitionToOffsetSum(Struct):
    """A sum of offsets by partition, before named topologies came."""

    partition: Int32
    offset_sum: Int64


class TaskOffsetSum(Struct):
    """How far the state of a task is, or of several of a subtopology."""

    subtopology: Int32
    partition: Annotated[Int32, Since(NAMED_TOPOLOGIES)] = 0
    offset_sum: Annotated[Int64, Since(NAMED_TOPOLOGIES)] = 0
    topology: Annotated[String | None, Since(NAMED_TOPOLOGIES)] = None
    partitions: Annotated[tuple[PartitionToOffsetSum, ...], Until(NAMED_TOPOLOGIES - 1)] = ()


class _Tag(Struct):
    key: Bytes
    value: Bytes


class SubscriptionInfo(Message, versions=range(OLDEST, NEWEST + 1)):
    """The user data of a subscription as it travels."""

    version: Int32
    latest_version: Annotated[Int32, Since(NEWEST_KNOWN)] = -1
    process_id: Uuid
    active: Annotated[tuple[TaskId, ...], Until(SUMS - 1)] = ()
    standby: Annotated[tuple[TaskId, ...], Until(SUMS - 1)] = ()
    user_endpoint: Annotated[Bytes, Since(2)] = b""
    sums: Annotated[tuple[TaskOffsetSum, ...], Since(SUMS)] = ()
    unique_field: Annotated[Int8, Since(8)] = 0
    error: Annotated[Int32, Since(9)] = 0
    client_tags: Annotated[tuple[_Tag, ...], Since(11)] = ()


def thread(
    client_id: str, subscribed: bytes | None, assigned: bytes | None
) -> tuple[StreamsThread, tuple[Undecoded, ...]]:
    """Return a thread by both parts' user data, None or empty if missing; and what was not understood."""
    subscription = attempt(METADATA, subscribed, _subscription, version_of) if subscribed else None
    assignment = attempt(ASSIGNMENT, assigned, _assignment, version_of) if assigned else None
    undecoded = tuple(part for part in (subscription, assignment) if isinstance(part, Undecoded))
    return (
        StreamsThread(
            thread=thread_name(client_id),
            subscription=None if isinstance(subscription, Undecoded) else subscription,
            assignment=None if isinstance(assignment, Undecoded) else assignment,
        ),
        undecoded,
    )


def version_of(data: bytes) -> int | None:
    """Return the version that user data of either part claims to be; None where it is too short for one."""
    return int.from_bytes(data[:4], "big", signed=True) if len(data) >= 4 else None


def thread_name(client_id: str) -> str | None:
    """Return the thread of a consumer's client id: `a-StreamThread-1` of `a-StreamThread-1-consumer`."""
    match = _THREAD.fullmatch(client_id)
    return match["thread"] if match else None


def task_name(subtopology: int, partition: int, topology: str | None = None) -> str:
    """Return a task as Streams writes it: `1_3`, or `left__1_3` in a named topology."""
    return f"{topology}__{subtopology}_{partition}" if topology else f"{subtopology}_{partition}"


def task_order(name: str) -> tuple[str, int, int]:
    """Tasks by topology, subtopology and partition, where plain text would have 1_10 before 1_2."""
    topology, _, rest = name.rpartition("__")
    subtopology, _, partition = rest.partition("_")
    return topology, int(subtopology), int(partition)


def _version(data: bytes) -> int:
    version = version_of(data)
    if version is None:
        raise DecodeError("too short for a version")
    if not OLDEST <= version <= NEWEST:
        raise Unknown(version, NEWEST, OLDEST)
    return version


def _subscription(data: bytes) -> StreamsSubscription:
    version = _version(data)
    info, _ = SubscriptionInfo.decode_prefix(data, 0, version)
    text = info.process_id.hex()
    return StreamsSubscription(
        version=version,
        latest_version=info.latest_version if version >= NEWEST_KNOWN else None,
        process_id="-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])),
        previous=tuple(sorted(_previous(info, version), key=lambda t: (t.role, task_order(t.task)))),
        user_endpoint=_text(info.user_endpoint) or None,
        unique_field=info.unique_field if version >= 8 else None,
        error=_error(info.error),
        client_tags=tuple(ClientTag(_text(tag.key), _text(tag.value)) for tag in info.client_tags),
    )


def _previous(info: SubscriptionInfo, version: int) -> list[PreviousTask]:
    if version < SUMS:
        roles = (("active", info.active), ("standby", info.standby))
        return [PreviousTask(task_name(t.subtopology, t.partition), r, None) for r, ts in roles for t in ts]
    if version < NAMED_TOPOLOGIES:
        flat = [
            (task_name(t.subtopology, p.partition), p.offset_sum) for t in info.sums for p in t.partitions
        ]
    else:
        flat = [(task_name(t.subtopology, t.partition, t.topology), t.offset_sum) for t in info.sums]
    return [
        PreviousTask(name, "active" if total == RUNNING else "standby", total if total >= 0 else None)
        for name, total in flat
    ]


def _assignment(data: bytes) -> StreamsAssignment:
    version = _version(data)
    cursor = Cursor(data)
    cursor.int32()
    latest = cursor.int32() if version >= NEWEST_KNOWN else None
    # A task that reads partitions of several topics stands there once for each.
    active = {_task(cursor, version) for _ in range(cursor.count(8))}
    standby = set()
    for _ in range(cursor.count(12)):
        standby.add(_task(cursor, version))
        _partitions(cursor, None)
    hosts = _hosts(cursor, version)
    error = _error(cursor.int32()) if version >= 4 else None
    when = cursor.int64() if version >= 7 else NEVER_MS
    return StreamsAssignment(
        version=version,
        latest_version=latest,
        active=tuple(sorted(active, key=task_order)),
        standby=tuple(sorted(standby, key=task_order)),
        hosts=hosts,
        error=error,
        next_rebalance_ms=None if when == NEVER_MS else when,
    )


def _task(cursor: Cursor, version: int) -> str:
    subtopology, partition = cursor.int32(), cursor.int32()
    return task_name(subtopology, partition, cursor.chars() if version >= NAMED_TOPOLOGIES else None)


def _partitions(cursor: Cursor, topics: dict[int, str] | None) -> tuple[TopicNumbers, ...]:
    """Partitions with their topics' names, or with their numbers in a dictionary."""
    by_topic: dict[str, set[int]] = {}
    for _ in range(cursor.count(6 if topics is None else 8)):
        topic = cursor.utf() if topics is None else topics.get(cursor.int32())
        if topic is None:
            raise DecodeError("a partition of a topic that is not in the dictionary")
        by_topic.setdefault(topic, set()).add(cursor.int32())
    return tuple(TopicNumbers(topic, tuple(sorted(numbers))) for topic, numbers in sorted(by_topic.items()))


def _hosts(cursor: Cursor, version: int) -> tuple[HostPartitions, ...]:
    """Since version 2; with names of topics as a dictionary since 5, with standbys' partitions since 6."""
    if version < 2:
        return ()
    topics = {cursor.int32(): cursor.utf() for _ in range(cursor.count(6))} if version >= 5 else None
    roles: list[dict[tuple[str, int], tuple[TopicNumbers, ...]]] = []
    for _ in range(2 if version >= 6 else 1):
        roles.append({})
        for _ in range(cursor.count(10)):
            endpoint = cursor.utf(), cursor.int32()
            roles[-1][endpoint] = _partitions(cursor, topics)
    active, standby = roles[0], roles[1] if len(roles) > 1 else {}
    return tuple(
        HostPartitions(host, port, active.get((host, port), ()), standby.get((host, port), ()))
        for host, port in sorted(active.keys() | standby.keys())
    )


def _error(code: int) -> str | None:
    return ERRORS.get(code, f"error {code}")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise DecodeError(f"a string is not UTF-8: {error.reason}") from None
