"""Every command with exactly the rights that `doctor --rights` asks for, and with each of them taken away.

On a real Kafka with its StandardAuthorizer: with all of them it ends as it should, without any it ends with
6 and names the right that is missing. The ACLs are those of the printed lines.
"""

from __future__ import annotations

import argparse
import itertools
import shlex
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from kgroup.admin.change.committing import store
from kgroup.admin.discovery import ClusterView
from kgroup.admin.migrate.execute import convert_empty
from kgroup.admin.migrate.plan import plan_migration
from kgroup.admin.read.describe import describe
from kgroup.admin.rights.needs import COMMANDS
from kgroup.admin.rights.probes import BRINGS
from kgroup.admin.topics import create_topic
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.domain import OffsetAndMetadata, TopicPartition
from tests.own_home import move_in
from tests.ran import Ran, ran
from tests.sampled import FULL

from .conftest import require
from .kafka import AUTHORIZED, SHARED, USERS, RealKafka
from .waiting import eventually

pytestmark = pytest.mark.interop
OK, PARTIAL, RIGHTS, BAD = 0, 5, 6, 8
BOB = "User:bob"
LIVE, CLASSIC, EMPTY, NEW, SHARE = "g-live", "g-classic", "g-empty", "g-new", "g-share"
TOPIC, MADE = "orders", "made"
KINDS = {
    "--group": "GROUP",
    "--topic": "TOPIC",
    "--cluster": "BROKER",
    "--transactional-id": "TRANSACTIONAL_ID",
}


@dataclass(frozen=True)
class Row:
    """A command line; the group that doctor is asked about, a topic, and codes other than the usual."""

    argv: tuple[str, ...]
    group: str | None = EMPTY
    topic: str | None = None
    healthy: int = OK
    lacking: tuple[int, ...] = (RIGHTS,)
    clone: str | None = None

    @property
    def about(self) -> tuple[str, ...]:
        """What doctor is asked about."""
        groups = tuple(group for group in (self.group, self.clone) if group)
        return (*groups, "--topic", self.topic) if self.topic else groups


