"""`replay-log --verify` on a broker after everything the suite did to it: the log tells what the broker says.

Runs last on each shared broker, so that all groups the tests before it left are compared.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Case
from .driver import Client, settle
from .waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]
SESSIONS_END_S = 60
"""Members that a test killed or left behind expire one after the other; until then groups go on changing."""
NEW = {"protocol": "consumer"}


def kgroup(*arguments: str) -> tuple[int, Any]:
    """Exit code and data of a command."""
    command = [sys.executable, "-m", "kgroup.cli.app", *arguments, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)["data"]


@pytest.fixture
def at_work(case: Case, java_client: Client, clients: Callable[[str], Client]) -> dict[str, str]:
    """Groups with members and commits, by what became of them; in one, a member left for now."""
    topic, librdkafka = case.topic(4), clients("librdkafka")
    everything, base, found = case.partitions(topic), case.group, {}

    def begin(kind: str, client: Client, **options: str) -> None:
        case.group = found[kind] = f"{base}-{kind}"
        first = case.join(client, topic, **options)
        settle([first], everything)
        first.commit({(topic, n): n + 1 for n in range(4)})

    def join(client: Client, **options: str) -> None:
        case.join(client, topic, **options)
        settle(case.members[-2:], everything, each=2)

    begin("classic", librdkafka, instance="c0")
    join(java_client)
    begin("consumer", java_client, **NEW)
    join(librdkafka, **NEW, instance="s0")
    case.close(case.members[-1])
    eventually(lambda: [row for row in case.describe()["members"] if row["epoch"] == -2])
    for kind in ("upgraded", "downgraded"):
        begin(kind, librdkafka)
        join(java_client, **NEW)
        assert case.describe()["type"] == "Consumer"
    case.close(case.members[-1])
    settle(case.members[-1:], everything)
    assert case.describe()["type"] == "Classic"
    return found


def test_the_log_of_the_whole_suite_tells_what_the_broker_says(case: Case, at_work: dict[str, str]) -> None:
    where = ("-b", case.server.bootstrap)

    def verified() -> set[str]:
        code, data = kgroup("replay-log", "--verify", *where)
        differing = [row for row in data["groups"] if row["verdict"] != "same"]
        assert (code, differing) == (0, [])
        return {row["group_id"] for row in data["groups"]}

    compared = eventually(verified, SESSIONS_END_S, every=2)
    _, listed = kgroup("list", *where)
    theirs = {row["group_id"] for row in listed["groups"] if row["type"] in ("classic", "consumer")}
    assert theirs == compared
    assert set(at_work.values()) <= compared
    _, told = kgroup("replay-log", *where, "--events", "upgraded,downgraded")
    by_group: dict[str, list[str]] = {}
    for event in told["events"]:
        by_group.setdefault(event["group_id"], []).append(event["event"])
    assert by_group[at_work["upgraded"]] == ["upgraded"]
    assert by_group[at_work["downgraded"]] == ["upgraded", "downgraded"]
