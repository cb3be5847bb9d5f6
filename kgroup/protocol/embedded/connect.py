"""The messages between the workers of a Kafka Connect cluster: metadata when they join, assignments.

Version 0 is the eager protocol (`default`): an assignment is all that a worker runs. Versions 1 and 2
(`compatible`, KIP-415; `sessioned`, KIP-507, the same bytes) are incremental: an assignment is what a worker
is to start and to stop, relative to what it ran when it joined. As in Kafka, fields missing at the end of
those are taken as none, and bytes behind the last field are ignored (ConnectProtocol,
IncrementalCooperativeConnectProtocol and WorkerCoordinator.onJoinComplete of connect-runtime 4.3.1).
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from kgroup.errors import DecodeError
from kgroup.protocol.codec import Message, Struct
from kgroup.protocol.embedded.undecoded import ASSIGNMENT, METADATA, Undecoded, Unknown, attempt
from kgroup.protocol.types import Bytes, Int16, Int32, Int64, String

PROTOCOL_TYPE = "connect"
EAGER, NEWEST = 0, 2
CONNECTOR = -1
"""The number that stands among a connector's tasks for the connector itself."""
ERRORS = {0: None, 1: "CONFIG_MISMATCH"}
_VERSION = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class ConnectorTasks:
    """Tasks of one connector, by number."""

    connector: str
    tasks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """Connectors and tasks, both in order."""

    connectors: tuple[str, ...] = ()
    tasks: tuple[ConnectorTasks, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Connectors, then tasks as Connect writes them: `orders-sink-0`."""
        return (*self.connectors, *(f"{entry.connector}-{n}" for entry in self.tasks for n in entry.tasks))

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)


@dataclass(frozen=True, slots=True)
class ConnectAssignment:
    """The leader's assignment to one worker. `error` is a name, None for none; `leader` a member id.

    `given` is all of its work in version 0, and from 1 on what it is to start; `revoked` what it is to stop.
    `delay_ms`: the leader withholds work of lost workers so long, in case they return, and then rebalances.
    """

    version: int
    error: str | None
    leader: str
    leader_url: str
    config_offset: int
    given: Work
    revoked: Work
    delay_ms: int


@dataclass(frozen=True, slots=True)
class ConnectWorker:
    """One worker. `worker_id` is its name in Connect's REST API; `version` that of its metadata.

    `config_offset` is how far in the config topic it had read when it joined, `before` what it ran then
    (None if not reported: an eager worker stops all before it joins). `running` is what it runs by its
    assignment, None while that is unknown.
    """

    version: int
    worker_id: str
    url: str
    config_offset: int
    before: Work | None
    running: Annotated[Work | None, "null: not known"]
    assignment: ConnectAssignment | None


class ConnectorAssignment(Struct):
    """A connector and numbers of its tasks, CONNECTOR among them for itself."""

    connector: String
    tasks: tuple[Int32, ...] = ()


class ConfigState(Message, versions=range(NEWEST + 1)):
    """How far in the config topic the worker behind a URL is."""

    url: String
    config_offset: Int64


class Allocation(Message, versions=range(NEWEST + 1)):
    """The assignment a worker had, in its encoded form."""

    assignment: Bytes | None = None


class RawAssignment(Message, versions=range(NEWEST + 1)):
    """The beginning of an assignment."""

    error: Int16
    leader: String
    leader_url: String
    config_offset: Int64


class Tasks(Message, versions=range(NEWEST + 1)):
    """Connectors with tasks: given, or revoked."""

    given: tuple[ConnectorAssignment, ...] | None = None


class ScheduledDelay(Message, versions=range(NEWEST + 1)):
    """The end of an assignment."""

    delay_ms: Int32 = 0


def worker(metadata: bytes, assignment: bytes) -> tuple[ConnectWorker | None, tuple[Undecoded, ...]]:
    """Return a worker by both of its parts, either maybe empty; and what was not understood.

    Without metadata that can be read there is no worker.
    """
    state = attempt(METADATA, metadata, _state, version_of) if metadata else None
    given = attempt(ASSIGNMENT, assignment, _assignment, version_of) if assignment else None
    undecoded = tuple(part for part in (state, given) if isinstance(part, Undecoded))
    if state is None or isinstance(state, Undecoded):
        return None, undecoded
    version, url, config_offset, before = state
    assigned = None if isinstance(given, Undecoded) else given
    running = None
    if assigned is not None and assigned.version == EAGER:
        running = assigned.given
    elif assigned is not None and before is not None:
        kept = set(_pairs(before)) - set(_pairs(assigned.revoked))
        running = _work(kept | set(_pairs(assigned.given)))
    return (
        ConnectWorker(
            version=version,
            worker_id=worker_id(url),
            url=url,
            config_offset=config_offset,
            before=before,
            running=running,
            assignment=assigned,
        ),
        undecoded,
    )


def assignment_of(data: bytes) -> ConnectAssignment | Undecoded:
    """Return the assignment in a SyncGroup answer."""
    return attempt(ASSIGNMENT, data, _assignment, version_of)


def version_of(data: bytes) -> int | None:
    """Return the version that bytes of either part claim to be; None where they are too short for one."""
    return int(_VERSION.unpack_from(data)[0]) if len(data) >= _VERSION.size else None


def worker_id(url: str) -> str:
    """Return the host and port of a worker's URL, Connect's REST name for it; else the URL."""
    try:
        parts = urlsplit(url)
        return parts.netloc.rpartition("@")[2] if parts.port else url
    except ValueError:
        return url


def _pairs(work: Work) -> Iterable[tuple[str, int]]:
    yield from ((connector, CONNECTOR) for connector in work.connectors)
    yield from ((entry.connector, number) for entry in work.tasks for number in entry.tasks)


def _work(pairs: Iterable[tuple[str, int]]) -> Work:
    tasks: dict[str, list[int]] = {}
    connectors = []
    for connector, number in sorted(set(pairs)):
        if number == CONNECTOR:
            connectors.append(connector)
        else:
            tasks.setdefault(connector, []).append(number)
    return Work(
        tuple(connectors), tuple(ConnectorTasks(name, tuple(numbers)) for name, numbers in tasks.items())
    )


def _version(data: bytes) -> int:
    version = version_of(data)
    if version is None:
        raise DecodeError("too short for a version")
    if not EAGER <= version <= NEWEST:
        raise Unknown(version, NEWEST)
    return version


def _state(data: bytes) -> tuple[int, str, int, Work | None]:
    """Return version, URL, config offset, and what the worker ran."""
    version = _version(data)
    state, at = ConfigState.decode_prefix(data, _VERSION.size, version)
    if version == EAGER:
        return version, state.url, state.config_offset, None
    before = Work()
    if at < len(data):
        allocation, _ = Allocation.decode_prefix(data, at, version)
        # A worker that runs nothing, or has just joined, sends none.
        if allocation.assignment is not None:
            before = _assignment(allocation.assignment).given
    return version, state.url, state.config_offset, before


def _assignment(data: bytes) -> ConnectAssignment:
    version = _version(data)
    head, at = RawAssignment.decode_prefix(data, _VERSION.size, version)
    parts = [Work(), Work()]
    for number in range(1 if version == EAGER else 2):
        if at == len(data) and version != EAGER:
            break
        tasks, at = Tasks.decode_prefix(data, at, version)
        if tasks.given is None and version == EAGER:
            raise DecodeError("the assignment is null")
        parts[number] = _work((entry.connector, n) for entry in tasks.given or () for n in entry.tasks)
    delay = 0
    if version != EAGER and at < len(data):
        delay = ScheduledDelay.decode_prefix(data, at, version)[0].delay_ms
    error = ERRORS.get(head.error, f"error {head.error}")
    given, revoked = parts
    return ConnectAssignment(
        version, error, head.leader, head.leader_url, head.config_offset, given, revoked, delay
    )
