"""Share groups on real Kafkas and on kgroup's own broker: real members and tools, and kgroup beside them.

What kgroup reports and changes equals what kafka-share-groups does.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kgroup.history.raw import raw_rows
from kgroup.history.sources.logs import logs_of, segments_of, state_logs_of
from tests.own_home import move_in
from tests.ran import Ran, ran
from tests.sampled import FULL

from . import jvm, toolchain
from .conftest import KINDS, require
from .driver import Driver
from .jvm import java
from .kafka import SHARED
from .server import Server
from .tables import dumped_at, rows, unlike
from .waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
RELEASES = ("4.3.1", "4.4.0") if FULL else ("4.4.0",)
BROKERS = [f"{kind} {release}" for kind in ("kafka", "kgroup") for release in RELEASES]
RECORDS = 30
_numbers = itertools.count(1)
Ask = Callable[..., Ran]


@pytest.fixture(scope="module", params=BROKERS)
def broker(request: pytest.FixtureRequest) -> Iterator[Server]:
    require("java", "mvn")
    kind, version = request.param.split()
    broker = KINDS[kind](SHARED)
    broker.kafka = version
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
    broker: Server, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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

    broker: Server
    driver: Driver
    topic: str
    group: str

    def prepare(self, records: int = RECORDS) -> None:
        """Make the topic with its records; the group is to read it from its beginning."""
        self.broker.tool("kafka-topics", "--create", "--topic", self.topic, "--partitions", "1")
        if records:
            self.produce(records)
        entity = ("--alter", "--entity-type", "groups", "--entity-name", self.group)
        self.broker.tool("kafka-configs", *entity, "--add-config", "share.auto.offset.reset=earliest")

    def produce(self, records: int) -> None:
        text = "".join(f"r{n}\n" for n in range(records))
        self.broker.tool("kafka-console-producer", "--topic", self.topic, stdin=text)

    def open(self, name: str, at_most: int = RECORDS, mode: str = "batch_optimized") -> None:
        """Start a member; with mode record_limit it acquires `at_most` records at a time, and not batches."""
        where = {"bootstrap": self.broker.bootstrap, "group": self.group, "topic": self.topic}
        self.driver.call("share.open", name=name, at_most=at_most, mode=mode, **where)

    def poll(self, name: str) -> dict[int, int]:
        """The records acquired, with their delivery counts."""

        def acquired() -> list[list[int]]:
            found: list[list[int]] = self.driver.call("share.poll", name=name, ms=1000)
            return found

        return dict(map(tuple, eventually(acquired, what="records are acquired")))  # type: ignore[arg-type]

    def done(self, name: str, offsets: list[int], how: str = "ACCEPT") -> None:
        assert self.driver.call("share.acknowledge", name=name, offsets=offsets, type=how) == []

    def half_done(self) -> None:
        """A member acknowledges 10 to 14 and gives back the others: five records beyond 0 are done."""
        self.open("first")
        acquired = self.poll("first").keys()
        self.done("first", [10, 11, 12, 13, 14])
        self.done("first", sorted(acquired - {10, 11, 12, 13, 14}), "RELEASE")
        self.driver.call("share.close", name="first")
        eventually(lambda: self.lag() == str(RECORDS - 5), what="the broker knows what is done")

    def tool(self, *args: str, check: bool = True) -> str:
        return self.broker.tool("kafka-share-groups", *args, "--group", self.group, check=check).stdout

    def starts(self) -> list[dict[str, str]]:
        """What Kafka's own tool shows of each partition."""
        return rows(self.tool("--describe", "--offsets", "--verbose"))

    def lag(self) -> str | None:
        return next((row["LAG"] for row in self.starts()), None)


@pytest.fixture
def scene(broker: Server, driver: Driver) -> Scene:
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
    eventually(lambda: scene.lag() == str(RECORDS - 10), what="the broker counts what is done")
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


