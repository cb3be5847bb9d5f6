"""Groups of the consumer protocol (KIP-848): every client kind that speaks it, against every server kind."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import Case
from .driver import Client, DriverError, fatal, settle
from .waiting import eventually

pytestmark = [pytest.mark.interop]
speakers = pytest.mark.feature("consumer")


@speakers
def test_dynamic_members_share_and_hand_over(case: Case, client: Client) -> None:
    topic = case.topic()
    everything = case.partitions(topic)
    first = case.join(client, topic, protocol="consumer")
    settle([first], everything)
    second = case.join(client, topic, protocol="consumer")
    settle([first, second], everything, each=2)
    described = eventually(lambda: (row := case.describe())["state"] == "Stable" and row)
    assert (described["type"], described["assignor"], len(described["members"])) == ("Consumer", "uniform", 2)
    first.commit({(topic, 0): 5})
    assert second.committed((topic, 0), (topic, 1)) == {(topic, 0): 5}
    case.close(first)
    settle([second], everything)
    assert case.describe()["epoch"] > described["epoch"]


@pytest.mark.feature("consumer", "release")
def test_static_bounce_keeps_assignment_and_epoch(case: Case, client: Client) -> None:
    """A static member closes with epoch -2 and comes back under its instance id: nothing moves."""
    topic = case.topic()
    everything = case.partitions(topic)
    members = [case.join(client, topic, instance=f"i{n}", protocol="consumer") for n in range(2)]
    before = settle(members, everything, each=2)
    epoch = eventually(lambda: (row := case.describe())["state"] == "Stable" and row)["epoch"]
    case.close(members[0])
    away = eventually(lambda: [row for row in case.describe()["members"] if row["epoch"] == -2])
    assert [row["instance"] for row in away] == ["i0"]
    assert {tuple(pair) for pair in away[0]["assignment"]} == before[0].assignment
    members[0] = case.join(client, topic, instance="i0", protocol="consumer")
    after = settle(members, everything, each=2)
    assert [state.assignment for state in after] == [state.assignment for state in before]
    assert case.describe()["epoch"] == epoch


def test_release_without_the_instance_id_is_refused(case: Case, clients: Callable[[str], Client]) -> None:
    """Epoch -2 is for static members only; franz-go 1.22 leaves the instance id out of that heartbeat."""
    topic = case.topic(1)
    member = case.join(clients("franz-go"), topic, instance="i0", protocol="consumer")
    settle([member], case.partitions(topic, 1))
    with pytest.raises(DriverError, match=r"INVALID_REQUEST.*InstanceId can't be null\."):
        case.close(member, leave=True)
    assert case.describe()["members"][0]["epoch"] > 0


@speakers
def test_static_member_away_past_the_session_timeout_is_replaced(case: Case, client: Client) -> None:
    topic = case.topic()
    members = [case.join(client, topic, instance=f"i{n}", protocol="consumer") for n in range(2)]
    settle(members, case.partitions(topic), each=2)
    case.close(members[0])
    settle(members[1:], case.partitions(topic))
    assert [row["instance"] for row in case.describe()["members"]] == ["i1"]


@speakers
def test_second_holder_of_an_instance_id_is_refused(case: Case, client: Client) -> None:
    """The instance id is not released: the newcomer ends, the holder stays as it was."""
    topic = case.topic()
    holder = case.join(client, topic, instance="one", protocol="consumer")
    (before,) = settle([holder], case.partitions(topic))
    newcomer = case.join(client, topic, instance="one", protocol="consumer")
    assert fatal(newcomer) == "UNRELEASED_INSTANCE_ID"
    (after,) = settle([holder], case.partitions(topic))
    assert (after.generation, after.fatal) == (before.generation, None)


@speakers
def test_pattern_is_resolved_by_the_broker(case: Case, client: Client) -> None:
    """RE2, full match: a name that only begins like the pattern is not meant."""
    wanted = case.topic(2, "re-1")
    case.topic(2, "re-1x")
    member = case.join(client, pattern=f"^{case.group}-re-[0-9]+$", protocol="consumer")
    settle([member], case.partitions(wanted, 2))


def test_invalid_pattern_is_refused(case: Case, java_client: Client) -> None:
    member = case.join(java_client, pattern="a(b", protocol="consumer")
    assert fatal(member) == "INVALID_REGULAR_EXPRESSION"


@speakers
def test_removal_by_instance_id(case: Case, client: Client) -> None:
    """LeaveGroup works on consumer groups too: what a member away holds is free at once."""
    topic = case.topic()
    members = [case.join(client, topic, instance=f"i{n}", protocol="consumer") for n in range(2)]
    settle(members, case.partitions(topic), each=2)
    case.close(members[0])
    removed = case.call("remove", group=case.group, instances=["i0", "nobody"])
    assert removed == {"i0": None, "nobody": "UNKNOWN_MEMBER_ID"}
    assert [row["instance"] for row in case.describe()["members"]] == ["i1"]
    settle(members[1:], case.partitions(topic))


def test_group_converts_while_members_move_from_classic_and_back(case: Case, java_client: Client) -> None:
    """Online upgrade and downgrade with offsets kept: the group's type follows its members."""
    topic = case.topic()
    everything = case.partitions(topic)
    old = case.join(java_client, topic)
    settle([old], everything)
    old.commit({(topic, 2): 9})
    new = case.join(java_client, topic, protocol="consumer")
    settle([old, new], everything, each=2)
    assert case.describe()["type"] == "Consumer"
    assert new.committed((topic, 2)) == {(topic, 2): 9}
    case.close(new)
    settle([old], everything)
    assert case.describe()["type"] == "Classic"
    assert old.committed((topic, 2)) == {(topic, 2): 9}


def test_delete_wants_an_empty_group(case: Case, java_client: Client) -> None:
    topic = case.topic(1)
    member = case.join(java_client, topic, protocol="consumer")
    settle([member], case.partitions(topic, 1))
    with pytest.raises(DriverError, match="NON_EMPTY_GROUP"):
        case.call("delete", group=case.group)
    case.close(member)
    eventually(lambda: case.describe()["state"] == "Empty")
    case.call("delete", group=case.group)
    with pytest.raises(DriverError, match="GROUP_ID_NOT_FOUND"):
        case.describe()
