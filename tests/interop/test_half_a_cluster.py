"""One of two real brokers dies, and half of the groups with it: no command says that they are not there."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kgroup.admin.change.committing import store
from kgroup.admin.discovery import ClusterView
from kgroup.admin.topics import create_topic
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.domain import OffsetAndMetadata, TopicPartition
from tests.own_home import environment

from .conftest import require
from .kafka import RealKafka
from .kgroup_server import EXECUTABLE
from .waiting import eventually

pytestmark = pytest.mark.interop
GROUPS = tuple(f"g-{number}" for number in range(8))
"""Two to each of the four partitions of `__consumer_offsets`."""
TOPIC = "orders"
OK, PARTIAL = 0, 5


class Follower(RealKafka):
    """A second broker, of the cluster whose controller is `first`."""

    def __init__(self, first: RealKafka, base: Path, settings: Mapping[str, object] | None = None) -> None:
        super().__init__(base=base)
        self.overrides = {
            **(settings or {}),
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.voters": f"1@127.0.0.1:{first.controller_port}",
            "listeners": f"PLAINTEXT://{self.bootstrap}",
        }


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RealKafka, RealKafka]]:
    """Two brokers, every partition on one of them alone; eight groups at the end of their topic."""
    require("java", "mvn")
    quick = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    with (
        RealKafka(quick, heap="256m", base=tmp_path_factory.mktemp("first")) as first,
        Follower(first, tmp_path_factory.mktemp("second")) as second,
    ):
        with SocketTransport(ConnectionSettings(parse_bootstrap(first.bootstrap))) as transport:
            admin = ClusterView(transport)
            eventually(lambda: len(transport.nodes()) == 2)
            create_topic(admin, TOPIC, 2)
            for group in GROUPS:
                at = {TopicPartition(TOPIC, p): OffsetAndMetadata(0) for p in range(2)}
                codes, failed = store(ClusterView(transport), group, at)
                assert not failed and set(codes.values()) == {0}
        yield first, second


Ask = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def ask(brokers: tuple[RealKafka, RealKafka], tmp_path: Path) -> Ask:
    """Runs kgroup against the first broker: exit code, document, what it said."""

    def call(*argv: str) -> tuple[int, Any, str]:
        done = subprocess.run(
            _command(brokers[0], *argv), env=environment(tmp_path), capture_output=True, text=True, timeout=90
        )
        return done.returncode, json.loads(done.stdout), done.stderr

    return call


def _command(broker: RealKafka, *argv: str) -> list[str]:
    bounded = () if "--stop-after" in argv else ("--timeout", "10s")
    return [EXECUTABLE, *argv, "-b", broker.bootstrap, *bounded, "-o", "json"]


def _names(document: Any) -> set[str]:
    return {group["group_id"] for group in document["data"]["groups"]}


ALL_SEEN = (
    (("list",), OK),
    (("describe", "--all-groups"), OK),
    (("lag", "g-*", "--fail-above", "0"), OK),
    (("wait", "g-*", "--for", "empty", "--stop-after", "2s"), OK),
    (("offsets", "export", "g-*"), OK),
    (("reset-offsets", "g-*", "--all-topics", "--to-current"), OK),
    (("delete", "g-*"), OK),
)


def test_what_is_told_while_a_broker_is_down_and_after(
    brokers: tuple[RealKafka, RealKafka], ask: Ask, tmp_path: Path
) -> None:
    first, second = brokers
    for argv, code in ALL_SEEN:
        assert ask(*argv)[0] == code, argv
    second.kill9()
    _half_is_seen(ask)  # the metadata may still name the broker as alive
    eventually(lambda: ask("cluster", "status")[1]["data"]["leaderless"] > 0)
    _half_is_seen(ask)
    code, document, said = ask("wait", *GROUPS, "--for", "empty", "--stop-after", "3s")
    assert code == PARTIAL, said
    dark = [group for group in document["data"]["groups"] if not group["held"]]
    assert len(dark) == 4 and {group["state"] for group in dark} == {None}
    waiting = subprocess.Popen(
        _command(first, "wait", "g-*", "--for", "empty", "--stop-after", "90s"),
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    second.start()
    out, said = waiting.communicate(timeout=100)
    assert waiting.returncode == OK, said
    assert _names(json.loads(out)) == set(GROUPS)
    for argv, code in ALL_SEEN:
        assert ask(*argv)[0] == code, argv


def _half_is_seen(ask: Ask) -> None:
    code, document, said = ask("list")
    assert (code, len(_names(document))) == (PARTIAL, 4), said
    assert "broker" in said
    for argv, _ in ALL_SEEN[1:]:
        code, _, said = ask(*argv)
        assert code == PARTIAL, (argv, said)
