"""A fleet of groups on a real Kafka: what `upgrade plan` says of each, against what the broker then does.

Real clients of every kind join; groups with their bytes (subscription and assignment, as the broker stores
them) are then made by the hundred, and a consumer-protocol member asks the broker itself about each. A sample
by default; `make fleet` has 1,000 groups and all versions, GROUPS=10000 more. KGROUP_FLEET_TABLE=FILE appends
the figures.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kgroup.admin.discovery import ClusterView
from kgroup.admin.migrate.fleet import plan_fleet
from kgroup.admin.topics import create_topic
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.domain import uuid_text
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kgroup.protocol.subscription import Assignment, Subscription
from tests.sampled import FULL

from .conftest import SETTINGS, Case, require
from .driver import Client, Driver, Member, settle
from .foreign.conftest import _command as foreign_command
from .foreign.workers import Workers
from .kafka import RealKafka
from .test_rolling_deployments import Instances
from .test_upgrade_waves import Deployments, run, written
from .verifying import kgroup
from .waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(3000)]
COUNT = int(os.environ.get("KGROUP_FLEET", "70"))
MOVED = {"java": 10, "librdkafka": 10, "franz-go": 10} if FULL else {"librdkafka": 1}
"""How many groups of which clients are moved with their clients."""
TOPIC, PARTITIONS = "fleet", 6
EMBEDDED = Path(__file__).parents[1] / "data" / "embedded-bytes.jsonl"
SESSION_MS = 1_800_000


@dataclass(frozen=True)
class Recorded:
    """A member as a broker stores it: what a client of one kind joined with, and was assigned."""

    kind: str
    protocol_type: str
    protocol: str
    client_id: str
    metadata: bytes
    assignment: bytes
    static: bool = False


@dataclass(frozen=True)
class Kind:
    """A real client: the driver it runs in, its name there, its assignor."""

    driver: str
    client: str
    assignor: str = "range"
    static: bool = False

    def __str__(self) -> str:
        return f"{self.client or self.driver}-{self.assignor}" + ("-static" if self.static else "")


JAVA = (
    ("2.8.2", "3.0.2", "3.4.1", "3.7.2", "3.9.2", "4.0.2", "4.1.2", "4.2.1", "4.3.1") if FULL else ("2.8.2",)
)
KINDS = (
    *(Kind(version, "") for version in JAVA),
    *(Kind("java", "java", each) for each in ("range", "roundrobin", "sticky", "cooperative-sticky")),
    Kind("java", "java", "range", static=True),
    *(Kind("python", "librdkafka", each) for each in ("range", "roundrobin", "cooperative-sticky")),
    Kind("python", "kafka-python"),
    Kind("go", "franz-go"),
    Kind("go", "franz-go", "cooperative-sticky"),
    Kind("go", "sarama"),
)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    require("java", "javac", "mvn", "go")
    settings = {**SETTINGS, "group.initial.rebalance.delay.ms": "0"}
    with RealKafka(settings, base=tmp_path_factory.mktemp("fleet")) as running:
        yield running


class Counting:
    """A transport that counts the requests through it, by kind."""

    concurrent = False

    def __init__(self, transport: SocketTransport) -> None:
        self.transport = transport
        self.sent: Counter[str] = Counter()

    def request(self, node: int | None, message: Message, **options: Any) -> Message:
        self.sent[type(message).__name__] += 1
        return self.transport.request(node, message, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)


def recorded(
    kafka: RealKafka, drivers: Callable[[str], Driver], logs: Path, transport: SocketTransport
) -> list[Recorded]:
    """What two members of each kind join with, once they share the topic."""
    found = []
    for kind in KINDS:
        own = kind.driver[0].isdigit()
        driver = Driver(foreign_command(kind.driver), logs / f"{kind}.log") if own else drivers(kind.driver)
        try:
            found.append(_record(kafka, kind, driver, transport))
        finally:
            if own:
                driver.close()
    lines = [json.loads(line) for line in EMBEDDED.read_text().splitlines()]
    for what, protocol_type, protocol in (
        ("connect", "connect", "sessioned"),
        ("streams", "consumer", "stream"),
    ):
        of = {
            line["kind"].rpartition("-")[2]: bytes.fromhex(line["hex"])
            for line in lines
            if line["kind"].startswith(what)
        }
        metadata, assignment = of["metadata"], of["assignment"]
        if what == "streams":
            metadata = Subscription((TOPIC,), metadata).encode(1)
            assignment = Assignment((), assignment).encode(1)
        found.append(Recorded(what, protocol_type, protocol, f"{what}-1", metadata, assignment))
    return found


def _record(kafka: RealKafka, kind: Kind, driver: Driver, transport: SocketTransport) -> Recorded:
    group, members = f"recorded-{kind}", list[Member]()
    everything = {(TOPIC, number) for number in range(PARTITIONS)}
    try:
        for seat in range(2):
            name = f"{group}/{seat}"
            given = {
                "client": kind.client,
                "bootstrap": kafka.bootstrap,
                "group": group,
                "topics": [TOPIC],
                "pattern": None,
                "instance": f"i-{seat}" if kind.static else None,
                "protocol": "classic",
                "assignor": kind.assignor,
                "session_ms": 10_000,
                "commits": False,
                "config": {},
                **({"client_id": f"consumer-{group}-{seat}"} if kind.driver[0].isdigit() else {}),
            }
            driver.call("start", name=name, **given)
            members.append(Member(driver, name))
            # One after the other: what librdkafka writes into assignments comes with the second generation.
            settle(members, everything, PARTITIONS // len(members), within_s=90)

        def stable() -> Any:
            answer = transport.request(1, DescribeGroupsRequest(groups=(group,)))
            assert isinstance(answer, DescribeGroupsResponse)
            assert answer.groups[0].group_state == "Stable", answer
            return answer.groups[0]

        told = eventually(stable)
        member = max(told.members, key=lambda each: len(each.member_assignment))
        return Recorded(
            str(kind),
            told.protocol_type,
            told.protocol_data,
            member.client_id,
            member.member_metadata,
            member.member_assignment,
            kind.static,
        )
    finally:
        for each in members:
            each.close()


def join(transport: SocketTransport, group: str, of: Recorded) -> None:
    """Make a group of one member with these bytes, which stays without a heartbeat."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=60_000,
        member_id="",
        group_instance_id="i-0" if of.static else None,
        protocol_type=of.protocol_type,
        protocols=(JoinGroupRequestProtocol(name=of.protocol, metadata=of.metadata),),
    )
    answer = transport.request(None, request)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        answer = transport.request(None, replace(request, member_id=answer.member_id))
    assert answer.error_code == 0, answer
    given = SyncGroupRequestAssignment(member_id=answer.member_id, assignment=of.assignment)
    sync = SyncGroupRequest(
        group_id=group,
        generation_id=answer.generation_id,
        member_id=answer.member_id,
        group_instance_id=request.group_instance_id,
        assignments=(given,),
    )
    assert transport.request(None, sync, max_version=4).error_code == 0


