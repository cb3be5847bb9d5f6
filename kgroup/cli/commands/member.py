"""`kgroup member`: one synthetic member that joins any cluster, and the ids that a group waits for."""

import json
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated
from typing import Protocol as Shape

from kgroup.cli.commands.member_registration import register, unregister
from kgroup.cli.declaring import STOP_AFTER, argument, option
from kgroup.cli.env.escaping import clean
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import open_admin, stop_after_s
from kgroup.cli.exit_codes import ExitCode, Failure, of_kafka_code
from kgroup.cli.frame.options import make, subcommands
from kgroup.cli.output.schema_ids import schema_id
from kgroup.domain import CLASSIC, CONSUMER, TopicPartition, uuid_text
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError, ErrorCode
from kgroup.members.effects import Assigned, Committed, Failed, Left, Lost, Revoke

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView
    from kgroup.coordinator.assignors.client_side import ClientAssignor
    from kgroup.members.driver import Event
    from kgroup.members.effects import GroupMember
    from kgroup.zookeeper.entry.member import Happened

PROTOCOLS = (CLASSIC, CONSUMER)
ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
Topics = Annotated[list[str], option("--topic TOPIC", "Subscribe to this topic; repeatable.")]
Protocol = Annotated[
    str, option("--protocol NAME", "|".join(PROTOCOLS) + ".", autocompletion=lambda: PROTOCOLS)
]
Instance = Annotated[
    str | None, option("--instance-id ID", "Join as a static member with this group.instance.id.")
]
AssignorOption = Annotated[
    str | None,
    option("--assignor NAME", "Classic: " + "|".join(ASSIGNORS) + ". Consumer: the server-side assignor."),
]
StopAfter = Annotated[str | None, option(STOP_AFTER, "Leave after this long: 30s, 5m.")]
ForGood = Annotated[
    bool, option("--leave", "Leave for good at the end; otherwise a static member keeps its place.")
]

Rack = Annotated[
    str | None,
    option("--rack RACK", "The rack it runs in (client.rack), which range takes into account (KIP-881)."),
]
Legacy = Annotated[
    str | None,
    option("--legacy HOST:PORT,…", "Join a coordinator of the ZooKeeper era there, and read the records."),
]
SessionTimeout = Annotated[str | None, option("--session-timeout DURATION", "With --legacy; 6s by default.")]


class _Stop:
    """The signal to leave: a process signal, or the end of the member's time."""

    def __init__(self, seconds: float) -> None:
        self._event = threading.Event()
        self._deadline = time.monotonic() + seconds

    def on_signal(self, number: int, frame: object) -> None:
        # A second signal ends the process even while an answer is awaited.
        signal.signal(number, signal.default_int_handler)
        self._event.set()

    def pause(self, seconds: float) -> bool:
        """Sleep at most this long; True once the member should leave."""
        left = self._deadline - time.monotonic()
        return self._event.wait(max(min(seconds, left), 0)) or time.monotonic() >= self._deadline


@make(
    "member run",
    examples=(
        ("kgroup member run orders --topic orders -b broker:9092", "a classic member, until Ctrl-C"),
        ("kgroup member run pay --topic pay --protocol consumer --instance-id p-0", "static, KIP-848"),
        (
            "kgroup member run orders --topic orders --stop-after 30s --leave -o ndjson",
            "half a minute, for a script",
        ),
        ("kgroup member run old --topic orders --legacy 127.0.0.1:9192", "at kgroup serve --legacy"),
    ),
    has_json=False,
)
def run(
    env: Env,
    group_id: Annotated[str, argument("GROUP", "The group to join.")],
    topic: Topics,
    protocol: Protocol = CLASSIC,
    instance_id: Instance = None,
    assignor: AssignorOption = None,
    stop_after: StopAfter = None,
    for_good: ForGood = False,
    legacy: Legacy = None,
    session_timeout: SessionTimeout = None,
    rack: Rack = None,
) -> ExitCode:
    """Join a group as one synthetic member, and show which partitions it gains and loses.

    It reads no records and commits nothing, except with --legacy, which does both. With -o ndjson each event
    is one JSON object per line.
    """
    from kgroup.members.driver import Driver

    ends_s = stop_after_s(stop_after)
    stop = _Stop(ends_s)
    if legacy is not None:
        from kgroup.cli.frame.legacy_member import Legacy, topic_count

        given = {"--instance-id": instance_id, "--assignor": assignor, "--rack": rack}
        given["--protocol"] = None if protocol == CLASSIC else protocol
        refused = [name for name, value in given.items() if value is not None]
        if refused:
            raise ConfigError(
                f"{', '.join(refused)}: the coordinator of the ZooKeeper era knows no such thing",
                "leave it out",
            )
        with open_admin(env, stop_after_s=ends_s) as admin:
            session_ms = round(parse_duration(session_timeout) * 1000) if session_timeout else None
            consumer = Legacy(group_id, legacy, session_ms)
            events = _Events(env, consumer)
            _prepare(admin, stop)
            consumer.run(admin, topic_count(topic), lambda: stop.pause(0), events.show, env.note)
        return ExitCode.OK
    if session_timeout is not None:
        raise ConfigError("--session-timeout goes with --legacy", "other members have Kafka's defaults")
    member = _member(group_id, topic, protocol, instance_id, assignor, rack)
    events = _Events(env, member)
    with open_admin(env, stop_after_s=ends_s) as admin:
        _prepare(admin, stop)
        clock = time.monotonic_ns
        driver = Driver(
            member,
            admin.transport,
            clock_ms=lambda: clock() // 1_000_000,
            pause=stop.pause,
            on_event=events.show,
        )
        driver.run(for_good)
    if events.failed is not None:
        code, message = events.failed
        name = ErrorCode.name_of(code)
        raise Failure(of_kafka_code(code), name, f"{group_id}: {message or name}", f"kgroup explain {name}")
    return ExitCode.OK


