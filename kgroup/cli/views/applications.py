"""Members of Kafka Connect, Kafka Streams and Schema Registry as a line and as rows."""

from collections.abc import Iterable

from kgroup.admin.models import GroupDescription, Member
from kgroup.admin.read.applications import NAMES
from kgroup.cli.output.tables import Column
from kgroup.cli.output.wording import STATE_STYLES, UNKNOWN, short_process_id
from kgroup.domain import Document, count_of, ranges
from kgroup.history.fold.events import duration_text
from kgroup.protocol.embedded.connect import Work
from kgroup.protocol.embedded.member import CONNECT, SCHEMA_REGISTRY, Application

_GROUP = Column("group_id", "GROUP", wide=True)
_INSTANCE = Column("instance_id", "INSTANCE", wide=True)
_MEMBER = Column("member_id", "MEMBER")
_CLIENT = Column("client_id", wide=True)
_HOST = Column("host")
_STATE = Column("state", style=STATE_STYLES)
_LEADER = Column("leader")
_CONNECT = (
    Column("worker", "WORKER"),
    _LEADER,
    Column("config_offset", "CONFIG", right=True),
    Column("connectors"),
    Column("connect_tasks", "TASKS"),
    Column("revoked", wide=True),
)
_STREAMS = (
    Column("thread"),
    Column("process"),
    Column("active_tasks", "ACTIVE"),
    Column("standby_tasks", "STANDBY"),
    Column("previous_tasks", "BEFORE", wide=True),
    Column("endpoint", wide=True),
)
_REGISTRY = (Column("url"), _LEADER, Column("eligible"))
_READING = (
    Column("partitions", "PARTS", right=True),
    Column("assignment", "CURRENT", wide=True),
    Column("lag", right=True),
)


def columns_of(application: Application) -> tuple[Column, ...]:
    """Return the columns for members of this application."""
    front, back = (_GROUP,), (_MEMBER, _CLIENT, _HOST, _STATE)
    if application.kind == CONNECT:
        return (*front, *_CONNECT[:2], *back, *_CONNECT[2:])
    if application.kind == SCHEMA_REGISTRY:
        return (*front, *_REGISTRY, *back)
    return (*front, *_STREAMS[:2], _INSTANCE, *back, *_STREAMS[2:], *_READING)


def further_columns(groups: Iterable[GroupDescription], columns: Iterable[Column]) -> tuple[Column, ...]:
    """Return the further columns of some groups' applications, each once."""
    have = {column.key for column in columns}
    more = {
        column.key: column
        for group in groups
        if group.application is not None
        for column in columns_of(group.application)
        if column.key not in have
    }
    return tuple(more.values())


def summary(group: GroupDescription) -> str:
    """Return the group's application, and what holds for all of its members."""
    application = group.application
    assert application is not None
    parts = [NAMES[application.kind]]
    if application.query_id is not None:
        parts.append(f"service {application.service_id}")
        parts.append(f"query {application.query_id}")
    members = group.known_members
    if application.kind == CONNECT:
        parts += _connect_summary(members)
    elif application.kind == SCHEMA_REGISTRY:
        parts += _registry_summary(members)
    else:
        parts += _streams_summary(members)
    return " · ".join(parts)


def _connect_summary(members: Iterable[Member]) -> list[str]:
    workers = [member.connect for member in members if member.connect is not None]
    assignments = [worker.assignment for worker in workers if worker.assignment is not None]
    if not assignments:
        return ["leader unknown"] if workers else []
    last = max(assignments, key=lambda assignment: assignment.config_offset)
    named = (worker.worker_id for worker in workers if worker.url == last.leader_url)
    leader = next(named, last.leader_url or last.leader)
    return [
        f"protocol version {last.version}",
        f"leader {leader}",
        f"config offset {last.config_offset}",
        *([f"the leader waits {duration_text(last.delay_ms)} for lost workers"] if last.delay_ms > 0 else []),
        *sorted({f"assignment error {assignment.error}" for assignment in assignments if assignment.error}),
    ]


def _registry_summary(members: Iterable[Member]) -> list[str]:
    reported = [member.schema_registry.election for member in members if member.schema_registry is not None]
    elections = [election for election in reported if election is not None]
    if not elections:
        return ["leader unknown"] if reported else []
    election = elections[0]
    leader = election.leader_identity
    name = (leader.url if leader else None) or election.leader
    parts = [f"leader {name}" if name else "no leader: none of the instances may be one"]
    return [*parts, *([f"election error {election.error}"] if election.error else [])]


def _streams_summary(members: Iterable[Member]) -> list[str]:
    threads = [member.streams for member in members if member.streams is not None]
    joined = [thread.subscription for thread in threads if thread.subscription is not None]
    if not threads:
        return []
    if len(joined) < len(threads):
        return [count_of(len(threads), "thread"), "processes unknown"]
    versions = ranges({subscription.version for subscription in joined})
    processes = len({subscription.process_id for subscription in joined})
    counts = f"{count_of(processes, 'process', 'es')}, {count_of(len(threads), 'thread')}"
    return [counts, f"user data version {versions}"]


def row_of(member: Member, application: Application, short: bool) -> Document:
    """Return a member's decoded bytes by column; UNKNOWN where they say nothing or are not understood."""
    leader = {None: UNKNOWN, True: "yes", False: None}[member.is_leader]
    if application.kind == CONNECT:
        worker = member.connect
        running = worker.running if worker is not None else None
        last = worker.assignment if worker is not None else None
        return {
            "leader": leader,
            "worker": UNKNOWN if worker is None else worker.worker_id,
            "config_offset": UNKNOWN if worker is None else worker.config_offset,
            "connectors": UNKNOWN if running is None else running.connectors,
            "connect_tasks": UNKNOWN if running is None else tasks_of(running),
            "revoked": UNKNOWN if last is None else last.revoked.names,
        }
    if application.kind == SCHEMA_REGISTRY:
        identity = member.schema_registry.identity if member.schema_registry is not None else None
        eligible = None if identity is None else identity.leader_eligible
        return {
            "leader": leader,
            "url": UNKNOWN if identity is None else identity.url or UNKNOWN,
            "eligible": {None: UNKNOWN, True: "yes", False: "no"}[eligible],
        }
    thread = member.streams
    joined = thread.subscription if thread is not None else None
    given = thread.assignment if thread is not None else None
    process = None if joined is None else joined.process_id
    return {
        "thread": UNKNOWN if thread is None or thread.thread is None else thread.thread,
        "process": UNKNOWN if process is None else short_process_id(process) if short else process,
        "active_tasks": UNKNOWN if given is None else given.active,
        "standby_tasks": UNKNOWN if given is None else given.standby,
        "previous_tasks": UNKNOWN
        if joined is None
        else tuple(task.task if task.role == "active" else f"({task.task})" for task in joined.previous),
        "endpoint": UNKNOWN if joined is None else joined.user_endpoint,
    }


def tasks_of(work: Work) -> tuple[str, ...]:
    """Return tasks as `orders-sink:0-2`, one per connector."""
    return tuple(f"{entry.connector}:{ranges(entry.tasks)}" for entry in work.tasks)
