"""`replay-log --verify` on a broker after everything the suite did to it, with groups of every kind at work.

Runs last. The fixture `server` does it again for each broker when that worker's tests are done.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Case
from .driver import Client, settle
from .verifying import kgroup, verified_groups
from .waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(240)]
NEW = {"protocol": "consumer"}


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
    assert set(at_work.values()) <= verified_groups(case.server)
    _, told = kgroup("replay-log", "-b", case.server.bootstrap, "--events", "upgraded,downgraded")
    by_group: dict[str, list[str]] = {}
    for event in told["events"]:
        by_group.setdefault(event["group_id"], []).append(event["event"])
    assert by_group[at_work["upgraded"]] == ["upgraded"]
    assert by_group[at_work["downgraded"]] == ["upgraded", "downgraded"]