RULE = ("--principal", "User:carol", "--operation", "Read")
EXECUTED = ("--execute", "--yes")
ROWS = {
    "list": Row(("list",), None),
    "describe": Row(("describe", LIVE), LIVE),
    "lag": Row(("lag", LIVE), LIVE),
    "lag --time": Row(("lag", LIVE, "--time"), LIVE),
    "watch": Row(("watch", LIVE, "--stop-after", "50ms"), LIVE),
    "wait": Row(("wait", LIVE, "--for", "lag=1000", "--stop-after", "3s"), LIVE),
    "doctor": Row(("doctor", EMPTY)),
    "coordinator": Row(("coordinator", EMPTY)),
    "remove-members": Row(("remove-members", LIVE, "--all", *EXECUTED), LIVE),
    "reset-offsets": Row(("reset-offsets", EMPTY, "--all-topics", "--to-earliest", *EXECUTED)),
    "offsets export": Row(("offsets", "export", EMPTY)),
    "offsets import": Row(("offsets", "import", "exported.json", *EXECUTED)),
    "offsets delete": Row(("offsets", "delete", EMPTY, "--topic", TOPIC, *EXECUTED)),
    "offsets clone": Row(("offsets", "clone", EMPTY, NEW, *EXECUTED), clone=NEW),
    "delete": Row(("delete", EMPTY, *EXECUTED)),
    "config get": Row(("config", "get", EMPTY)),
    "config set": Row(("config", "set", EMPTY, "consumer.session.timeout.ms=45000", *EXECUTED)),
    "regex check": Row(("regex", "check", "ord.*")),
    "upgrade plan": Row(("upgrade", "plan", EMPTY)),
    "upgrade execute": Row(("upgrade", "execute", EMPTY, "--yes")),
    "upgrade watch": Row(("upgrade", "watch", LIVE, "--stuck-after", "1s"), LIVE),
    "upgrade run": Row(("upgrade", "run", "waves.yaml", *EXECUTED)),
    "upgrade rehearse": Row(("upgrade", "rehearse", EMPTY)),
    "downgrade plan": Row(("downgrade", "plan", LIVE), LIVE),
    "downgrade execute": Row(("downgrade", "execute", EMPTY, "--yes")),
    "downgrade watch": Row(
        ("downgrade", "watch", LIVE, "--stuck-after", "1s", "--interval", "100ms"), LIVE, healthy=BAD
    ),
    "replay-log": Row(("replay-log",), None, lacking=(PARTIAL, RIGHTS)),
    "replay-log --verify": Row(("replay-log", "--verify"), None, lacking=(PARTIAL, RIGHTS)),
    "blame": Row(("blame", LIVE), LIVE),
    "offsets-topic stats": Row(("offsets-topic", "stats"), None),
    "offsets-topic top": Row(("offsets-topic", "top"), None),
    "capture": Row(("capture", "--out", "captured", "--once"), None, lacking=(PARTIAL, RIGHTS)),
    "record": Row(
        ("record", "captured", "--group", LIVE, "--stop-after", "1s", "--patience", "0s"),
        LIVE,
        lacking=(PARTIAL, RIGHTS),
    ),
    "cluster status": Row(("cluster", "status"), None),
    "cluster topics": Row(("cluster", "topics"), None),
    "cluster create-topic": Row(("cluster", "create-topic", MADE), None, MADE),
    "cluster acl add": Row(("cluster", "acl", "add", *RULE, "--topic", TOPIC), None),
    "cluster acl list": Row(("cluster", "acl", "list"), None),
    "cluster acl remove": Row(("cluster", "acl", "remove", *RULE, *EXECUTED), None),
    "cluster user add": Row(("cluster", "user", "add", "eve", "--password-file", "eve.txt"), None),
    "cluster user list": Row(("cluster", "user", "list"), None),
    "cluster user remove": Row(("cluster", "user", "remove", "eve"), None),
    "member run": Row(("member", "run", "g-run", "--topic", TOPIC, "--stop-after", "300ms"), "g-run", TOPIC),
    "explain": Row(("explain", f"[Consumer clientId=c, groupId={EMPTY}] (Re-)joining group")),
}
VARIANTS = [
    *ROWS.items(),
    ("describe", Row(("describe", EMPTY))),
    ("lag", Row(("lag", EMPTY))),
    ("doctor", Row(("doctor", LIVE), LIVE)),
    ("upgrade plan", Row(("upgrade", "plan", CLASSIC), CLASSIC)),
    ("upgrade rehearse", Row(("upgrade", "rehearse", CLASSIC), CLASSIC)),
    ("remove-members", Row(("remove-members", CLASSIC, "--all", *EXECUTED), CLASSIC)),
    ("describe", Row(("describe", SHARE), SHARE)),
    ("lag", Row(("lag", SHARE), SHARE)),
    ("lag --time", Row(("lag", SHARE, "--time"), SHARE)),
    ("coordinator", Row(("coordinator", SHARE), SHARE)),
    ("reset-offsets", Row(("reset-offsets", SHARE, "--all-topics", "--to-current", *EXECUTED), SHARE)),
    ("offsets export", Row(("offsets", "export", SHARE), SHARE)),
    ("offsets delete", Row(("offsets", "delete", SHARE, "--topic", TOPIC, *EXECUTED), SHARE)),
    ("offsets clone", Row(("offsets", "clone", SHARE, NEW, *EXECUTED), SHARE, clone=NEW)),
    ("delete", Row(("delete", SHARE, *EXECUTED), SHARE)),
]
IDS = [f"{name} {row.group or ''}".rstrip() for name, row in VARIANTS]
EACH = 1 if FULL else 4
"""Of four commands `make interop` plays one, `make security` all."""
"""Needs depend on whether the group is empty, and on its protocol."""
ELSEWHERE = {
    "pipeline run": "tests/interop/test_pipeline_live.py has Spark; it reads as replay-log does",
    **dict.fromkeys(
        ("member register", "member unregister"),
        "no Kafka knows registered ids; tests/cli/test_member_registration.py asks the embedded cluster",
    ),
}
Ask = Callable[..., Ran]


