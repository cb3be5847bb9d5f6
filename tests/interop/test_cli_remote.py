"""The kgroup command line on a cluster: what it tells equals Kafka's tool, what it removes is gone."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import Case
from .driver import Client, Member, settle
from .kgroup_server import EXECUTABLE
from .server import free_port
from .tables import rows
from .waiting import eventually

pytestmark = pytest.mark.interop
Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """Runs `kgroup` with a home of its own; never a traceback, whatever happens."""
    own = {name: str(tmp_path) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}

    def run(*args: str, bootstrap: str, timeout: str = "20s") -> subprocess.CompletedProcess[str]:
        command = [EXECUTABLE, *args, "--bootstrap-server", bootstrap, "--timeout", timeout]
        done = subprocess.run(
            command,
            env=own,
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert "Traceback" not in done.stdout + done.stderr
        return done

    return run


def _json(done: subprocess.CompletedProcess[str], exit_code: int = 0) -> Any:
    assert done.returncode == exit_code, done.stderr
    document = json.loads(done.stdout)
    assert document["exit_code"] == exit_code
    return document["data"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_describe_equals_kafka_consumer_groups(
    case: Case, java_client: Client, cli: Cli, protocol: str
) -> None:
    """Members, instance ids, assignments, offsets, lag, state and assignor."""
    topic = case.topic()
    static = case.join(java_client, topic, instance="static-1", session_ms=30_000, protocol=protocol)
    dynamic = case.join(java_client, topic, protocol=protocol)
    settle([static, dynamic], case.partitions(topic), each=2)
    for partition in range(4):
        case.produce(topic, ["v"] * (partition + 2), partition=partition)
    held = sorted(static.state().assignment)
    static.commit({held[0]: 1, held[1]: 2})
    eventually(lambda: case.describe()["state"] == "Stable")

    (group,) = _json(cli("describe", case.group, "-o", "json", bootstrap=case.server.bootstrap))["groups"]
    of_group = ("--describe", "--group", case.group)
    members = rows(case.server.tool("kafka-consumer-groups", *of_group, "--members", "--verbose").stdout)
    offsets = rows(case.server.tool("kafka-consumer-groups", *of_group, "--offsets").stdout)
    (state,) = rows(case.server.tool("kafka-consumer-groups", *of_group, "--state").stdout)

    assert _our_members(group) == {
        (
            row["CONSUMER-ID"],
            row["GROUP-INSTANCE-ID"],
            row["HOST"].lstrip("/"),
            row["CLIENT-ID"],
            row["CURRENT-ASSIGNMENT"],
        )
        for row in members
    }
    columns = ("TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID")
    assert _our_offsets(group) == {tuple(row[name] for name in columns) for row in offsets}
    assert (group["state"], group["assignor"]) == (state["STATE"], state["ASSIGNMENT-STRATEGY"])
    assert (group["type"], len(group["members"])) == (protocol, int(state["#MEMBERS"]))
    assert group["coordinator"]["port"] == int(state["COORDINATOR"].split(":")[1].split()[0])


def _our_members(group: dict[str, Any]) -> set[tuple[str, ...]]:
    def text(assignment: list[dict[str, Any]]) -> str:
        return ";".join(f"{each['topic']}:{','.join(map(str, each['partitions']))}" for each in assignment)

    names = ("member_id", "instance_id", "host", "client_id")
    return {(*(each[name] or "" for name in names), text(each["assignment"])) for each in group["members"]}


def _our_offsets(group: dict[str, Any]) -> set[tuple[str, ...]]:
    def text(value: object) -> str:
        return "-" if value is None else str(value)

    names = ("topic", "partition", "committed_offset", "log_end_offset", "lag", "member_id")
    return {tuple(text(each[name]) for name in names) for each in group["offsets"]}


def test_list_equals_kafka_groups(case: Case, java_client: Client, cli: Cli) -> None:
    topic = case.topic(1)
    settle([case.join(java_client, topic)], case.partitions(topic, 1))
    ours = _json(cli("list", "-o", "json", bootstrap=case.server.bootstrap))["groups"]
    theirs = rows(case.server.tool("kafka-groups", "--list").stdout)
    assert {(each["group_id"], each["type"], each["protocol_type"]) for each in ours} >= {
        (row["GROUP"], row["TYPE"].lower(), row["PROTOCOL"]) for row in theirs if row["GROUP"] == case.group
    }
    assert {each["group_id"] for each in ours} == {row["GROUP"] for row in theirs}


@pytest.fixture
def away(case: Case, java_client: Client) -> Iterator[Member]:
    """Static members a, b and c closed without leaving; `stays` lives on and is returned."""
    topic = case.topic()
    stays = case.join(java_client, topic, instance="stays", session_ms=60_000)
    going = [case.join(java_client, topic, instance=name, session_ms=60_000) for name in "abc"]
    settle([stays, *going], case.partitions(topic), each=1)
    for member in going:
        case.close(member)
    yield stays


def _instances(case: Case) -> set[str]:
    return {row["instance"] for row in case.describe()["members"]}


def test_removal_by_instance_id(case: Case, away: Member, cli: Cli) -> None:
    """SM-66: a plan changes nothing; two removed and one unknown exit 5; all removed exits 0."""
    remove = ("remove-members", case.group, "-o", "json", "--instance-id")
    at = case.server.bootstrap
    planned = _json(cli(*remove, "a,b,missing", bootstrap=at), exit_code=5)
    assert planned["executed"] is False
    assert _instances(case) == {"stays", "a", "b", "c"}

    done = _json(cli(*remove, "a,b,missing", "--execute", "--yes", bootstrap=at), exit_code=5)
    assert {row["instance_id"]: (row["result"], row["error_code"]) for row in done["items"]} == {
        "a": ("removed", None),
        "b": ("removed", None),
        "missing": ("not_found", "UNKNOWN_MEMBER_ID"),
    }
    assert _instances(case) == {"stays", "c"}
    done = _json(cli(*remove, "c", "--execute", "--yes", "--wait", "stable", bootstrap=at))
    assert [row["result"] for row in done["items"]] == ["removed"]
    settle([away], case.partitions(f"{case.group}-t"))
    assert _instances(case) == {"stays"}


def test_removal_of_members_that_left_for_a_while(case: Case, java_client: Client, cli: Cli) -> None:
    """`--left-only` finds the consumer-protocol members at epoch -2."""
    topic = case.topic()
    members = [case.join(java_client, topic, instance=name, protocol="consumer") for name in ("in", "out")]
    settle(members, case.partitions(topic), each=2)
    case.close(members[1])
    remove = ("remove-members", case.group, "--left-only", "--execute", "--yes", "-o", "json")
    done = _json(cli(*remove, bootstrap=case.server.bootstrap))
    assert [(row["instance_id"], row["result"]) for row in done["items"]] == [("out", "removed")]
    settle(members[:1], case.partitions(topic))


def test_removal_from_an_unknown_group(case: Case, cli: Cli) -> None:
    at = case.server.bootstrap
    done = cli("remove-members", case.group, "--instance-id", "a", "--execute", "--yes", bootstrap=at)
    assert (done.returncode, done.stdout) == (3, "")
    assert "GROUP_ID_NOT_FOUND" in done.stderr
    assert cli("describe", case.group, bootstrap=at).returncode == 3


@pytest.mark.parametrize("listening", [False, True], ids=["refused", "silent"])
def test_broker_down(cli: Cli, listening: bool) -> None:
    """Exit 7 when the timeout is over, whether nobody listens or nobody answers."""
    with socket.socket() as silent:
        port = free_port()
        if listening:
            silent.bind(("127.0.0.1", port))
            silent.listen()
        for command in (
            ("describe", "g"),
            ("remove-members", "g", "--instance-id", "a", "--execute", "--yes"),
        ):
            done = cli(*command, bootstrap=f"127.0.0.1:{port}", timeout="2s")
            assert done.returncode == 7, done.stderr
            assert done.stderr.startswith("error: ")
