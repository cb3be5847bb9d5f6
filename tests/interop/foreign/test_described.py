"""`kgroup describe` of groups of Connect and classic Streams, against what the applications say."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.embedded_bytes import compare
from tests.sampled import FULL, sampled

from ..conftest import SETTINGS, require
from ..driver import Driver
from ..jvm import LIGHT_JVM, java
from ..kafka import RealKafka
from ..verifying import kgroup
from ..versions.broker import OldKafka
from ..waiting import eventually
from . import builds
from .workers import Workers

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
VERSIONS = (builds.APPS, "3.9.2")
PROTOCOLS = sampled(
    [(VERSIONS[0], "sessioned", 2), (VERSIONS[1], "compatible", 1), (VERSIONS[0], "eager", 0)],
    [(VERSIONS[0], "sessioned", 2)],
    "older protocols of Connect's workers",
)


@pytest.fixture(scope="module")
def kafka_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], RealKafka]]:
    """A broker of a release, started when first asked for."""
    require("java", "javac", "mvn")
    running: dict[str, RealKafka] = {}
    with ExitStack() as stack:

        def of(version: str) -> RealKafka:
            if version not in running:
                base = tmp_path_factory.mktemp("described")
                newest = version == builds.APPS
                made = RealKafka(SETTINGS, base=base) if newest else OldKafka("3.9", base / "old", SETTINGS)
                running[version] = stack.enter_context(made)
            return running[version]

        yield of


def described(kafka: RealKafka, group: str) -> dict[str, Any]:
    """The group out of `describe`, once it is stable."""

    def stable() -> dict[str, Any]:
        code, data = kgroup("describe", group, "-b", kafka.bootstrap)
        assert code == 0, (code, data)
        (found,) = data["groups"]
        assert found["state"] == "Stable", found
        return found

    return eventually(stable, 180, every=0.5)


def by_rest(workers: Workers, connectors: list[str]) -> dict[str, set[str]]:
    """Connectors and tasks of each worker, as Connect's REST API tells them."""
    found: dict[str, set[str]] = {workers.addresses[name]: set() for name in workers.processes}
    for name in connectors:
        status = workers.ask(f"/connectors/{name}/status")
        units = [(name, status["connector"]), *((f"{name}-{task['id']}", task) for task in status["tasks"])]
        for unit, told in units:
            # Of a worker that is gone the status stays until another has taken over.
            assert told["state"] == "RUNNING" and told["worker_id"] in found, status
            found[told["worker_id"]].add(unit)
    return found


def by_kgroup(group: dict[str, Any]) -> dict[str, set[str]]:
    """The same as the members' bytes tell it."""
    found = {}
    for member in group["members"]:
        running = member["connect"]["running"]
        tasks = {f"{each['connector']}-{number}" for each in running["tasks"] for number in each["tasks"]}
        found[member["connect"]["worker_id"]] = {*running["connectors"], *tasks}
    return found


@pytest.mark.parametrize(("version", "protocol", "spoken"), PROTOCOLS)
def test_connect_workers(
    kafka_of: Callable[[str], RealKafka], tmp_path: Path, version: str, protocol: str, spoken: int
) -> None:
    """Workers of a release on a broker of that release: `describe` names what Connect's REST API names."""
    kafka = kafka_of(version)
    group = f"connect-{version}-{protocol}"
    workers = Workers(kafka.bootstrap, group, protocol, tmp_path, version)
    assert (
        kgroup("cluster", "create-topic", f"{group}-lines", "--partitions", "4", "-b", kafka.bootstrap)[0]
        == 0
    )
    source = {"connector.class": "FileStreamSource", "topic": f"{group}-lines", "file": "/dev/null"}
    sink = {"connector.class": "FileStreamSink", "topics": f"{group}-lines", "file": str(tmp_path / "out")}
    names = ["lines-source", "lines-sink", "more-sink"]

    def agreed() -> tuple[dict[str, Any], dict[str, set[str]]]:
        told = by_rest(workers, names)
        found = described(kafka, group)
        assert by_kgroup(found) == told
        assert by_rest(workers, names) == told
        return found, told

    try:
        workers.start("w0")
        workers.create(names[0], **{**source, "tasks.max": "1"})
        workers.create(names[1], **{**sink, "tasks.max": "3"})
        workers.create(names[2], **{**sink, "tasks.max": "2"})
        workers.start("w1")
        workers.shares_all(names, 9)
        found, told = eventually(agreed, 180, every=0.5)
        assert all(told.values())
        assert {member["connect"]["assignment"]["version"] for member in found["members"]} == {spoken}
        (leader,) = [member for member in found["members"] if member["is_leader"]]
        assert leader["connect"]["assignment"]["leader_url"] == leader["connect"]["url"]
        assert found["application"]["kind"] == "connect"
        assert (found["offsets"], found["total_lag"]) == ([], None)
        assert "connect-<connector>" in found["no_offsets"]
        # Nothing is new to a worker that stays where it is: only its metadata tells what it runs.
        workers.stop("w1")
        found, told = eventually(agreed, 180, every=0.5)
        assert [len(each) for each in told.values()] == [9]
        _told_by_the_log(kafka, group, found, cooperative=spoken > 0)
    finally:
        workers.close()