def console(scene: Scene, records: int, *how: str) -> list[str]:
    """What Kafka's console consumer of share groups reads."""
    until = ("--max-messages", str(records), "--timeout-ms", "60000")
    where = ("--topic", scene.topic, "--group", scene.group)
    return scene.broker.tool("kafka-console-share-consumer", *where, *until, *how).stdout.split()


def test_the_console_consumer_reads_releases_and_rejects(scene: Scene) -> None:
    every = [f"r{n}" for n in range(RECORDS)]
    assert console(scene, RECORDS, "--release") == every
    delivered = ("--formatter-property", "print.delivery=true")
    assert console(scene, 10, "--reject", *delivered)[1::2] == every[:10]
    assert console(scene, 20) == every[10:]
    eventually(lambda: scene.lag() == "0", what="the broker knows that all is done")


def test_two_members_get_each_record_once(scene: Scene) -> None:
    """Of one partition: each takes ten at a time, and what a member leaves behind goes to the other."""
    scene.open("one", 10, "record_limit")
    scene.open("two", 10, "record_limit")
    first, second = scene.poll("one"), scene.poll("two")
    assert not first.keys() & second.keys()
    scene.done("one", list(first))
    scene.driver.call("share.close", name="two")
    got = dict.fromkeys(first, 1)
    while len(got) < RECORDS:
        acquired = scene.poll("one")
        scene.done("one", list(acquired))
        got |= acquired
    # A member that closes has not failed at what it was given, but it was delivered.
    assert got == {n: 2 if n in second else 1 for n in range(RECORDS)}
    scene.driver.call("share.close", name="one")


def test_what_is_released_too_often_is_not_delivered_again(scene: Scene) -> None:
    entity = ("--alter", "--entity-type", "groups", "--entity-name", scene.group)
    scene.broker.tool("kafka-configs", *entity, "--add-config", "share.delivery.count.limit=2")
    scene.open("one")
    for delivery in (1, 2):
        acquired = scene.poll("one")
        assert acquired == dict.fromkeys(range(RECORDS), delivery)
        scene.done("one", list(acquired), "RELEASE")
    eventually(lambda: scene.lag() == "0", what="the broker archives them")
    scene.driver.call("share.close", name="one")


def test_a_lock_that_ends_gives_the_records_to_another(scene: Scene) -> None:
    entity = ("--alter", "--entity-type", "groups", "--entity-name", scene.group)
    scene.broker.tool("kafka-configs", *entity, "--add-config", "share.record.lock.duration.ms=15000")
    scene.open("slow", 5, "record_limit")
    kept = scene.poll("slow")
    scene.open("quick")
    got = scene.poll("quick")
    scene.done("quick", list(got))
    assert sorted(got) == sorted(set(range(RECORDS)) - kept.keys())
    late: dict[int, int] = {}
    while len(late) < len(kept):  # Kafka's locks end one by one
        again = scene.poll("quick")
        (refused,) = scene.driver.call("share.acknowledge", name="slow", offsets=list(again), type="ACCEPT")
        assert "InvalidRecordState" in refused
        scene.done("quick", list(again))
        late |= again
    assert late == dict.fromkeys(kept, 2)
    eventually(lambda: scene.lag() == "0", what="the broker knows that all is done")
    scene.driver.call("share.close", name="slow")
    scene.driver.call("share.close", name="quick")


def test_members_go_on_after_the_broker_was_killed(scene: Scene) -> None:
    scene.open("one", 10, "record_limit")
    first = scene.poll("one")
    scene.done("one", list(first))
    second = scene.poll("one")
    scene.broker.kill9()
    scene.broker.start()
    lost = scene.driver.call("share.acknowledge", name="one", offsets=list(second), type="ACCEPT")
    assert lost != []
    # What was acquired is available again; what was accepted is not.
    got: dict[int, int] = {}
    while len(got) < RECORDS - len(first):
        acquired = scene.poll("one")
        refused = scene.driver.call("share.acknowledge", name="one", offsets=list(acquired), type="ACCEPT")
        got |= {n: count for n, count in acquired.items() if not refused}
    assert not got.keys() & first.keys()
    assert second.keys() <= got.keys()
    scene.driver.call("share.close", name="one")


