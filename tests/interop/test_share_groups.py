"""Share groups on a real Kafka: what kgroup reports and changes equals what kafka-share-groups does."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_release.release import Release
from tests.own_home import move_in
from tests.ran import Ran, ran

from . import toolchain
from .conftest import require
from .driver import Driver
from .jvm import LIGHT_JVM, java
from .kafka import SHARED, RealKafka
from .tables import rows
from .waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
VERSIONS = ("4.3.1", "4.4.0")
RECORDS = 30
_numbers = itertools.count(1)
Ask = Callable[..., Ran]


class Broker(RealKafka):
    """A Kafka of one release; the tools that judge are those of 4.3.1."""

    version = VERSIONS[0]

    def command(self) -> list[str]:
        if self.version == VERSIONS[0]:
            return super().command()
        # A release's own jars have no logger, and the line that says it serves is logged.
        (logger,) = toolchain.kafka_jars().glob("slf4j-simple-*.jar")
        jars = f"{Release(self.version).jars}/*:{logger}"
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
        jvm = (f"-Xmx{self.heap}", *LIGHT_JVM, level)
        return java("kafka.Kafka", str(self._properties_file), jvm=jvm, classpath=jars)


@pytest.fixture(scope="module", params=VERSIONS)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    require("java", "mvn")
    broker = Broker(SHARED)
    broker.version = request.param
    with broker:
        yield broker


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    require("java", "mvn")
    command = java("kgroup.interop.Driver", classpath=toolchain.driver_classpath())
    running = Driver(command, tmp_path_factory.mktemp("share-driver") / "stderr.log")
    yield running
    running.close()


@pytest.fixture
def ask(
    broker: Broker, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Ask:
    """Run a command line of kgroup on the broker, with a journal of its own; JSON unless -o is given."""
    move_in(monkeypatch, tmp_path)

    def call(*argv: str) -> Ran:
        form = () if "-o" in argv else ("-o", "json")
        return ran(capsys, *argv, *form, "-b", broker.bootstrap)

    return call


@dataclass
class Scene:
    """A topic of one partition with records, and a share group that reads it from its beginning."""

    broker: Broker
    driver: Driver
    topic: str
    group: str

    def prepare(self) -> None:
        """Make the topic with its records; the group is to read it from its beginning."""
        self.broker.tool("kafka-topics", "--create", "--topic", self.topic, "--partitions", "1")
        text = "".join(f"r{n}\n" for n in range(RECORDS))
        self.broker.tool("kafka-console-producer", "--topic", self.topic, stdin=text)
        entity = ("--alter", "--entity-type", "groups", "--entity-name", self.group)
        self.broker.tool("kafka-configs", *entity, "--add-config", "share.auto.offset.reset=earliest")

    def open(self, name: str, at_most: int = RECORDS) -> None:
        where = {"bootstrap": self.broker.bootstrap, "group": self.group, "topic": self.topic}
        self.driver.call("share.open", name=name, at_most=at_most, **where)

    def poll(self, name: str) -> dict[int, int]:
        """The records acquired, with their delivery counts."""

        def acquired() -> list[list[int]]:
            found: list[list[int]] = self.driver.call("share.poll", name=name, ms=1000)
            return found

        return dict(map(tuple, eventually(acquired, 90, "records are acquired")))  # type: ignore[arg-type]

    def done(self, name: str, offsets: list[int], how: str = "ACCEPT") -> None:
        assert self.driver.call("share.acknowledge", name=name, offsets=offsets, type=how) == []

    def half_done(self) -> None:
        """A member acknowledges 10 to 14 and gives back the others: five records beyond 0 are done."""
        self.open("first")
        acquired = self.poll("first").keys()
        self.done("first", [10, 11, 12, 13, 14])
        self.done("first", sorted(acquired - {10, 11, 12, 13, 14}), "RELEASE")
        self.driver.call("share.close", name="first")
        eventually(lambda: self.lag() == str(RECORDS - 5), 60, "the broker knows what is done")

    def tool(self, *args: str, check: bool = True) -> str:
        return self.broker.tool("kafka-share-groups", *args, "--group", self.group, check=check).stdout

    def starts(self) -> list[dict[str, str]]:
        """What Kafka's own tool shows of each partition."""
        return rows(self.tool("--describe", "--offsets", "--verbose"))

    def lag(self) -> str | None:
        return next((row["LAG"] for row in self.starts()), None)