def _told_by_the_log(kafka: RealKafka, group: str, found: dict[str, Any], cooperative: bool) -> None:
    """The same state, and rebalances with causes that only Connect's own bytes hold."""
    code, data = kgroup("replay-log", group, "--at", "2099-01-01", "-b", kafka.bootstrap)
    (replayed,) = data["groups"]
    assert (code, [m["connect"] for m in replayed["members"]]) == (
        0,
        [m["connect"] for m in found["members"]],
    )
    code, data = kgroup("replay-log", group, "-b", kafka.bootstrap)
    rebalances = [each for each in data["events"] if each["event"] == "rebalance-completed"]
    causes = [each["cause"] or "" for each in rebalances]
    assert code == 0 and any("came, with a newer configuration" in cause for cause in causes), causes
    assert "lines-sink-0, lines-sink-1, lines-sink-2" in rebalances[-1]["detail"], rebalances[-1]
    handed_over = any("which stopped them and rejoined" in cause for cause in causes)
    assert handed_over == cooperative, causes
    if cooperative:
        assert any("held back work of lost workers for 2 s" in cause for cause in causes), causes


@pytest.mark.parametrize("version", VERSIONS if FULL else VERSIONS[:1])
def test_streams_threads(kafka_of: Callable[[str], RealKafka], tmp_path: Path, version: str) -> None:
    """Threads of a release on a broker of that release: `describe` names the tasks they have."""
    kafka = kafka_of(version)
    app = f"words-{version}"
    for topic in ("in", "out"):
        assert (
            kgroup("cluster", "create-topic", f"{app}-{topic}", "--partitions", "3", "-b", kafka.bootstrap)[0]
            == 0
        )
    instances = {name: _streams(kafka, app, name, tmp_path, version) for name in ("s0", "s1")}

    def agreed() -> tuple[dict[str, Any], dict[str, Any]]:
        states = [each.call("state") for each in instances.values()]
        assert all(state["state"] == "RUNNING" for state in states), states
        told = {name: _sorted(tasks) for state in states for name, tasks in state["threads"].items()}
        found = described(kafka, app)
        ours = {
            member["streams"]["thread"]: _sorted(member["streams"]["assignment"])
            for member in found["members"]
        }
        assert ours == told
        return found, told

    try:
        found, told = eventually(agreed, every=0.5)
        assert len(told) == 4
        assert sorted(task for tasks in told.values() for task in tasks["active"]) == TASKS
        assert sorted(task for tasks in told.values() for task in tasks["standby"]) == TASKS[3:]
        assert found["application"] == {"kind": "streams", "service_id": None, "query_id": None}
        processes: dict[str, set[str]] = {}
        for member in found["members"]:
            subscription = member["streams"]["subscription"]
            processes.setdefault(subscription["process_id"], set()).add(member["client_id"][:2])
            assert subscription["user_endpoint"] == f"{member['client_id'][:2]}.example:7000"
            assert subscription["client_tags"] == [{"key": "zone", "value": member["client_id"][:2]}]
        assert sorted(processes.values(), key=str) == [{"s0"}, {"s1"}]
        assert _process_files(tmp_path, app) == set(processes)
        hosts = found["members"][0]["streams"]["assignment"]["hosts"]
        assert [host["host"] for host in hosts] == ["s0.example", "s1.example"]
        at_work = {member["member_id"]: member["streams"] for member in found["members"]}
        code, data = kgroup("replay-log", app, "--at", "2099-01-01", "-b", kafka.bootstrap)
        replayed = {member["member_id"]: member["streams"] for member in data["groups"][0]["members"]}
        assert (code, replayed) == (0, at_work)
        code, data = kgroup("replay-log", app, "-b", kafka.bootstrap)
        last = [each for each in data["events"] if each["event"] == "rebalance-completed"][-1]
        assert code == 0
        for thread, tasks in told.items():
            assert f"{thread} {', '.join(tasks['active'])}" in last["detail"], last
    finally:
        for each in instances.values():
            each.close()


TASKS = [f"{sub}_{number}" for sub in (0, 1) for number in range(3)]


def _sorted(tasks: dict[str, Any]) -> dict[str, list[str]]:
    return {role: sorted(tasks[role]) for role in ("active", "standby")}


def _process_files(folder: Path, app: str) -> set[str]:
    """The process ids that Streams keeps in its state directories."""
    files = folder.glob(f"*/{app}/kafka-streams-process-metadata")
    return {json.loads(file.read_text())["processId"] for file in files}


def _streams(kafka: RealKafka, app: str, name: str, folder: Path, version: str) -> Driver:
    settings = {
        "application.id": app,
        "bootstrap.servers": kafka.bootstrap,
        "client.id": name,
        "num.stream.threads": "2",
        "num.standby.replicas": "1",
        "replication.factor": "1",
        "application.server": f"{name}.example:7000",
        "client.tag.zone": name,
        "rack.aware.assignment.tags": "zone",
        "state.dir": str(folder / name),
        "acceptable.recovery.lag": "1000000",
        "main.consumer.auto.offset.reset": "earliest",
        "main.consumer.heartbeat.interval.ms": "500",
    }
    arguments = [f"{app}-in", f"{app}-out", *(f"{key}={value}" for key, value in settings.items())]
    command = java("kgroup.foreign.WordCount", *arguments, jvm=LIGHT_JVM, classpath=builds.apps(version))
    return Driver(command, folder / f"{name}.log")


def test_bytes_as_kafkas_own_classes_write_them() -> None:
    for version in VERSIONS:
        command = java("kgroup.foreign.Embedded", "21", "500", classpath=builds.apps(version))
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(lines) == 2000
        for line in lines:
            compare(line)
