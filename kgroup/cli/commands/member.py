"""`kgroup member run`: one synthetic member that joins any cluster."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from kgroup.cli.env.durations import parse_duration
from kgroup.cli.env.invocation import Env
from kgroup.cli.escaping import clean
from kgroup.cli.exit_codes import ExitCode, Failure, of_kafka_code
from kgroup.cli.options import command as make
from kgroup.cli.options import group
from kgroup.cli.schema_ids import schema_id
from kgroup.errors import ConfigError, ErrorCode

if TYPE_CHECKING:
    from kgroup.coordinator.assignors.client_side import ClientAssignor
    from kgroup.domain import TopicPartition
    from kgroup.members.driver import Event
    from kgroup.members.effects import Member

PROTOCOLS = ("classic", "consumer")
ASSIGNORS = ("range", "roundrobin", "cooperative-sticky")
Topics = Annotated[
    list[str], typer.Option("--topic", metavar="TOPIC", help="Subscribe to this topic; repeatable.")
]
Protocol = Annotated[
    str,
    typer.Option(
        "--protocol", metavar="NAME", help="|".join(PROTOCOLS) + ".", autocompletion=lambda: PROTOCOLS
    ),
]
Instance = Annotated[
    str | None,
    typer.Option("--instance-id", metavar="ID", help="Join as a static member with this group.instance.id."),
]
AssignorOption = Annotated[
    str | None,
    typer.Option(
        "--assignor",
        metavar="NAME",
        help="Classic: " + "|".join(ASSIGNORS) + ". Consumer: the server-side assignor.",
    ),
]
Duration = Annotated[
    str | None, typer.Option("--for", metavar="DURATION", help="Leave after this long: 30s, 5m.")
]
ForGood = Annotated[
    bool,
    typer.Option("--leave", help="Leave for good at the end; otherwise a static member keeps its place."),
]


class _Stop:
    """Tells the member when to leave: at a signal, or when its time is over."""

    def __init__(self, seconds: float | None) -> None:
        self._event = threading.Event()
        self._deadline = None if seconds is None else time.monotonic() + seconds

    def on_signal(self, number: int, frame: object) -> None:
        # A second signal ends the process even while an answer is awaited.
        signal.signal(number, signal.default_int_handler)
        self._event.set()

    def pause(self, seconds: float) -> bool:
        """Sleep at most this long; True once the member shall leave."""
        if self._deadline is None:
            return self._event.wait(seconds)
        left = self._deadline - time.monotonic()
        return self._event.wait(max(min(seconds, left), 0)) or time.monotonic() >= self._deadline


@make(
    "member run",
    examples=(
        ("kgroup member run orders --topic orders -b broker:9092", "a classic member, until Ctrl-C"),
        ("kgroup member run pay --topic pay --protocol consumer --instance-id p-0", "static, KIP-848"),
        (
            "kgroup member run orders --topic orders --for 30s --leave -o ndjson",
            "half a minute, for a script",
        ),
    ),
    has_json=False,
)
def run(
    env: Env,
    group_id: Annotated[str, typer.Argument(help="The group to join.", metavar="GROUP")],
    topic: Topics,
    protocol: Protocol = "classic",
    instance_id: Instance = None,
    assignor: AssignorOption = None,
    duration: Duration = None,
    for_good: ForGood = False,
) -> ExitCode:
    """Join a group as one synthetic member, and show which partitions it gains and loses.

    It reads no records and commits nothing. With -o ndjson each event is one JSON object per line.
    """
    from kgroup.cli.env.session import open_admin
    from kgroup.members.driver import Driver

    member = _member(group_id, topic, protocol, instance_id, assignor)
    stop = _Stop(parse_duration(duration) if duration else None)
    events = _Events(env, member)
    with open_admin(env) as admin:
        if not any(port for _, port in admin.transport.nodes().values()):
            raise ConfigError("a member needs a cluster that runs on its own", "kgroup serve, then again")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop.on_signal)
        clock = time.monotonic_ns
        driver = Driver(
            member,
            admin.transport,
            clock_ms=lambda: clock() // 1_000_000,
            pause=stop.pause,
            on_event=events.tell,
        )
        driver.run(for_good)
    if events.failed is not None:
        code, message = events.failed
        name = ErrorCode.name_of(code)
        raise Failure(of_kafka_code(code), name, f"{group_id}: {message or name}", f"kgroup explain {name}")
    return ExitCode.OK


def _member(
    group_id: str, topics: list[str], protocol: str, instance_id: str | None, assignor: str | None
) -> "Member":
    if protocol == "classic":
        from kgroup.members.classic import ClassicMember

        return ClassicMember(group_id, topics, [_assignor(assignor or "range")], instance_id=instance_id)
    if protocol == "consumer":
        import uuid

        from kgroup.domain import uuid_text
        from kgroup.members.consumer import ConsumerMember

        member_id = uuid_text(uuid.uuid4().bytes)
        return ConsumerMember(group_id, member_id, topics, instance_id=instance_id, server_assignor=assignor)
    raise ConfigError(f"--protocol {protocol!r} is unknown", "one of " + ", ".join(PROTOCOLS))


def _assignor(name: str) -> "ClientAssignor":
    from kgroup.coordinator.assignors.client_side import ClientRangeAssignor
    from kgroup.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kgroup.coordinator.assignors.round_robin import RoundRobinAssignor

    known: dict[str, Callable[[], ClientAssignor]] = dict(
        zip(ASSIGNORS, (ClientRangeAssignor, RoundRobinAssignor, CooperativeStickyAssignor), strict=True)
    )
    if name not in known:
        raise ConfigError(f"--assignor {name!r} is unknown", "one of " + ", ".join(ASSIGNORS))
    return known[name]()


class _Events:
    """Prints what happens to the member; `failed` is the code and message it gave up with."""

    def __init__(self, env: Env, member: "Member") -> None:
        self._json = env.output.format in ("json", "ndjson")
        self._member = member
        self.failed: tuple[int, str] | None = None

    def tell(self, event: "Event") -> None:
        from kgroup.members.effects import Committed, Failed, Left

        if isinstance(event, Failed):
            self.failed = event.code, event.message
            return
        if isinstance(event, Committed):
            return
        kind = type(event).__name__.lower()
        partitions = () if isinstance(event, Left) else sorted(event.partitions)
        self._print(kind, partitions)
        sys.stdout.flush()

    def _print(self, kind: str, partitions: "Iterable[TopicPartition]") -> None:
        now = time.time_ns() // 1_000_000
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now / 1000)) + f".{now % 1000:03}Z"
        if not self._json:
            print(clean(f"{moment}  {kind:<8}  {' '.join(map(str, partitions)) or '-'}"))
            return
        import json

        line = {
            "schema": schema_id("member run"),
            "timestamp_ms": now,
            "timestamp": moment,
            "event": kind,
            "group_id": self._member.group_id,
            "member_id": self._member.member_id,
            "partitions": [{"topic": p.topic, "partition": p.partition} for p in partitions],
        }
        print(json.dumps(line, separators=(",", ":")))


command = group("member", "Run a synthetic group member.", run)
