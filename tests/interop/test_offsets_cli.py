"""Offsets moved by kgroup: the plan equals that of Kafka's tool, and an undo gives back what was."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kgroup.admin.change.committing import forget
from kgroup.admin.change.offset_plans import look
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.tree import run
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.domain import OffsetAndMetadata, TopicPartition
from kgroup.errors import ErrorCode
from tests.own_home import move_in

from .conftest import Case
from .driver import Client, settle
from .tables import rows
from .waiting import eventually

pytestmark = pytest.mark.interop
HOUR_MS = 3_600_000
Cli = Callable[..., tuple[int, str, str]]
CommittedOffsets = dict[TopicPartition, Any]


@pytest.fixture
def cli(
    case: Case, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Cli:
    """Runs a command line of kgroup on the server, with a journal of its own."""
    move_in(monkeypatch, tmp_path)

    def call(*argv: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([*argv, "-b", case.server.bootstrap])
        return code, *capsys.readouterr()

    return call


class Log:
    """The server by its protocol: records with times of their own, offsets in full."""

    def __init__(self, bootstrap: str) -> None:
        from kgroup.admin.discovery import ClusterView

        self.transport = SocketTransport(ConnectionSettings(parse_bootstrap(bootstrap)))
        self.cluster = ClusterView(self.transport)

    def append(self, topic: str, partition: int, times: list[int]) -> None:
        from kgroup.protocol.batches import encode_batch
        from kgroup.protocol.log_records import LogRecord
        from kgroup.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

        records = encode_batch([LogRecord(None, b"x", (), when) for when in times])
        data = (PartitionProduceData(index=partition, records=records),)
        request = ProduceRequest(
            acks=-1, timeout_ms=10_000, topic_data=(TopicProduceData(name=topic, partition_data=data),)
        )
        # A new topic's broker may still be on its way to lead it.
        eventually(lambda: self._codes(request) == {0}, what=f"{topic}-{partition} takes records")

    def _codes(self, request: Any) -> set[int]:
        answer: Any = self.transport.request(None, request, max_version=12)
        return {p.error_code for t in answer.responses for p in t.partition_responses}

    def commit(self, group: str, rows: dict[TopicPartition, OffsetAndMetadata]) -> None:
        from kgroup.admin.change.committing import store

        codes, error = store(self.cluster, group, rows)
        assert (set(codes.values()), error) == ({0}, None)

    def committed(self, group: str) -> CommittedOffsets:
        found = look(self.cluster, [group])[group]
        assert found.error is None
        return dict(found.committed)


@pytest.fixture
def log(case: Case) -> Iterator[Log]:
    made = Log(case.server.bootstrap)
    yield made
    made.transport.close()


@pytest.fixture
def topic(case: Case, log: Log) -> str:
    """Ten records an hour apart in partition 0, five in 1, none in 2 and 3; offsets in 0, 1 and 2."""
    name = case.topic()
    now = int(time.time() * 1000)
    log.append(name, 0, [now - (10 - n) * HOUR_MS + 60_000 for n in range(10)])
    log.append(name, 1, [now - 2 * HOUR_MS] * 5)
    log.commit(
        case.group,
        {
            TopicPartition(name, 0): OffsetAndMetadata(4, 0, "mine"),
            TopicPartition(name, 1): OffsetAndMetadata(5, -1, ""),
            TopicPartition(name, 2): OffsetAndMetadata(0, 0, "ä"),
        },
    )
    return name


def kafkas_plan(case: Case, *spec: str) -> set[tuple[str, ...]]:
    done = case.server.tool(
        "kafka-consumer-groups", "--reset-offsets", "--group", case.group, *spec, "--dry-run", "--export"
    )
    rows = [row for row in csv.reader(done.stdout.splitlines()) if len(row) == 3 and row[2].isdigit()]
    return {tuple(row) for row in rows}


def our_plan(cli: Cli, case: Case, *spec: str) -> set[tuple[str, ...]]:
    code, out, err = cli("reset-offsets", case.group, *spec, "-o", "csv", "--no-headers")
    assert code == 0, err
    return {tuple(row) for row in csv.reader(out.splitlines())}


SPECS = {
    "earliest": ["--to-earliest"],
    "latest": ["--to-latest"],
    "current": ["--to-current"],
    "offset": ["--to-offset", "3"],
    "offset-beyond": ["--to-offset", "300"],
    "shift": ["--shift-by", "-2"],
    "shift-beyond": ["--shift-by", "100"],
    "duration": ["--by-duration", "PT3H30M"],
    "duration-days": ["--by-duration", "P1DT1H"],
    "duration-short": ["--by-duration", "PT1S"],
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_same_plan_as_kafkas_tool(case: Case, cli: Cli, topic: str, spec: list[str]) -> None:
    """Committed partitions, a whole topic (also what is not committed), and some partitions of it."""
    committed = ["--all-topics"]
    scopes = [committed, ["--topic", topic], ["--topic", f"{topic}:0,3"]]
    for scope in [committed] if spec[0] == "--shift-by" else scopes:
        expected = kafkas_plan(case, *scope, *spec)
        assert expected, "the tool printed no plan"
        assert our_plan(cli, case, *scope, *spec) == expected


@pytest.mark.parametrize("zone", ["", "Z", "+02:00"])
def test_same_plan_for_a_datetime(case: Case, cli: Cli, topic: str, zone: str) -> None:
    then = time.time() - 5.5 * 3600 + (7200 if zone == "+02:00" else 0)
    text = time.strftime("%Y-%m-%dT%H:%M:%S.500", time.gmtime(then)) + zone
    spec = ("--topic", topic, "--to-datetime", text)
    plan = our_plan(cli, case, *spec)
    assert plan == kafkas_plan(case, *spec)
    assert (topic, "0", "5") in plan


def test_plans_in_files_are_exchanged_with_kafkas_tool(
    case: Case, cli: Cli, log: Log, topic: str, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"
    scope = ("--topic", topic, "--to-offset", "2")
    ours.write_text(cli("reset-offsets", case.group, *scope, "-o", "csv", "--no-headers")[1])
    expected = kafkas_plan(case, *scope)
    assert kafkas_plan(case, "--from-file", str(ours)) == expected
    theirs.write_text("".join(",".join(row) + "\n" for row in sorted(expected)))
    assert our_plan(cli, case, "--from-file", str(theirs)) == expected
    assert cli("reset-offsets", case.group, "--from-file", str(theirs), "--execute")[0] == 0
    assert {p.partition: at.offset for p, at in log.committed(case.group).items()} == {0: 2, 1: 2, 2: 0, 3: 0}


def test_several_groups(case: Case, cli: Cli, log: Log, topic: str) -> None:
    other = f"{case.group}-b"
    log.commit(other, {TopicPartition(topic, 1): OffsetAndMetadata(1)})
    done = case.server.tool(
        *("kafka-consumer-groups", "--reset-offsets", "--group", case.group, "--group", other),
        *("--all-topics", "--to-latest", "--dry-run", "--export"),
    )
    expected = {tuple(row) for row in csv.reader(done.stdout.splitlines()) if len(row) == 4}
    argv = ("--all-topics", "--to-latest", "-o", "csv", "--no-headers")
    out = cli("reset-offsets", f"{case.group}*", *argv)[1]
    assert {tuple(row) for row in csv.reader(out.splitlines())} == expected
    assert len(expected) == 4


@pytest.mark.parametrize(
    "spec", [["--to-latest"], ["--to-earliest"], ["--shift-by", "-1"]], ids=lambda s: s[0]
)
def test_execute_and_undo_give_back_exactly_what_was(
    case: Case, cli: Cli, log: Log, topic: str, spec: list[str]
) -> None:
    """Offsets, leader epochs and metadata, and nothing where nothing was."""
    before = log.committed(case.group)
    scope = ["--all-topics"] if spec[0] == "--shift-by" else ["--topic", topic]
    code, out, err = cli("reset-offsets", case.group, *scope, *spec, "--execute", "-o", "json")
    assert code == 0, err
    changed = log.committed(case.group)
    moved = {p for p, at in changed.items() if p not in before or before[p].offset != at.offset}
    assert {changed[p].metadata.split()[0] for p in moved} == {"kgroup"}
    assert all(changed[p] == before[p] for p in before.keys() - moved), "what is there is not committed again"
    assert len(changed) == (3 if spec[0] == "--shift-by" else 4)
    entry = json.loads(out)["data"]["journal_id"]
    assert cli("reset-offsets", "--undo", entry, "--execute")[0] == 0
    assert log.committed(case.group) == before


def test_undo_is_refused_once_a_consumer_has_committed(
    case: Case, cli: Cli, log: Log, topic: str, java_client: Client
) -> None:
    assert cli("reset-offsets", case.group, "--topic", topic, "--to-earliest", "--execute")[0] == 0
    member = case.join(java_client, topic)
    settle([member], case.partitions(topic))
    code, _, err = cli("reset-offsets", case.group, "--topic", topic, "--to-latest", "--execute")
    assert (code, "is Stable with 1 member" in err) == (4, True)
    member.commit({(topic, 0): 8})
    case.close(member)
    code, _, err = cli("reset-offsets", "--undo", "LAST", "--execute", "--wait-empty")
    assert (code, "a commit came after j-0001" in err) == (4, True)
    assert log.committed(case.group)[TopicPartition(topic, 0)].offset == 8


def test_lag_equals_kafkas_tool_and_knows_the_time(case: Case, cli: Cli, topic: str) -> None:
    printed = case.server.tool("kafka-consumer-groups", "--describe", "--group", case.group).stdout
    theirs = {
        int(row["PARTITION"]): (int(row["CURRENT-OFFSET"]), int(row["LOG-END-OFFSET"]), int(row["LAG"]))
        for row in rows(printed)
    }
    code, out, err = cli("lag", case.group, "--time", "-o", "json")
    assert code == 0, err
    (group,) = json.loads(out)["data"]["groups"]
    names = ("committed_offset", "log_end_offset", "lag")
    assert {row["partition"]: tuple(row[n] for n in names) for row in group["offsets"]} == theirs
    # The oldest unread record is the fifth of ten, six hours old but for a minute.
    assert 5 * HOUR_MS < group["max_time_lag_ms"] <= 6 * HOUR_MS
    assert cli("lag", case.group, "--fail-above", "5h")[0] == 8
    assert cli("lag", case.group, "--fail-above", "6h")[0] == 0


def test_offsets_and_groups_deleted_and_brought_back(
    case: Case, cli: Cli, log: Log, topic: str, tmp_path: Path
) -> None:
    before = log.committed(case.group)
    assert cli("offsets", "delete", case.group, "--topic", f"{topic}:0", "--execute")[0] == 0
    assert TopicPartition(topic, 0) not in log.committed(case.group)
    assert cli("reset-offsets", "--undo", "LAST", "--execute")[0] == 0
    assert log.committed(case.group) == before
    file = str(tmp_path / "kept.json")
    assert cli("delete", case.group, "--stale-for", "7d", "-o", "name")[1] == ""
    code, out, err = cli("delete", case.group, "--stale-for", "1ms", "--export", file, "--execute", "--yes")
    assert code == 0, err
    assert log.committed(case.group) == {}
    assert case.group not in case.server.tool("kafka-consumer-groups", "--list").stdout.split()
    assert cli("delete", "--restore", file, "--execute")[0] == 0
    assert log.committed(case.group) == before


def test_deletions_that_a_plan_refuses_are_refused(
    case: Case, cli: Cli, log: Log, topic: str, clients: Callable[[str], Client]
) -> None:
    """A member keeps the offsets of its topics from being deleted, and no others."""
    read = case.topic(name="read")
    log.commit(case.group, {TopicPartition(read, 0): OffsetAndMetadata(0, 0, "")})
    settle([case.join(clients("java"), read)], case.partitions(read))
    planned = {
        name: cli("offsets", "delete", case.group, "--topic", f"{name}:0")[0] for name in (topic, read)
    }
    assert planned == {topic: ExitCode.OK, read: ExitCode.REFUSED}
    codes, error = forget(log.cluster, case.group, [TopicPartition(name, 0) for name in planned])
    told = {place.topic: ErrorCode(code).name for place, code in codes.items()}
    assert (error, told) == (None, {topic: "NONE", read: "GROUP_SUBSCRIBED_TO_TOPIC"})


def test_offsets_cloned(case: Case, cli: Cli, log: Log, topic: str) -> None:
    assert cli("offsets", "clone", case.group, f"{case.group}-b", "--execute")[0] == 0
    assert log.committed(f"{case.group}-b") == log.committed(case.group)


def test_settings_of_a_group(case: Case, cli: Cli) -> None:
    name = "consumer.session.timeout.ms"
    code, _, err = cli("config", "set", case.group, f"{name}=30000", "--execute")
    assert code == 0, err
    entity = ("--describe", "--entity-type", "groups", "--entity-name", case.group)
    assert f"{name}=30000" in case.server.tool("kafka-configs", *entity).stdout
    rows_of = json.loads(cli("config", "get", case.group, name, "-o", "json")[1])["data"]["settings"]
    assert rows_of == [{"setting": name, "value": "30000", "origin": "group"}]
    code, _, err = cli("config", "set", case.group, f"{name}=1")
    assert (code, "INVALID_CONFIG" in err) == (1, True)
    assert cli("config", "set", case.group, "--unset", name, "--execute")[0] == 0
    assert f"{name}=30000" not in case.server.tool("kafka-configs", *entity).stdout


def test_doctor_sees_who_is_away(case: Case, cli: Cli, clients: Callable[[str], Client]) -> None:
    topic = case.topic()
    member = case.join(
        clients("librdkafka"), topic, instance="away-0", protocol="consumer", session_ms=60_000
    )
    settle([member], case.partitions(topic))
    case.close(member)
    code, out, err = cli("doctor", case.group, "-o", "json")
    assert code in (0, 8), err
    (group,) = json.loads(out)["data"]["groups"]
    assert group["skipped"] == []
    (absent,) = [finding for finding in group["findings"] if finding["code"] == "KG103"]
    assert "its session ends at" in absent["evidence"][0]


def test_reset_and_undo_of_a_consumer_protocol_group(
    case: Case, cli: Cli, log: Log, clients: Callable[[str], Client]
) -> None:
    """A static member that is away keeps the group from being reset until it is removed."""
    topic = case.topic()
    log.append(topic, 0, [int(time.time() * 1000)] * 3)
    member = case.join(clients("librdkafka"), topic, instance="s-0", protocol="consumer", session_ms=60_000)
    settle([member], case.partitions(topic))
    member.commit({(topic, 0): 1})
    case.close(member)
    argv = ("reset-offsets", case.group, "--topic", topic, "--to-latest", "--execute")
    code, _, err = cli(*argv)
    assert (code, "--remove-static" in err) == (4, True), err
    before = log.committed(case.group)
    code, out, err = cli(*argv, "--remove-static", "--yes")
    assert code == 0, err
    assert "removed s-0" in out
    assert log.committed(case.group)[TopicPartition(topic, 0)].offset == 3
    assert cli("reset-offsets", "--undo", "LAST", "--execute")[0] == 0
    assert log.committed(case.group) == before