@pytest.fixture
def scene(broker: Broker, driver: Driver) -> Scene:
    number = next(_numbers)
    made = Scene(broker, driver, f"orders-{number}", f"queue-{number}")
    made.prepare()
    return made


def told(cell: object) -> str:
    """A value of kgroup's JSON as Kafka's tool prints it."""
    return "-" if cell is None else str(cell)


def same_offsets(scene: Scene, group: dict[str, Any]) -> None:
    mine = [
        (
            r["topic"],
            str(r["partition"]),
            told(r["leader_epoch"]),
            told(r["committed_offset"]),
            told(r["lag"]),
        )
        for r in group["offsets"]
    ]
    assert mine == [
        (r["TOPIC"], r["PARTITION"], r["LEADER-EPOCH"], r["START-OFFSET"], r["LAG"]) for r in scene.starts()
    ]


def test_describe_and_lag_equal_kafkas_tool(scene: Scene, ask: Ask) -> None:
    scene.open("first", 10)
    scene.poll("first")
    fresh = ask("describe", scene.group)
    (group,) = fresh.data["groups"]
    # Nothing is acknowledged, so no start offset is stored: unknown, and not 0.
    assert (group["offsets"][0]["committed_offset"], group["total_lag"]) == (None, None)
    same_offsets(scene, group)
    (member,) = rows(scene.tool("--describe", "--members", "--verbose"))
    (mine,) = group["members"]
    assert (mine["member_id"], mine["client_id"], str(mine["member_epoch"])) == (
        member["CONSUMER-ID"],
        member["CLIENT-ID"],
        member["MEMBER-EPOCH"],
    )
    assert mine["host"] == member["HOST"].removeprefix("/")
    assert [f"{each['topic']}:{each['partitions'][0]}" for each in mine["assignment"]] == [
        member["ASSIGNMENT"]
    ]
    (state,) = rows(scene.tool("--describe", "--state", "--verbose"))
    assert (group["state"], str(group["group_epoch"]), str(group["assignment_epoch"])) == (
        state["STATE"],
        state["GROUP-EPOCH"],
        state["ASSIGNMENT-EPOCH"],
    )
    scene.done("first", list(range(10)))
    eventually(lambda: scene.lag() == str(RECORDS - 10), 60, "the broker counts what is done")
    (group,) = ask("describe", scene.group).data["groups"]
    same_offsets(scene, group)
    # What is stored moves with the next acknowledgement only; the lag counts what is done beyond it.
    assert (group["offsets"][0]["committed_offset"], group["total_lag"]) == (0, RECORDS - 10)
    (late,) = ask("lag", scene.group, "--time").data["groups"]
    # Which record is the oldest that waits is not known, nor said.
    assert late["max_time_lag_ms"] is None or late["time_lag_at_most_ms"] is None
    assert 0 < late["time_lag_at_least_ms"] <= (late["time_lag_at_most_ms"] or late["max_time_lag_ms"])
    assert ask("lag", scene.group, "--fail-above", "1h").code == 0
    assert ask("lag", scene.group, "--fail-above", "19").code == 8
    assert ask("lag", scene.group, "--fail-above", "20").code == 0
    listed = ask("list", "--type", "share", "--topic", scene.topic).data["groups"]
    assert [each["group_id"] for each in listed] == [scene.group]
    refused = ask("reset-offsets", scene.group, "--all-topics", "--to-earliest", "--execute", "--yes")
    assert refused.code == 4
    scene.driver.call("share.close", name="first")


