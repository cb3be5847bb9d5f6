"""A real Kafka and ours side by side, drivers of foreign clients, and a table of what agreed."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.sampled import FULL

from ..conftest import SETTINGS, require
from ..coordinating import coordinates
from ..driver import Driver
from ..jvm import LIGHT_JVM, java
from ..kafka import RealKafka
from ..kgroup_server import KgroupServer
from ..server import JUDGE, Server
from ..toolchain import go_driver
from . import builds
from .programs import Program, Run, agree

# Quick, as the classic applications' own settings are; brokers allow groups no less than their bounds.
STREAMS = {
    "group.streams.min.session.timeout.ms": "6000",
    "group.streams.session.timeout.ms": "6000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "500",
    "group.streams.num.standby.replicas": "1",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a pair of servers run one after the other; applications have a pair of their own."""
    for item in items:
        if item.path.parent == builds.HERE:
            application = item.path.stem in ("test_connect", "test_streams", "test_described")
            item.add_marker(pytest.mark.xdist_group("foreign-apps" if application else "foreign"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Of the full matrix, who agreed on what."""
    if not FULL:
        return
    terminalreporter.section(f"foreign clients on Kafka {JUDGE} and on kgroup")
    for outcome, word in (("passed", "equal"), ("failed", "DIFFERENT"), ("error", "NOT RUN")):
        for report in terminalreporter.stats.get(outcome, []):
            if "interop/foreign/" in report.nodeid and (report.when == "call" or outcome == "error"):
                terminalreporter.line(f"{word:10} {report.nodeid.rpartition('/')[2]}")


@pytest.fixture(scope="session")
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Server]]:
    """A real Kafka, whose word is the expectation, and ours; a parameter names their release."""
    require("java", "javac", "mvn")
    with contextlib.ExitStack() as stack:
        servers: list[Server] = []
        for kind in (RealKafka, KgroupServer):
            made = kind({**SETTINGS, **STREAMS}, base=tmp_path_factory.mktemp(kind.kind))
            made.kafka = getattr(request, "param", JUDGE)
            servers.append(stack.enter_context(made))
        for server in servers:
            coordinates(server)
        yield servers


@pytest.fixture(scope="session")
def foreign_drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Driver]]:
    """Driver processes by client, each started when first asked for; only the last is kept."""
    running: dict[str, Driver] = {}
    logs = tmp_path_factory.mktemp("foreign")

    def get(client: str) -> Driver:
        if client not in running:
            for name in list(running):
                running.pop(name).close()
            running[client] = Driver(_command(client), logs / f"{client}.log")
        return running[client]

    yield get
    for driver in running.values():
        driver.close()


def _command(client: str) -> list[str]:
    if client == "kafkajs":
        require("node", "npm")
        return ["node", str(builds.js_driver())]
    if client == "go":
        require("go")
        return [str(go_driver())]
    return java("kgroup.foreign.Driver", jvm=(*LIGHT_JVM, "-Xmx256m"), classpath=builds.java_driver(client))


Play = Callable[..., list[tuple[str, object]]]


@pytest.fixture
def play(pair: list[Server], foreign_drivers: Callable[[str], Driver]) -> Play:
    """Play a program with one client on both servers; fails unless it tells the same."""

    def agreed(program: Program, driver: str, client: str = "") -> list[tuple[str, object]]:
        name = f"{program.__name__}-{uuid.uuid4().hex[:6]}"
        version = tuple(int(part) for part in driver.split(".")[:2]) if driver[0].isdigit() else ()
        at_work = foreign_drivers(driver)
        return agree(pair, program, lambda server: Run(server, at_work, name, version, client))

    return agreed
