"""Every example of help and man, and every block of docs/, is run as it stands.

In a scratch folder with relative paths, on a cluster that holds what the examples name. What differs is where
the cluster is, which ports are free, and that commands without an end are interrupted once they have spoken.
README.md has a test of its own, and so has docs/pipeline.md: what needs Spark is not run here.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer import Context

from kgroup.cli.frame.lazy import CONTEXT_SETTINGS, walk
from kgroup.cli.frame.registry import COMMANDS
from kgroup.protocol import group_records as r
from kgroup.protocol.batches import LogRecord, encode_batch
from kgroup.runtime.cluster import Cluster
from kgroup.runtime.settings import STANDARD_AUTHORIZER
from tests.cli.conftest import Kgroup, Ran
from tests.cli.damage import INCIDENTS
from tests.cli.live import Client, served, served_with_coordinators
from tests.cli.logs import append
from tests.sampled import sampled

ROOT = Path(__file__).parents[2]
SAID = "broker:9092"
OWN, LEGACY = "127.0.0.1:9092", "127.0.0.1:9192"
DEAD_HOOK = "http://127.0.0.1:1/kafka"
NOT_HERE = re.compile(
    r"kgroup (pipeline (?!package)|demo|mcp|simulate --scenario examples/)|--zookeeper|pip install"
    r"|user add alice --local|--rest |(s3|hdfs)://"
)
"""What needs Spark, a process of its own for the cluster, ZooKeeper, a REST proxy, an S3 server, somebody who
types, a client of MCP (test_mcp.py), or is played by tests/simulation.