@pytest.mark.parametrize("where", ["--to-earliest", "--to-latest"])
def test_a_reset_is_the_one_of_kafkas_tool_and_is_undone(scene: Scene, ask: Ask, where: str) -> None:
    scene.half_done()
    before = scene.starts()
    asked = ("--reset-offsets", where, "--topic", scene.topic)
    (plan,) = rows(scene.tool(*asked, "--dry-run"))
    mine = ask("reset-offsets", scene.group, "--topic", scene.topic, where)
    assert [str(item["new_offset"]) for item in mine.data["items"]] == [plan["NEW-OFFSET"]]
    assert "up to 5 records beyond its start offsets" in mine.data["groups"][0]["caution"]
    assert ask("reset-offsets", scene.group, "--all-topics", where, "--execute", "--yes").code == 0
    assert [row["START-OFFSET"] for row in scene.starts()] == [plan["NEW-OFFSET"]]
    assert ask("reset-offsets", "--undo", "LAST", "--execute", "--yes").code == 0
    assert [r["START-OFFSET"] for r in scene.starts()] == [r["START-OFFSET"] for r in before]


def test_a_deleted_group_is_restored_as_its_plan_said(scene: Scene, ask: Ask) -> None:
    """Its consumers get every record that was not done, and of the others no more than the plan announced."""
    scene.half_done()
    (item,) = ask("delete", scene.group).data["items"]
    assert "up to 5 records beyond its start offsets" in item["effect"]
    assert ask("delete", scene.group, "--execute", "--yes").code == 0
    assert scene.group not in scene.broker.tool("kafka-share-groups", "--list").stdout.split()
    assert ask("reset-offsets", "--undo", "LAST", "--execute", "--yes").code == 0
    assert [(r["START-OFFSET"], r["LAG"]) for r in scene.starts()] == [("0", str(RECORDS))]
    scene.open("second")
    got: dict[int, int] = {}
    while len(got) < RECORDS:
        acquired = scene.poll("second")
        scene.done("second", list(acquired))
        got |= acquired
    # Delivery counts begin anew, as the plan said.
    assert got == dict.fromkeys(range(RECORDS), 1)
    scene.driver.call("share.close", name="second")


def test_start_offsets_are_deleted_exported_and_cloned(scene: Scene, ask: Ask, tmp_path: Path) -> None:
    scene.half_done()
    copy = Scene(scene.broker, scene.driver, scene.topic, f"{scene.group}-copy")
    assert ask("offsets", "clone", scene.group, copy.group, "--execute", "--yes").code == 0
    assert [(r["START-OFFSET"], r["LAG"]) for r in copy.starts()] == [("0", str(RECORDS))]
    deleted = ask("offsets", "delete", copy.group, "--topic", copy.topic, "--execute", "--yes")
    assert deleted.code == 0, deleted.err
    assert copy.starts() == []
    assert ask("reset-offsets", "--undo", "LAST", "--execute", "--yes").code == 0
    assert [row["START-OFFSET"] for row in copy.starts()] == ["0"]
    kept = tmp_path / "kept.json"
    assert ask("delete", copy.group, "--export", str(kept), "--execute", "--yes").code == 0
    assert ask("delete", "--restore", str(kept), "--execute", "--yes").code == 0
    assert copy.group in scene.broker.tool("kafka-share-groups", "--list").stdout.split()
    assert [row["START-OFFSET"] for row in copy.starts()] == ["0"]


def test_doctor_finds_what_can_be_seen(scene: Scene, ask: Ask) -> None:
    scene.half_done()
    (checkup,) = ask("doctor", scene.group, "--without", "history").data["groups"]
    assert {"KG118", "KG119"} <= {found["code"] for found in checkup["findings"]}
    scene.open("idle", 5)
    scene.poll("idle")
    (checkup,) = ask("doctor", scene.group, "--without", "history").data["groups"]
    assert "KG314" in {found["code"] for found in checkup["findings"]}
    scene.driver.call("share.close", name="idle")
