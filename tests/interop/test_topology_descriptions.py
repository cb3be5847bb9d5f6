"""Topology descriptions (KIP-1331) on a real Kafka 4.4.0 with a plugin, as kgroup shows them.

The plugin (java/plugin) keeps them in memory and fails for groups whose name says so. No client sends
descriptions yet, so raw requests do.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgroup.errors import ErrorCode
from kgroup.protocol import topology_description as wire
from kgroup.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Topology
from kgroup.protocol.messages.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)
from kgroup.protocol.streams_records import Subtopology
from tests.own_home import move_in
from tests.ran import Ran, ran

from . import toolchain
from .conftest import NEWEST, require
from .coordinating import coordinates
from .kafka import RealKafka
from .peer import Peer
from .test_static_streams import AT_ONCE

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
PLUGIN = toolchain.HERE / "java" / "plugin" / "Descriptions.java"
FAILED = ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED
Ask = Callable[..., Ran]


class Describing(RealKafka):
    """The newest Kafka with the plugin."""

    kafka = NEWEST

    @property
    def _jars(self) -> str:
        jars = super()._jars
        with toolchain.locked():
            classes = toolchain.built("plugin", [PLUGIN], lambda to: toolchain.javac(jars, [PLUGIN], to))
        return f"{classes}{os.pathsep}{jars}"


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    require("java", "javac", "mvn")
    plugin = {"group.streams.topology.description.plugin.class": PLUGIN.stem}
    with Describing({**AT_ONCE, **plugin}, base=tmp_path_factory.mktemp("kafka")) as kafka:
        coordinates(kafka)
        peer = Peer(kafka)
        peer.create(partitions=2)
        yield peer
        peer.close()


@pytest.fixture
def ask(
    peer: Peer, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Ask:
    """Run a command of kgroup on the broker."""
    move_in(monkeypatch, tmp_path)
    return lambda *argv: ran(capsys, *argv, "-o", "json", "-b", peer.bootstrap)


def describes(peer: Peer, group: str) -> tuple[bool, int]:
    """A member that joins and describes its topology; whether it was asked to, and the answer's code."""
    part = Subtopology(subtopology_id="0", source_topics=(peer.topic,))
    joining = StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id="m",
        process_id="p",
        rebalance_timeout_ms=60_000,
        topology=Topology(epoch=0, subtopologies=(part,)),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        client_tags=(),
    )
    asked = peer(joining)
    assert asked.error_code == ErrorCode.NONE, asked
    nodes = (
        wire.Node(name="in", node_type=1, source_topics=(peer.topic,), successors=("count",)),
        wire.Node(name="count", node_type=2, stores=("counts",), successors=("out",)),
        wire.Node(name="out", node_type=3, sink_topic="totals"),
    )
    told = wire.TopologyDescription(
        subtopologies=(wire.DescribedSubtopology(subtopology_id="0", nodes=nodes),),
        global_stores=(
            wire.GlobalStore(
                source=wire.Node(name="all", node_type=1, source_topics=("rates",), successors=("fill",)),
                processor=wire.Node(name="fill", node_type=2, stores=("rates",)),
            ),
        ),
    )
    update = StreamsGroupTopologyDescriptionUpdateRequest(
        group_id=group, member_id="m", topology_epoch=0, topology_description=told
    )
    code: int = peer(update).error_code
    return asked.topology_description_required, code


def test_a_description_is_shown_and_its_storing_is_in_the_history(peer: Peer, ask: Ask) -> None:
    assert describes(peer, "told") == (True, ErrorCode.NONE)
    shown = ask("describe", "told")
    assert (shown.code, shown.errors) == (0, [])
    group = shown.group("told")
    assert (group["assignor"], group["topology"]["described"]) == ("sticky", "available")
    (part,), (store,) = (group["topology"]["description"][key] for key in ("subtopologies", "global_stores"))
    assert [(n["name"], n["type"], n["successors"], n["stores"], n["sink_topic"]) for n in part["nodes"]] == [
        ("in", "source", ["count"], [], None),
        ("count", "processor", ["out"], ["counts"], None),
        ("out", "sink", [], [], "totals"),
    ]
    assert (store["source"]["source_topics"], store["processor"]["stores"]) == (["rates"], ["rates"])
    told = ask("replay-log", "told").data["events"]
    assert [e["detail"] for e in told if e["event"] == "description-changed"][-1] == (
        "the description of topology epoch 0 is stored"
    )
    verified = ask("replay-log", "told", "--verify")
    assert (verified.code, [row["verdict"] for row in verified.data["groups"]]) == (0, ["same"])


def test_a_refused_description_is_not_stored_and_the_records_say_so(peer: Peer, ask: Ask) -> None:
    assert describes(peer, "refused") == (True, FAILED)
    assert ask("describe", "refused").group("refused")["topology"]["described"] == "not_stored"
    told = ask("replay-log", "refused").data["events"]
    assert [e["detail"] for e in told if e["event"] == "description-changed"][-1] == (
        "the broker's plugin refused the description of topology epoch 0 for good"
    )


def test_a_description_that_the_broker_fails_to_read_is_an_error(peer: Peer, ask: Ask) -> None:
    assert describes(peer, "unread") == (True, ErrorCode.NONE)
    shown = ask("describe", "unread")
    topology = shown.group("unread")["topology"]
    assert (topology["described"], topology["description"]) == ("error", None)
    assert shown.code == 5 and [error["code"] for error in shown.errors] == ["NOT_DESCRIBED"]
    checked = ask("doctor", "unread", "--patience", "0s")
    assert any(look.startswith("topology") for look in checked.group("unread")["skipped"])


def test_why_a_group_is_not_deleted(peer: Peer, ask: Ask) -> None:
    """DeleteGroups 3 has the broker's message; the group and its offsets stay."""
    assert describes(peer, "stuck") == (True, ErrorCode.NONE)
    leaving = StreamsGroupHeartbeatRequest(group_id="stuck", member_id="m", member_epoch=-1)
    assert peer(leaving).error_code == ErrorCode.NONE
    done = ask("delete", "stuck", "--execute", "--yes")
    (item,) = done.data["items"]
    assert (item["result"], item["error_code"]) == ("failed", "GROUP_DELETION_FAILED")
    assert "deleting group stuck: GROUP_DELETION_FAILED: " in item["effect"]
    assert done.code == 1
    assert ask("describe", "stuck").group("stuck")["state"] == "Empty"