With ZooKeeper they are played by tests/interop/zookeeper, with REST by tests/unit/rest, with S3 by
tests/cli/test_storage.py.
"""
ENDLESS = re.compile(
    r"kgroup (watch (?!.*--until)|serve|member run|record|upgrade (watch|execute (?!.*--(no-watch|read-log)))"
    r"|capture (?!.*--once))"
)
"""Commands that go on until Ctrl-C; the way back ends at once, as `orders` is a classic group here."""
SHELL = re.compile(r"[|>~$\n]|&&")
CHANGES = re.compile(
    r"--execute|--for empty|execute |create-topic|--restore|--undo|context use"
    r"|capture|record|remove-members --plan|journal|cluster status|cluster user|cluster acl"
)
"""What leaves the world another one, or needs one of its own."""

SLOW = "kgroup watch orders --events --notify https://hooks.local/kafka"
ENDS = {
    "kgroup doctor orders --at 03:00 --files ./recording": 1,
    "kgroup lag orders --at 03:00 --files ./recording": 1,
    # There is no such pod.
    "kubectl logs orders-0 | kgroup explain -": 3,
    "kubectl logs orders-0 | kgroup explain - -b broker:9092": 3,
    # The verdict asked for: brokers do not take this pattern.
    "kgroup regex check '(?!test).*' --offline": 8,
    # Nobody takes the posts, and the interrupted watch says so.
    SLOW: 5,
    # Nobody is registered in this world.
    "kgroup member unregister orders --instance-id orders-4,orders-5": 3,
}
"""What ends with another code than 0 (130 where it is interrupted), and why it is right to."""

BEFORE = {
    "kgroup remove-members --plan": ["kgroup remove-members orders --host '*' --plan-out plan.json"],
    "kgroup offsets import orders.json": ["kgroup offsets export orders -o json > orders.json"],
    "kgroup delete --restore": ["kgroup delete old-group --export old-group.json --execute --yes"],
    "kgroup reset-offsets --undo": [
        "kgroup reset-offsets orders --topic orders --to-current --execute --reason 'to be taken back'"
    ],
    "kgroup journal": ["kgroup reset-offsets orders --topic orders --to-current --execute"] * 12,
    "kgroup cluster user list alice bob": [
        f"kgroup cluster user add {user} --password-file alice.txt -b broker:9092"
        for user in ("alice", "bob")
    ],
    **{
        f"kgroup cluster user {verb} --local ./data": [
            "kgroup cluster user add alice --password-file alice.txt --local ./data"
        ]
        for verb in ("list", "remove alice")
    },
    "kgroup member unregister orders --instance-id orders-5": [
        "kgroup member register orders --instance-id orders-4,orders-5 --execute"
    ],
    **{
        f"kgroup cluster user {verb} --local": [
            "kgroup cluster user add alice --password-file alice.txt --local"
        ]
        for verb in ("list", "remove alice")
    },
    "kgroup cluster user remove alice --mechanism": [
        "kgroup cluster user add alice --password-file alice.txt --mechanism SCRAM-SHA-256 -b broker:9092"
    ],
    "kgroup cluster acl remove --principal User:bob --execute": [
        "kgroup cluster acl add --principal User:bob --operation Read --topic orders -b broker:9092"
    ],
    "kgroup cluster status --local ./data": ["kgroup cluster create-topic t --local ./data"],
    "kgroup cluster status --local": ["kgroup cluster create-topic t --local"],
}
"""What must have happened before an example makes sense."""
ALONE = re.compile(
    r"--for empty|member run|serve|pay:|reset-offsets (orders|--undo)|offsets (import|delete)|journal"
    r"|offsets clone|old-group|upgrade execute orders --read"
)
"""Examples for a group whose readers are stopped."""


def lines_of_pages() -> Iterator[str]:
    """The commands of the blocks of docs/, indented ones too: of a shell block as a whole, else by line."""
    names = "|".join(COMMANDS)
    for page in sorted((ROOT / "docs").glob("*.md")):
        text = page.read_text("utf-8")
        yield from (line.strip() for line in re.findall(rf"^ {{4}}(kgroup (?:{names}) .*)$", text, re.M))
        for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
            if language == "sh":
                yield block.strip()
            elif not language:
                yield from (line for line in block.splitlines() if line.startswith("kgroup "))


def lines_of_runbooks() -> Iterator[str]:
    """The command in the head of each file of examples/, where test_examples.py does not run it."""
    for scenario in sorted((ROOT / "examples").glob("*.yaml")):
        yield scenario.read_text("utf-8").splitlines()[0].removeprefix("# ")


EXAMPLES = [line for command in walk() for line, _ in command.examples]
LINES = [
    line
    for line in dict.fromkeys([*EXAMPLES, *lines_of_pages(), *lines_of_runbooks()])
    if not NOT_HERE.search(line)
]


def of_orders(partition: Path) -> None:
    """A segment with commits of the group the pages are about, from before the times they name."""
    partition.mkdir()
    key = r.encode_key(r.OffsetCommitKey(group="orders", topic="orders", partition=0))
    batches = []
    for offset in range(5):
        when = 1_700_000_000_000 + 60_000 * offset
        value = r.encode_value(r.OffsetCommitValue(offset=offset, commit_timestamp=when))
        batches.append(encode_batch([LogRecord(key, value, timestamp_ms=when)], base_offset=offset))
    (partition / f"{0:020d}.log").write_bytes(b"".join(batches))


class World:
    """A cluster with the groups and topics the examples speak of, and a folder with the files they name."""

    def __init__(self, folder: Path, bootstrap: str, *, members: bool, legacy: str = LEGACY) -> None:
        self.folder, self.bootstrap, self.client = folder, bootstrap, Client(bootstrap)
        self.legacy = legacy
        self.stirring: dict[str, str] = {}
        hour = 3_600_000
        now = int(time.time() * 1000)
        for topic in ("orders", "pay", "old-orders"):
            self.client.create_topic(topic, 8)
            append(self.client, topic, 0, ["a", "b", "c"], [now - hours * hour for hours in (3, 2, 1)])
        for group in ("pay", "pay-a", "payments", "old-group", "test-a"):
            self.client.commit(group, "pay", {0: 3} | dict.fromkeys(range(1, 8), 0))
        self.client.commit("orders", "orders", {0: 3} | dict.fromkeys(range(1, 8), 0))
        self.client.commit("orders", "old-orders", {0: 3})
        if members:
            owned: dict[str | None, list[int]] = {
                "orders-1": [0, 1, 2],
                "orders-3": [3, 4, 5],
                "orders-7": [6, 7],
            }
            self.client.classic_group("orders", "orders", owned)
            self.client.classic_group("payments", "pay", {"payments-1": list(range(8))})
        shutil.copytree(INCIDENTS / "upgrade-and-back", folder / "backup")
        of_orders(folder / "backup" / "__consumer_offsets-8")
        shutil.copytree(ROOT / "examples", folder / "examples")
        (folder / "topics.txt").write_text("pay\norders\n")
        (folder / "gone.tsv").write_text("orders-1\t10.0.9.1\norders-7\t10.0.9.2\n")
        (folder / "waves.yaml").write_text("waves: [{groups: [old-group], rules: {observe: 0s}}]\n")
        for name in ("plan.csv", "p.csv"):
            (folder / name).write_text("orders,0,1\n")
        (folder / "admin.properties").write_text("security.protocol=PLAINTEXT\n")
        (folder / "server.properties").write_text("group.initial.rebalance.delay.ms=0\n")
        (folder / "alice.txt").write_text("alice-secret\n")
        (folder / "alice.txt").chmod(0o600)
        config = folder / "config" / "kgroup" / "config.yaml"
        config.parent.mkdir(parents=True)
        clusters = "".join(
            f"  {name}: {{bootstrap-servers: '{bootstrap}'}}\n" for name in ("prod", "staging")
        )
        config.write_text(
            f"current-context: staging\ncontexts:\n{clusters}  tls: {{bootstrap-servers: '{bootstrap}'}}\n"
        )

    @property
    def environment(self) -> dict[str, str]:
        """Where a person's files are: everything in the folder."""
        kinds = ("CONFIG", "DATA", "STATE", "CACHE")
        places = {f"XDG_{kind}_HOME": str(self.folder / kind.lower()) for kind in kinds}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**places, "HOME": str(self.folder), "PATH": path}

    def here(self, line: str) -> str:
        """The line with the addresses of this world."""
        if "--legacy " in line:
            line = line.replace(OWN, self.bootstrap).replace(LEGACY, self.legacy)
        line = line.replace("--waves waves.yaml", "--waves new-waves.yaml")
        line = line.replace("pwgen 20 1", "echo alice-secret")
        line = line.replace(SAID, self.bootstrap).replace("HOST:PORT", self.bootstrap)
        line = line.replace("https://hooks.local/kafka", DEAD_HOOK)
        # Neither fish nor the time for a large group is at hand.
        line = line.replace("fish | source", "fish | cat").replace(
            "--members 200 --partitions 400", "--members 8"
        )
        # Nobody comes back here, and nothing is written: time that is only waited for is cut.
        line = line.replace("--rate 10s", "--rate 50ms").replace(
            "--wait stable", "--wait stable --timeout 3s"
        )
        if " serve" in line:
            line = line.replace("--port 9092", "--port 0").replace("--metrics 9404", "--metrics 0")
            command = line.partition("#")[0]
            port = "" if "--port" in command else " --port 0"
            kept = "" if "--local" in command or "--memory" in command else " --local"
            line = line.replace(" serve", f" serve{port}{kept}", 1)
        return line

    def stir(self, number: int) -> None:
        """Something to be seen: a member comes to every group that is watched, or goes for a while."""
        for group in ("orders", "pay"):
            if number % 2:
                self.client.leave_for_now(group, self.stirring[group], "stirring")
            else:
                self.stirring[group] = self.client.consumer_member(group, group, "stirring")