def test_the_history_is_what_the_members_did(scene: Scene, ask: Ask, tmp_path: Path) -> None:
    """Live, captured and as the cluster says it now: members, start offsets, releases, what was given up."""
    scene.open("first")
    acquired = scene.poll("first").keys()
    scene.done("first", [3], "REJECT")
    scene.done("first", sorted(acquired - {3, 4, 5}))
    scene.done("first", [4, 5], "RELEASE")
    verified = ask("replay-log", scene.group, "--verify")
    (verdict,) = verified.data["groups"]
    assert (verified.code, verdict["verdict"], verdict["not_compared"]) == (0, "same", []), verdict
    assert scene.poll("first") == {4: 2, 5: 2}
    scene.done("first", [4, 5])
    scene.driver.call("share.close", name="first")
    told = ask("replay-log", scene.group)
    assert told.code == 0, told.err
    of: dict[str, list[Any]] = {}
    for event in told.data["events"]:
        pieces = [(p["first_offset"], p["last_offset"], p["deliveries"]) for p in event["records"]]
        of.setdefault(event["event"], []).extend(pieces or [event["detail"]])
    assert of["records-archived"] == [(3, 3, 1)] and of["records-released"] == [(4, 5, 1)]
    done = {n: times for first, last, times in of["records-acknowledged"] for n in range(first, last + 1)}
    assert done == {n: 2 if n in (4, 5) else 1 for n in range(RECORDS) if n != 3}
    assert len(of["member-joined"]) == len(of["member-left-or-expired"]) == 1
    assert ask("replay-log", scene.group, "--verify").code == 0
    assert ask("capture", "--once", "--out", str(tmp_path), "-o", "table").code == 0
    filed = ran_on_files(ask, scene.group, tmp_path)
    assert filed == [event["detail"] for event in told.data["events"]]
    (row,) = ask("replay-log", scene.group, "--at", "1000000").data["groups"][0]["offsets"]
    assert str(row["committed_offset"]) == scene.starts()[0]["START-OFFSET"]


def ran_on_files(ask: Ask, group: str, folder: Path) -> list[str]:
    """What is told of a group from a capture."""
    told = ask("replay-log", group, "--files", str(folder))
    assert told.code == 0, told.err
    return [event["detail"] for event in told.data["events"]]


def test_raw_records_are_those_of_kafkas_dump_tool(scene: Scene, ask: Ask) -> None:
    """Record by record, of both topics, with every other group that these tests leave in them."""
    scene.half_done()
    scene.tool("--reset-offsets", "--to-latest", "--topic", scene.topic, "--execute")
    theirs: dict[tuple[str, int, int], tuple[dict[str, Any], dict[str, Any] | None]] = {}
    for segment in sorted(scene.broker.data_dir.glob("__*-*/*.log")):
        topic, _, partition = segment.parent.name.rpartition("-")
        decoder = {"__share_group_state": "--share-group-state-decoder"}.get(topic, "--offsets-decoder")
        if topic == "__cluster_metadata":
            continue
        dumped = jvm.tool("kafka-dump-log", decoder, "--print-data-log", "--files", str(segment)).stdout
        for offset, key, value in dumped_at(dumped):
            theirs[topic, int(partition), offset] = key, value
    # From the same files, without names of topics, which Kafka's tool does not show.
    look = segments_of([scene.broker.data_dir])
    logs = [("__consumer_offsets", log) for log in logs_of(look)]
    logs += [("__share_group_state", log) for log in state_logs_of(look)]
    read = (row for topic, log in logs for row in raw_rows(log, topic=topic))
    ours = {(row["topic"], row["partition"], row["offset"]): row for row in read}
    assert ours.keys() == theirs.keys()
    shown = ask("replay-log", "--raw", "-o", "ndjson")
    live = [json.loads(line) for line in shown.out.splitlines()]
    assert shown.code == 0 and [(r["topic"], r["partition"], r["offset"]) for r in live] == [*ours]
    assert {topic for topic, *_ in ours} == {"__consumer_offsets", "__share_group_state"}
    for place, row in ours.items():
        key, value = theirs[place]
        assert row["type"] == int(key["type"])
        assert list(unlike(row["key"], key["data"])) == [], place
        assert (row["value"] is None) == (value is None), place
        if value is not None:
            assert row["value_version"] == int(value["version"])
            assert list(unlike(row["value"], value["data"])) == [], place