class World:
    """A Kafka with a live and an empty group, and an administrator who gives bob rights."""

    def __init__(self, kafka: RealKafka) -> None:
        self.kafka = kafka
        self.admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        self.transport = SocketTransport(ConnectionSettings(parse_bootstrap(kafka.bootstrap)))
        self.kgroup = ClusterView(self.transport)

    def commit(self) -> None:
        """The empty groups as they are before each command, with an offset each."""
        at = {TopicPartition(TOPIC, 0): OffsetAndMetadata(0)}
        for group in (EMPTY, SHARE):
            codes, failed = store(ClusterView(self.transport), group, at, share=group == SHARE)
            assert not failed and set(codes.values()) == {0}

    def restore(self, command: str) -> None:
        """Undo what the command before may have done."""
        if command in ("delete", "upgrade execute", "upgrade run", "downgrade execute", "offsets clone"):
            for group in (EMPTY, NEW):
                self.admin.delete_consumer_groups([group])[group].exception()
        if command == "cluster create-topic":
            self.admin.delete_topics([MADE])[MADE].exception()
            eventually(lambda: MADE not in self.admin.list_topics(timeout=5).topics, what="the topic goes")
        if command == "cluster user remove":
            info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
            made = self.admin.alter_user_scram_credentials([UserScramCredentialUpsertion("eve", info, b"x")])
            made["eve"].result()
        self.commit()
        if command == "downgrade execute":
            convert_empty(self.kgroup, plan_migration(self.kgroup, EMPTY, "upgrade"))
        eventually(self.settled, what="the live groups are stable again")

    def settled(self) -> bool:
        groups = describe(self.kgroup, [LIVE, CLASSIC], offsets=False).groups
        return len(groups) == 2 and all(
            group.state == "Stable" and any(member.assignment for member in group.known_members)
            for group in groups
        )

    def give(self, lines: Sequence[str]) -> None:
        """Let bob have these rights and no others."""
        everything = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            BOB,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        for done in self.admin.delete_acls([everything]).values():
            done.result()
        wanted = [binding(line) for line in lines]
        for made in self.admin.create_acls(wanted).values() if wanted else ():
            made.result()
        eventually(lambda: self.acls(everything) == set(wanted), what="the rights are in force")

    def acls(self, of: Any) -> set[Any]:
        return set(self.admin.describe_acls(of).result())