def _prepare(admin: "ClusterView", stop: _Stop) -> None:
    """Let signals end the member; raise ConfigError for a cluster that only this process serves."""
    if not any(port for _, port in admin.transport.nodes().values()):
        raise ConfigError("a member needs a cluster that runs on its own", "kgroup serve, then again")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop.on_signal)


def _member(
    group_id: str,
    topics: list[str],
    protocol: str,
    instance_id: str | None,
    assignor_name: str | None,
    rack: str | None,
) -> "GroupMember":
    if protocol == CLASSIC:
        from kgroup.members.classic import ClassicMember

        name = assignor_name or "range"
        from kgroup.coordinator.assignors.client_side import ClientRangeAssignor
        from kgroup.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kgroup.coordinator.assignors.round_robin import RoundRobinAssignor

        known: dict[str, Callable[[], ClientAssignor]] = dict(
            zip(ASSIGNORS, (ClientRangeAssignor, RoundRobinAssignor, CooperativeStickyAssignor), strict=True)
        )
        if name not in known:
            raise ConfigError(f"--assignor {name!r} is unknown", "one of " + ", ".join(ASSIGNORS))
        assignor = known[name]()
        return ClassicMember(group_id, topics, [assignor], instance_id=instance_id, rack=rack)
    if protocol == CONSUMER:
        from kgroup.members.consumer import ConsumerMember

        member_id = uuid_text(uuid.uuid4().bytes)
        return ConsumerMember(
            group_id,
            member_id,
            topics,
            instance_id=instance_id,
            rack=rack,
            server_assignor=assignor_name,
        )
    raise ConfigError(f"--protocol {protocol!r} is unknown", "one of " + ", ".join(PROTOCOLS))


class Named(Shape):
    """The subject of events: its group and its name."""

    @property
    def group_id(self) -> str: ...

    @property
    def member_id(self) -> str: ...


class _Events:
    """Printed events of the member; `failed` is the code and message with which it gave up."""

    def __init__(self, env: Env, member: Named) -> None:
        self._json = env.output.format in ("json", "ndjson")
        self._member = member
        self.failed: tuple[int, str] | None = None

    def show(self, event: "Event | Happened") -> None:
        if isinstance(event, Failed):
            self.failed = event.code, event.message
            return
        if isinstance(event, Committed):
            return
        kind = type(event).__name__.lower()
        match event:
            case Left():
                self._print(kind, ())
            case Assigned() | Revoke() | Lost():
                self._print(kind, sorted(event.partitions))
            case _:
                read = {"records": event.records, "position": event.position}
                self._print(kind, (event.partition,), **read)
        sys.stdout.flush()

    def _print(self, kind: str, partitions: Iterable[TopicPartition], **more: int) -> None:
        now = time.time_ns() // 1_000_000
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now / 1000)) + f".{now % 1000:03}Z"
        if not self._json:
            numbers = "".join(f"  {name} {number}" for name, number in more.items())
            print(clean(f"{moment}  {kind:<8}  {' '.join(map(str, partitions)) or '-'}{numbers}"))
            return

        line = {
            "schema": schema_id("member run"),
            "timestamp_ms": now,
            "timestamp": moment,
            "event": kind,
            "group_id": self._member.group_id,
            "member_id": self._member.member_id,
            "partitions": [{"topic": p.topic, "partition": p.partition} for p in partitions],
            **more,
        }
        print(json.dumps(line, separators=(",", ":")))


command = subcommands(
    "member",
    "Run a synthetic group member; register the members a group waits for.",
    run,
    register,
    unregister,
)