def made(folder: Path, *, members: bool, legacy: bool = False, rules: bool = False) -> Iterator[World]:
    settings = {
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.migration.policy": "bidirectional",
        "offsets.retention.check.interval.ms": "86400000",
    }
    if rules:
        settings |= {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}
    cluster = Cluster(config=settings, offsets_partitions=4)
    with ExitStack() as stack:
        where: tuple[str, str]
        if legacy:
            where = stack.enter_context(served_with_coordinators(cluster))[:2]
        else:
            where = stack.enter_context(served(cluster)), LEGACY
        world = World(folder, where[0], members=members, legacy=where[1])
        yield world
        world.client.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The world of the examples that only look."""
    yield from made(tmp_path_factory.mktemp("shared"), members=True)


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The same with all readers stopped."""
    yield from made(tmp_path_factory.mktemp("idle"), members=False)


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The world of one example; this process is in its folder."""
    line: str = request.getfixturevalue("line")
    if CHANGES.search(line) or ENDLESS.match(line):
        members = not ALONE.search(line) and not line.startswith("kgroup watch")
        # A broker that is asked for its rules has some; the folder that a reader makes has none.
        legacy, rules = "--legacy 127" in line, "cluster acl" in line and "--local" not in line
        world = made(tmp_path, members=members, legacy=legacy, rules=rules)
    else:
        world = iter([request.getfixturevalue("idle" if ALONE.search(line) else "shared")])
    for here in world:
        monkeypatch.chdir(here.folder)
        for name, value in here.environment.items():
            monkeypatch.setenv(name, value)
        here.client.stay()
        yield here


def typed(line: str, world: World, kgroup: Kgroup) -> Ran:
    """The line as a person types it: plain ones are run in this process, the others by a shell."""
    if not SHELL.search(line):
        words = shlex.split(world.here(line), comments=True)
        assert words.pop(0) == "kgroup"
        return kgroup(*words)
    done = subprocess.run(
        ["bash", "-c", world.here(line)], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def interrupted(line: str, world: World) -> Ran:
    """A line without an end, interrupted when it has said something or written what it was told to."""
    out, err = world.folder / "said.out", world.folder / "said.err"
    command, _, target = world.here(line).partition(" > ")
    told = world.folder / target if target else out
    words = [sys.executable, "-m", "kgroup.cli.app", *shlex.split(command, comments=True)[1:]]
    with told.open("w") as stdout, err.open("w") as stderr:
        process = subprocess.Popen(words, stdout=stdout, stderr=stderr, stdin=subprocess.DEVNULL)
    try:
        number = 0
        while process.poll() is None and not told.stat().st_size + err.stat().st_size:
            if line.startswith("kgroup watch"):
                world.stir(number)
            number += 1
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        code = process.wait(300)
    finally:
        process.kill()
        process.wait()
    return Ran(code, told.read_text(), err.read_text())


@pytest.mark.parametrize("line", sampled(LINES, {*LINES} - {SLOW}, "the watch tries to post for 12 s"))
def test_a_command_of_the_pages_does_what_it_says(line: str, world: World, kgroup: Kgroup) -> None:
    """It is understood, ends as documented, and says something; nothing it says is a traceback."""
    for first in next((lines for start, lines in BEFORE.items() if line.startswith(start)), []):
        ran = typed(first, world, kgroup)
        assert ran.code == 0, (first, ran.err)
    endless = ENDLESS.match(line)
    ran = interrupted(line, world) if endless else typed(line, world, kgroup)
    assert "Traceback" not in ran.out + ran.err
    stopped = 0 if re.match("kgroup (serve|member|record)", line) else 130
    assert ran.code == ENDS.get(line, stopped if endless else 0), (ran.code, ran.out + ran.err)
    assert ran.out or ran.err or SHELL.search(line) or re.search("-q|ndjson|csv", line)


def test_the_config_file_of_the_page_is_one(config_file: Path, kgroup: Kgroup) -> None:
    """With a password in it, so for its owner's eyes only; and nobody is told the password."""
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S)
    config_file.write_text(text)
    config_file.chmod(0o644)
    assert kgroup("context", "list").code == 2
    config_file.chmod(0o600)
    listed = kgroup("context", "list", "-o", "name")
    assert (listed.code, listed.out.split()) == (0, ["laptop", "prod", "staging", "tls"])
    told = kgroup("context", "show", "tls")
    assert told.code == 0 and "secret" not in told.out and "SCRAM-SHA-512" in told.out


def test_with_no_cluster_named_the_page_says_what_is_said(kgroup: Kgroup) -> None:
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    (text,) = re.findall(r"^```text\n(.*?)^```$", page, re.M | re.S)
    ran = kgroup("list")
    assert (ran.code, ran.err) == (2, text)


def test_no_help_line_says_its_default_twice() -> None:
    for command in walk():
        context = Context(command, info_name=command.name, **CONTEXT_SETTINGS)
        for parameter in command.get_params(context):
            _, told = parameter.get_help_record(context) or ("", "")
            assert told.lower().count("default") < 2, (command.path, told)