def test_doctor_finds_what_can_be_seen(scene: Scene, ask: Ask) -> None:
    scene.half_done()
    (checkup,) = ask("doctor", scene.group).data["groups"]
    findings = {found["code"]: found for found in checkup["findings"]}
    assert checkup["healthy"] is True
    assert {"KG118", "KG119", "KG318"} <= findings.keys() and not {"KG316", "KG317"} & findings.keys()
    assert findings["KG318"]["message"].startswith(f"records came back {RECORDS - 5} times since ")
    scene.open("idle", 5)
    scene.poll("idle")
    (checkup,) = ask("doctor", scene.group).data["groups"]
    assert "KG314" not in {found["code"] for found in checkup["findings"]}
    scene.driver.call("share.close", name="idle")


def test_doctor_tells_slow_members_from_those_that_finish_nothing(
    scene: Scene, broker: Server, driver: Driver, ask: Ask
) -> None:
    """Each finishes one record: one has the next for 20 s, one for longer than its lock, one fails on it."""
    scenes = {"slow": scene}
    for name in ("hung", "failing"):
        number = next(_numbers)
        scenes[name] = Scene(broker, driver, f"orders-{number}", f"queue-{number}")
        scenes[name].prepare()
    entity = ("--alter", "--entity-type", "groups", "--entity-name", scene.group)
    broker.tool("kafka-configs", *entity, "--add-config", "share.record.lock.duration.ms=60000")
    for name, each in scenes.items():
        each.open(name, 1, "record_limit")
        each.done(name, [*each.poll(name)])
        each.poll(name)
    for _ in range(3):
        scenes["failing"].done("failing", [1], "RELEASE")
        scenes["failing"].poll("failing")
    time.sleep(20)

    def checked(name: str) -> tuple[str, set[tuple[str, str]]]:
        (checkup,) = ask("doctor", scenes[name].group).data["groups"]
        stalled = {(f["code"], f["severity"]) for f in checkup["findings"] if f["code"] == "KG314"}
        return checkup["verdict"], stalled

    assert checked("slow") == ("healthy", set())
    assert checked("failing") == ("sick", {("KG314", "error")})
    eventually(lambda: checked("hung") == ("healthy", {("KG314", "warn")}), what="it is suspected")
    for name in scenes:
        driver.call("share.close", name=name)


def test_doctor_finds_what_was_given_up(scene: Scene, ask: Ask) -> None:
    """5 is rejected, 7 released until the limit: no broker reports it, the log of deliveries has it."""
    entity = ("--alter", "--entity-type", "groups", "--entity-name", scene.group)
    scene.broker.tool("kafka-configs", *entity, "--add-config", "share.delivery.count.limit=2")
    scene.open("one")
    acquired = scene.poll("one").keys()
    scene.done("one", [5], "REJECT")
    scene.done("one", [7], "RELEASE")
    scene.done("one", sorted(acquired - {5, 7}))
    assert scene.poll("one") == {7: 2}
    scene.done("one", [7], "RELEASE")
    eventually(lambda: scene.lag() == "0", what="the broker archives it")
    (checkup,) = ask("doctor", scene.group).data["groups"]
    findings = {found["code"]: found for found in checkup["findings"]}
    assert findings["KG316"]["message"].endswith("at the limit of 2 deliveries")
    assert "given up after 2 deliveries: 7 " in findings["KG316"]["evidence"][0]
    assert "given up after 1 delivery: 5 " in findings["KG317"]["evidence"][0]
    scene.driver.call("share.close", name="one")