def binding(line: str) -> Any:
    """The ACL that a printed line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bootstrap-server")
    parser.add_argument("--add", action="store_true", required=True)
    parser.add_argument("--allow-principal", required=True)
    parser.add_argument("--operation", required=True)
    parser.add_argument("--group")
    parser.add_argument("--topic")
    parser.add_argument("--cluster", action="store_const", const="kafka-cluster")
    tool, *words = shlex.split(line)
    assert tool == "kafka-acls"
    told = parser.parse_args(words)
    kind, name = next(
        (KINDS[f"--{flag}"], getattr(told, flag))
        for flag in ("group", "topic", "cluster")
        if getattr(told, flag)
    )
    operation = "".join(f"_{c}" if c.isupper() else c.upper() for c in told.operation).lstrip("_")
    return AclBinding(
        ResourceType[kind],
        name,
        ResourcePatternType.LITERAL,
        told.allow_principal,
        "*",
        AclOperation[operation],
        AclPermissionType.ALLOW,
    )


def reading(kafka: RealKafka, group: str, protocol: str) -> Callable[[], None]:
    """A consumer that reads the topic until what comes back is called."""
    settings = {"group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, **settings})
    consumer.subscribe([TOPIC])
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            consumer.poll(0.2)
        consumer.close()

    thread = threading.Thread(target=poll)
    thread.start()

    def end() -> None:
        done.set()
        thread.join()

    return end


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    require("java", "mvn")
    with (
        RealKafka(
            {**AUTHORIZED, **SHARED}, ("SASL_PLAINTEXT",), base=tmp_path_factory.mktemp("rights")
        ) as kafka,
        ExitStack() as end,
    ):
        world = World(kafka)
        for topic in (TOPIC, "other"):
            create_topic(world.kgroup, topic, 1)
        for group, protocol in ((LIVE, "consumer"), (CLASSIC, "classic")):
            end.callback(reading(kafka, group, protocol))
        end.callback(world.transport.close)
        eventually(world.settled, what="the live group reads")
        yield world


@pytest.fixture
def ask(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Ask:
    """Run a command line as bob, or as `user`, in a folder of its own."""
    move_in(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)

    def call(*argv: str, user: str = "bob") -> Ran:
        login = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": USERS[user],
        }
        settings = [part for key, value in login.items() for part in ("-X", f"{key}={value}")]
        return ran(capsys, *argv, "-b", world.kafka.address("SASL_PLAINTEXT"), *settings)

    return call


def test_every_command_of_the_table_is_played() -> None:
    assert ROWS.keys() | ELSEWHERE.keys() == COMMANDS.keys()


def files_for(name: str, ask: Ask) -> None:
    """What a command line reads."""
    if name == "offsets import":
        Path("exported.json").write_text(ask("offsets", "export", EMPTY, "-o", "json", user="alice").out)
    if name == "upgrade run":
        rules = "{observe: 0s, stuck_after: 5s}"
        Path("waves.yaml").write_text(f"waves: [{{groups: [{EMPTY}], rules: {rules}}}]\n")
    if name == "cluster user add":
        secret = Path("eve.txt")
        secret.write_text("eve-secret")
        secret.chmod(0o600)


def asked_for(ask: Ask, name: str, row: Row, **options: str) -> list[str]:
    """The lines that doctor prints for the command, for bob."""
    told = ask("doctor", *row.about, "--rights", "--for", name, "--principal", BOB, "-o", "json", **options)
    (command,) = told.data["commands"]
    return command["acls"]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("name", "row"), VARIANTS[::EACH], ids=IDS[::EACH])
def test_a_command_with_exactly_its_rights(name: str, row: Row, world: World, ask: Ask) -> None:
    world.give([])
    world.restore(name)
    files_for(name, ask)
    lines = asked_for(ask, name, row, user="alice")
    world.give(lines)
    numbers = itertools.count()

    def run() -> Ran:
        Path("waves.yaml.state.json").unlink(missing_ok=True)
        argv = tuple(f"captured-{next(numbers)}" if part == "captured" else part for part in row.argv)
        return ask(*argv)

    done = run()
    assert done.code == row.healthy, (lines, done.err, done.out[-500:])
    for missing in lines:
        world.restore(name)
        world.give([line for line in lines if line != missing])
        done = run()
        of = binding(missing)
        operation = missing.split("--operation ")[1].split()[0]
        assert done.code in row.lacking, (missing, done.code, done.err, done.out[-500:])
        kind = {"BROKER": "Cluster", "GROUP": "Group", "TOPIC": "Topic"}[of.restype.name]
        said = done.err + done.out
        # Where the right to every group is gone, the one that was asked about is what is hidden.
        groups = [f" {of.name}", *([f" {row.group}"] if of.name == "*" else [])]
        names = {"Cluster": [""], "Group": groups, "Topic": [f" {of.name}", " *"]}[kind]
        operations = (operation, BRINGS.get(operation, operation))
        rights = [f"{each} on {kind}{name}" for each in operations for name in names]
        assert any(right in said for right in rights), (missing, said)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", list(ROWS)[1::EACH])
def test_what_a_principal_without_rights_is_told_to_ask_for_is_enough(
    name: str, world: World, ask: Ask
) -> None:
    """It sees nothing, so it asks for more than the least, and for nothing that does not help."""
    row = ROWS[name]
    world.give([])
    world.restore(name)
    files_for(name, ask)
    told = ask("doctor", *row.about, "--rights", "--for", name, "-o", "json")
    (command,) = told.data["commands"]
    assert (told.code, command["usable"]) == (RIGHTS, False), told.err
    world.give(command["acls"])
    again = ask("doctor", *row.about, "--rights", "--for", name, "-o", "json")
    assert (again.code, again.data["commands"][0]["usable"]) == (OK, True), again.err
    argv = tuple("captured" if part == "captured" else part for part in row.argv)
    done = ask(*argv)
    assert done.code == row.healthy, (command["acls"], done.err)


def test_the_tool_takes_the_lines_as_they_are_printed(world: World, ask: Ask) -> None:
    world.give([])
    lines = asked_for(ask, "doctor", ROWS["doctor"], user="alice")
    for line in lines:
        words = shlex.split(line)
        world.kafka.tool("kafka-acls", *words[3:])
    assert ask("doctor", EMPTY).code == OK