def broker_says(transport: SocketTransport, group: str) -> str:
    """Return what the broker does with a first member of the consumer protocol: ready or blocked."""
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=uuid_text(group.encode().ljust(16, b"-")[-16:]),
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=(TOPIC,),
        topic_partitions=(),
    )
    answer = transport.request(None, request)
    if answer.error_code == 0:
        return "ready"
    assert answer.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.INCONSISTENT_GROUP_PROTOCOL), answer
    return "blocked"


def test_every_verdict_is_what_the_broker_does(
    kafka: RealKafka, drivers: Callable[[str], Driver], tmp_path: Path
) -> None:
    with SocketTransport(ConnectionSettings(parse_bootstrap(kafka.bootstrap))) as transport:
        create_topic(ClusterView(transport), TOPIC, PARTITIONS)
        kinds = recorded(kafka, drivers, tmp_path, transport)
        of: dict[str, Recorded] = {}
        clients = {each.client_id for each in kinds}
        by_client = {
            name: SocketTransport(replace(transport.settings, client_id=name)) for name in sorted(clients)
        }
        for number in range(COUNT):
            each = kinds[number % len(kinds)]
            group = f"fleet-{number}-{each.kind}"
            join(by_client[each.client_id], group, each)
            of[group] = each
        for other in by_client.values():
            other.close()
        counting = Counting(transport)
        admin = ClusterView(counting)  # type: ignore[arg-type]
        began = time.perf_counter()
        fleet = plan_fleet(admin, of)
        seconds = time.perf_counter() - began
        assert fleet.errors == ()
        told = {row.group_id: row.verdict for row in fleet.rows}
        left_out = {out.group_id for out in fleet.left_out}
        assert left_out == {group for group, each in of.items() if each.kind in ("connect", "streams")}
        did = {group: broker_says(transport, group) for group in of if group not in left_out}
    wrong = {
        (of[group].kind, verdict, did[group]) for group, verdict in told.items() if verdict != did[group]
    }
    assert wrong == set()
    assert {"ready", "blocked"} == set(did.values())
    if path := os.environ.get("KGROUP_FLEET_TABLE"):
        by_kind = {of[group].kind: verdict for group, verdict in told.items()}
        line = {"groups": len(of), "seconds": round(seconds, 2), "requests": counting.sent, "kinds": by_kind}
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def test_groups_are_moved_with_their_clients(
    kafka: RealKafka,
    drivers: Callable[[str], Driver],
    clients: Callable[[str], Client],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each rolled to its client's own consumer protocol by the hook of a wave."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for client, count in ((clients(name), count) for name, count in MOVED.items()):
        case = Case(kafka, drivers("java"), f"moved-{client.name}", [])
        folder = tmp_path / client.name
        folder.mkdir()
        made = Deployments(case, client, folder, commits=False)
        try:
            groups = made.fill(*map(str, range(count)))
            waves = written(folder, groups[:1], groups[1:]) if count > 1 else written(folder, groups)
            code, told = run(case, waves)
            assert (code, {wave["step"] for wave in told["waves"]}) == (0, {"done"}), told
            verdicts = {group["verdict"] for wave in told["waves"] for group in wave["groups"]}
            assert verdicts == {"ready"}
            assert {str(case.describe(group)["type"]) for group in groups} == {"Consumer"}
        finally:
            made.close()
            for member in case.members:
                member.close()


def test_running_applications_are_named_with_what_to_do_instead(
    kafka: RealKafka, drivers: Callable[[str], Driver], tmp_path: Path
) -> None:
    """Kafka Streams of both protocols, a Connect worker and its sink, as they run.

    Their groups are left out, and the broker agrees. With FULL the hints are followed: the sink's consumer
    and the application move.
    """
    apps = {
        protocol: Instances(
            Case(kafka, drivers("java"), f"words-{protocol}", []), tmp_path, **{"group.protocol": protocol}
        )
        for protocol in ("classic", "streams")
    }
    for app in apps.values():
        app.case.topic(PARTITIONS, "in")
        app.case.topic(2, "out")
    workers = Workers(kafka.bootstrap, "workers", "sessioned", tmp_path)
    lines, where = apps["classic"].case.topic(1, "lines"), ("-b", kafka.bootstrap)
    sink = {"connector.class": "FileStreamSink", "topics": lines, "file": str(tmp_path / "out")}
    try:
        workers.start("w0")
        for protocol, app in apps.items():
            app.start(protocol)
        for app in apps.values():
            app.settle()
        workers.create("lines", **sink)
        workers.shares(["lines"])
        code, told = kgroup(
            "upgrade", "plan", "words-classic", "words-streams", "workers", "connect-lines", *where
        )
        hints = {out["group_id"]: out["hint"] for out in told["left_out"]}
        assert (code, set(hints)) == (4, {"words-classic", "words-streams", "workers"}), told
        assert "group.protocol=streams (KIP-1071)" in hints["words-classic"]
        assert "nothing is left to do" in hints["words-streams"]
        assert "consumer.group.protocol=consumer" in hints["workers"]
        (row,) = told["groups"]
        assert (row["verdict"], row["software"]) == ("ready", {"Kafka Connect": 1})
        with SocketTransport(ConnectionSettings(parse_bootstrap(kafka.bootstrap))) as transport:
            assert {broker_says(transport, group) for group in hints} == {"blocked"}
        for app in apps.values():
            app.settle()
        if not FULL:
            return
        workers.settings["consumer.group.protocol"] = "consumer"
        workers.stop("w0")
        workers.start("w0")
        workers.shares(["lines"])
        apps["classic"].close()
        assert kgroup("wait", "words-classic", "--for", "empty", *where)[0] == 0
        assert kgroup("upgrade", "plan", "words-classic", *where)[1]["verdict"] == "blocked"
        apps["classic"].start("classic", **{"group.protocol": "streams"})
        apps["classic"].settle()
        code, told = kgroup("describe", "words-classic", "connect-lines", *where)
        assert {each["group_id"]: each["type"] for each in told["groups"]} == {
            "words-classic": "streams",
            "connect-lines": "consumer",
        }
    finally:
        for app in apps.values():
            app.close()
        workers.close()
