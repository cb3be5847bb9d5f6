"""`replay-log --verify` on a broker after everything the suite did to it, with groups of every kind at work.

Runs last. The fixture `server` does it again for each broker when that worker's tests are done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .conftest import Case
from .driver import Client, settle
from .verifying import kgroup, verified_groups
from .waiting import eventually

pytestmark = [pytest.mark.interop, pytest.mark.timeout(1200)]
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


NOT_IN_RECORDS = {
    "coordinator",
    "status",
    "unreadable",
    "unreadable_lag",
    "findings",
    "lag",
    "lag_at_least",
    "log_end_offset",
    "log_start_offset",
    "reason",
    # Settings of a group are not in its log.
    "registration",
    "registration_known",
    "total_lag",
    "unknown_partitions",
}
NOT_IN_DESCRIBE = {
    "assigned_epoch",
    "assignment_epoch",
    "generation",
    "is_leader",
    "member_epoch",
    "target_assignment",
}


def test_the_state_at_the_end_of_the_log_is_what_describe_shows(case: Case, at_work: dict[str, str]) -> None:
    """Field by field, but for those that only one side has, as the assignor that is the broker's default."""
    where = ("-b", case.server.bootstrap)

    def alike() -> bool:
        _, shown = kgroup("describe", *at_work.values(), *where)
        _, replayed = kgroup("replay-log", *at_work.values(), "--at", str(10**9), *where)
        groups = {row["group_id"]: row for row in replayed["groups"]}
        assert set(groups) == set(at_work.values())
        for group in shown["groups"]:
            assert list(unlike(groups[group["group_id"]], group)) == []
        return True

    eventually(alike)


def unlike(replayed: Any, shown: Any, at: str = "") -> Iterator[str]:
    """Where the two differ."""
    if isinstance(replayed, dict) and isinstance(shown, dict):
        for name in (replayed.keys() | shown.keys()) - NOT_IN_RECORDS:
            mine, theirs = replayed.get(name, "absent"), shown.get(name, "absent")
            one_sided = name in NOT_IN_DESCRIBE and theirs is None or name == "assignor" and mine is None
            if not one_sided:
                yield from unlike(mine, theirs, f"{at}.{name}")
    elif isinstance(replayed, list) and isinstance(shown, list) and len(replayed) == len(shown):
        for mine, theirs in zip(in_order(replayed), in_order(shown), strict=True):
            yield from unlike(mine, theirs, at)
    elif replayed != shown:
        yield f"{at}: {replayed!r} is {shown!r} there"


def in_order(rows: list[Any]) -> list[Any]:
    """Members and offsets, which may come in any order; anything else as it is."""
    if rows and isinstance(rows[0], dict) and "member_id" in rows[0]:
        return sorted(rows, key=lambda row: f"{row['member_id']} {row.get('partition')}")
    return rows
