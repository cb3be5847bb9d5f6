"""kgroup's Admin over TCP: groups of real consumers, on a real Kafka and on kgroup's own broker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from kgroup.admin.change.delete import delete_groups
from kgroup.admin.change.remove_members import Selection, execute_removal, plan_removal
from kgroup.admin.discovery import ClusterView, locate
from kgroup.admin.journal import Journal
from kgroup.admin.models import GroupDescription
from kgroup.admin.read.broker_clock import clock_of
from kgroup.admin.read.describe import describe
from kgroup.admin.read.listing import list_groups
from kgroup.admin.read.offsets import EARLIEST, LATEST, ListedOffset, list_offsets
from kgroup.admin.topics import cluster_status, create_topic, topics
from kgroup.client.retry import Retry
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.domain import TopicPartition
from kgroup.errors import BrokerRefused, SafetyRefused

from .conftest import Case
from .driver import Client, Member, settle
from .waiting import eventually

pytestmark = pytest.mark.interop
PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


@pytest.fixture
def admin(case: Case, tmp_path: Path) -> Iterator[ClusterView]:
    settings = ConnectionSettings(parse_bootstrap(case.server.bootstrap), request_timeout_s=10.0)
    with SocketTransport(settings) as transport:
        yield ClusterView(transport, Retry(timeout_s=10.0), journal=Journal(tmp_path / "journal.jsonl"))


@pytest.fixture
def consumer(clients: Callable[[str], Client]) -> Client:
    return clients("librdkafka")


def described(admin: ClusterView, group: str, state: str = "Stable") -> GroupDescription:
    """The group, once it is in the state."""

    def look() -> GroupDescription | None:
        found = describe(admin, [group]).groups
        assert [each.state for each in found] == [state], found
        return found[0]

    return eventually(look, what=f"{group} is {state}")


def static_pair(case: Case, consumer: Client, protocol: str) -> tuple[str, list[Member]]:
    """A topic of four partitions shared by the static members i0 and i1."""
    topic = case.topic()
    members = [
        case.join(consumer, topic, instance=f"i{n}", protocol=protocol, session_ms=60_000) for n in range(2)
    ]
    settle(members, case.partitions(topic), each=2)
    return topic, members


@PROTOCOLS
def test_describe_tells_who_owns_what_and_how_far_behind(
    case: Case, consumer: Client, admin: ClusterView, protocol: str
) -> None:
    topic, members = static_pair(case, consumer, protocol)
    case.produce(topic, ["a", "b", "c"], partition=1)
    owner = next(m for m in members if (topic, 1) in m.state().assignment)
    owner.commit({(topic, 1): 1})
    group = described(admin, case.group)
    assert (group.type, group.protocol_type, group.state) == (protocol, "consumer", "Stable")
    assert [member.instance_id for member in group.members] == ["i0", "i1"]
    for member, actual in zip(group.members, members, strict=True):
        held = {(entry.topic, p) for entry in member.assignment for p in entry.partitions}
        assert held == actual.state().assignment
        assert (member.protocol, member.state, member.host) == (protocol, "stable", "127.0.0.1")
        assert member.subscribed_topics == (topic,)
    (row,) = [row for row in group.offsets if row.partition == 1]
    assert (row.committed_offset, row.log_end_offset, row.lag) == (1, 3, 2)
    assert row.instance_id == f"i{members.index(owner)}"
    assert group.total_lag == 2
    assert group.coordinator is not None
    assert (group.group_epoch is None) is (protocol == "classic")
    listed = {g.group_id: g for g in list_groups(admin, count_members=True).groups}[case.group]
    assert (listed.type, listed.state, listed.members) == (protocol, "Stable", 2)


@PROTOCOLS
def test_describe_agrees_with_kafkas_own_tool(
    case: Case, consumer: Client, admin: ClusterView, protocol: str
) -> None:
    topic, members = static_pair(case, consumer, protocol)
    case.produce(topic, ["a", "b"], partition=0)
    for member in members:
        member.commit(dict.fromkeys(member.state().assignment, 0))
    group = described(admin, case.group)
    printed = case.server.tool("kafka-consumer-groups", "--describe", "--group", case.group).stdout
    theirs = {
        (cells[1], int(cells[2])): (int(cells[3]), int(cells[4]), int(cells[5]), cells[6], cells[7])
        for line in printed.splitlines()
        if len(cells := line.split()) >= 9 and cells[0] == case.group
    }
    hosts = {member.member_id: f"/{member.host}" for member in group.members}
    ours = {
        (r.topic, r.partition): (
            r.committed_offset,
            r.log_end_offset,
            r.lag,
            r.member_id,
            hosts.get(r.member_id or ""),
        )
        for r in group.offsets
    }
    assert ours == theirs
    assert len(ours) == 4
    state = case.server.tool("kafka-consumer-groups", "--describe", "--state", "--group", case.group).stdout
    row = next(line for line in state.splitlines() if line.startswith(case.group))
    assert f"({group.coordinator.id if group.coordinator else None})" in row
    assert re.search(rf"\s{group.assignor}\s+{group.state}\s+{len(group.members)}\s*$", row)
    (place,) = locate(admin, [case.group])
    assert (place.coordinator, place.offsets_partition) == (group.coordinator, group.offsets_partition)


@PROTOCOLS
def test_sm_61_removal_by_instance_id_moves_the_partitions(
    case: Case, consumer: Client, admin: ClusterView, protocol: str
) -> None:
    """SM-53, SM-55, SM-61, SM-65: static members that are away are removed long before their session ends."""
    topic, members = static_pair(case, consumer, protocol)
    case.close(members[0])
    if protocol == "consumer":
        away = eventually(
            lambda: [f for f in describe(admin, [case.group]).groups[0].findings if f.code == "KG103"]
        )
        assert away[0].message.startswith("i0 shut down without leaving for good: partitions ")
    plan = plan_removal(admin, case.group, Selection(instance_ids=("i0", "ghost")), "drained")
    assert [(item.instance_id, item.result) for item in plan.items] == [
        ("i0", "planned"),
        ("ghost", "not_found"),
    ]
    assert len(describe(admin, [case.group]).groups[0].members) == 2
    done = execute_removal(admin, plan)
    assert [(item.instance_id, item.result, item.error_code) for item in done.items] == [
        ("i0", "removed", None),
        ("ghost", "not_found", "UNKNOWN_MEMBER_ID"),
    ]
    settle(members[1:], case.partitions(topic))
    with pytest.raises(SafetyRefused, match="stale"):
        execute_removal(admin, plan)
    entry = admin.journal.find("LAST")
    assert entry is not None
    assert (entry.id, entry.plan["reason"]) == (done.journal_id, "drained")


@PROTOCOLS
def test_removing_everybody_by_host(case: Case, consumer: Client, admin: ClusterView, protocol: str) -> None:
    _, members = static_pair(case, consumer, protocol)
    for member in members:
        case.close(member)
    plan = plan_removal(admin, case.group, Selection(hosts=("127.0.0.*",)))
    assert {item.result for item in execute_removal(admin, plan).items} == {"removed"}
    assert described(admin, case.group, "Empty").members == ()


def test_groups_are_deleted_once_they_are_empty(case: Case, consumer: Client, admin: ClusterView) -> None:
    topic = case.topic()
    member = case.join(consumer, topic)
    settle([member], case.partitions(topic))
    member.commit({(topic, 0): 7})
    (refused,) = delete_groups(admin, [case.group]).items
    assert (refused.result, refused.error_code) == ("failed", "NON_EMPTY_GROUP")
    case.close(member)
    empty = described(admin, case.group, "Empty")
    assert "KG304" in {finding.code for finding in empty.findings}
    deletion = delete_groups(admin, [case.group, "never-was"])
    assert [(item.result, item.error_code) for item in deletion.items] == [
        ("deleted", None),
        ("not_found", "GROUP_ID_NOT_FOUND"),
    ]
    entry = admin.journal.find("LAST")
    assert entry is not None
    assert entry.before["offsets"][case.group][0][:3] == [topic, 0, 7]
    assert [error.code for error in describe(admin, [case.group]).errors] == ["GROUP_ID_NOT_FOUND"]


def test_an_unknown_group_and_a_topic_that_is_there_already(case: Case, admin: ClusterView) -> None:
    with pytest.raises(BrokerRefused, match="GROUP_ID_NOT_FOUND"):
        plan_removal(admin, "never-was", Selection(all=True))
    topic = f"{case.group}-made"
    made = create_topic(admin, topic, 3, 1)
    assert [partition.leader for partition in made.partitions] == [cluster_status(admin).brokers[0].id] * 3
    assert [asdict(known) for known in topics(admin, [topic])] == [asdict(made)]
    with pytest.raises(BrokerRefused, match="TOPIC_ALREADY_EXISTS"):
        create_topic(admin, topic, 3, 1)
    case.produce(topic, ["x"], partition=2)
    partition = TopicPartition(topic, 2)
    ends = list_offsets(admin, {partition: LATEST, TopicPartition(topic, 0): EARLIEST})
    assert [end.offset for end in ends.values() if isinstance(end, ListedOffset)] == [1, 0]


def test_the_controller_tells_the_time_by_which_a_quiet_cluster_is_judged(
    case: Case, admin: ClusterView
) -> None:
    """Five minutes between the clocks, and no commit for longer: Kafka's controller knows how late it is."""
    here_ms = admin.now_ms() + 300_000
    admin.now_ms = lambda: here_ms
    clock = clock_of(admin, here_ms)
    if case.server.kind == "kafka":
        assert clock.off is not None and clock.off.endswith("s ahead of the controller's")
        assert clock.off_ms is not None and 0 < clock.off_ms <= 300_000
    else:
        assert clock.off_ms is None
