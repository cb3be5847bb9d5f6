"""Describe, list, remove and delete through the clients' own admin calls."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Case
from .driver import Client, DriverError, Member, settle
from .waiting import eventually

pytestmark = pytest.mark.interop


def test_every_client_describes_and_lists_the_same(case: Case, client: Client, java_client: Client) -> None:
    topic = case.topic()
    members = [
        case.join(java_client, topic, instance="static-1", session_ms=30_000),
        case.join(java_client, topic),
    ]
    settle(members, case.partitions(topic), each=2)
    members[0].commit({(topic, 1): 7})
    at = case.server.bootstrap
    expected = case.describe()
    seen = client.admin("describe", at, group=case.group)
    assert (seen["group"], seen["state"], seen["assignor"]) == (case.group, "Stable", "range")
    what = ("member_id", "client_id", "host", *(["instance"] if "instances" in client.features else []))
    assert _comparable(seen, what) == _comparable(expected, what)
    assert len(seen["members"]) == 2
    listed = [row for row in client.admin("list", at) if row["group"] == case.group]
    assert len(listed) == 1
    if "type" in client.features:
        assert (listed[0]["type"], listed[0]["state"]) == ("Classic", "Stable")
    assert client.admin("offsets", at, group=case.group) == [[topic, 1, 7]]


def _comparable(group: dict[str, Any], what: tuple[str, ...]) -> list[list[object]]:
    return sorted([*(row[name] for name in what), sorted(row["assignment"])] for row in group["members"])


def _away(case: Case, client: Client, count: int, **options: object) -> tuple[str, Member]:
    """`count` static members that closed without leaving, and one that stays; the stayer holds a share."""
    topic = case.topic(count + 1)
    stays = case.join(client, topic, instance="stays", session_ms=60_000, **options)
    going = [
        case.join(client, topic, instance=f"away-{n}", session_ms=60_000, **options) for n in range(count)
    ]
    settle([stays, *going], case.partitions(topic, count + 1), each=1)
    for member in going:
        case.close(member)
    return topic, stays


@pytest.mark.feature("remove")
def test_removal_by_instance_id(case: Case, client: Client, java_client: Client) -> None:
    """SM-33, SM-66: one, several, unknown and mixed; each removal rebalances at once."""
    topic, stays = _away(case, java_client, 3)
    at, group = case.server.bootstrap, case.group
    generation = stays.state().generation
    assert client.admin("remove", at, group=group, instances=["nobody"]) == {"nobody": "UNKNOWN_MEMBER_ID"}
    assert len(case.describe()["members"]) == 4
    assert client.admin("remove", at, group=group, instances=["away-0"]) == {"away-0": None}
    eventually(lambda: len(stays.state().assignment) == 2 or len(case.describe()["members"]) == 3)
    mixed = client.admin("remove", at, group=group, instances=["away-1", "nobody", "away-2"])
    assert mixed == {"away-1": None, "nobody": "UNKNOWN_MEMBER_ID", "away-2": None}
    (after,) = settle([stays], case.partitions(topic, 4))
    assert generation is not None and after.generation is not None and after.generation > generation
    assert [row["instance"] for row in case.describe()["members"]] == ["stays"]
    again = client.admin("remove", at, group=group, instances=["away-1"])
    assert again == {"away-1": "UNKNOWN_MEMBER_ID"}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_removal_of_all_members(case: Case, java_client: Client, protocol: str) -> None:
    """Admin without instance ids: describes, then removes static and dynamic members alike."""
    topic = case.topic()
    static = case.join(java_client, topic, instance="s", session_ms=60_000, protocol=protocol)
    dynamic = case.join(java_client, topic, session_ms=60_000, protocol=protocol)
    settle([static, dynamic], case.partitions(topic), each=2)
    case.close(static)
    case.close(dynamic, leave=protocol == "consumer")
    assert case.call("remove", group=case.group, instances=None) == {}
    described = eventually(lambda: (row := case.describe())["state"] == "Empty" and row)
    assert described["members"] == []


@pytest.mark.feature("remove")
def test_removal_from_a_group_that_does_not_exist(case: Case, client: Client) -> None:
    at = case.server.bootstrap
    assert client.admin("remove", at, group=case.group, instances=["i"]) == {"i": "UNKNOWN_MEMBER_ID"}


def test_delete_wants_an_empty_group(case: Case, java_client: Client) -> None:
    topic = case.topic(1)
    member = case.join(java_client, topic)
    settle([member], case.partitions(topic, 1))
    member.commit({(topic, 0): 3})
    with pytest.raises(DriverError, match="NON_EMPTY_GROUP"):
        case.call("delete", group=case.group)
    case.close(member)
    eventually(lambda: case.describe()["state"] == "Empty")
    case.call("delete", group=case.group)
    with pytest.raises(DriverError, match="GROUP_ID_NOT_FOUND"):
        case.describe()
    with pytest.raises(DriverError, match="GROUP_ID_NOT_FOUND"):
        case.call("delete", group=case.group)
    listed = case.call("list")
    assert isinstance(listed, list)
    assert case.group not in {row["group"] for row in listed}


def test_a_group_of_two_hundred(case: Case, clients: Any, java_client: Client) -> None:
    """SM-52 at size: two hundred static members settle; a handful bounce without a rebalance."""
    topic = case.topic(200)
    franz = clients("franz-go")
    options = {"session_ms": 60_000, "assignor": "range"}
    members = [case.join(franz, topic, instance=f"i{n:03}", **options) for n in range(200)]
    before = settle(members, case.partitions(topic, 200), each=1)
    assert len({state.generation for state in before}) == 1
    described = case.describe()
    assert len(described["members"]) == 200
    for position in (3, 77, 150):
        case.close(members[position])
        members[position] = case.join(franz, topic, instance=f"i{position:03}", **options)
    after = settle(members, case.partitions(topic, 200), each=1)
    assert {state.generation for state in after} == {before[0].generation}
    assert [state.assignment for state in after] == [state.assignment for state in before]
