"""Static members of streams groups by raw requests, as no client sends them yet: Kafka 4.4.0 and ours."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kgroup.errors import ErrorCode
from kgroup.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kgroup.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kgroup.protocol.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    TaskIds,
    TaskOffset,
    Topology,
)
from kgroup.protocol.streams_records import Subtopology
from tests.own_home import move_in
from tests.ran import Ran, ran

from .conftest import KINDS, NEWEST, require
from .coordinating import coordinates
from .peer import Peer

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
AT_ONCE = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    # No member is to expire while commands look at it, on a busy machine either.
    "group.streams.max.session.timeout.ms": "600000",
    "group.streams.session.timeout.ms": "600000",
}
PARTITIONS = 4
LEAVES, LEAVES_FOR_NOW = -1, -2


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Peer]]:
    """Kafka 4.4.0 and ours, both with a topic of their own."""
    require("java", "mvn")
    kafka, ours = (kind(AT_ONCE, base=tmp_path_factory.mktemp(name)) for name, kind in KINDS.items())
    kafka.kafka = ours.kafka = NEWEST
    with kafka, ours:
        both = []
        for server in (kafka, ours):
            coordinates(server)
            peer = Peer(server)
            peer.create(partitions=PARTITIONS)
            both.append(peer)
        yield both
        for peer in both:
            peer.close()


class Application:
    """Threads of an application on one server, and everything that they were answered."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.group = peer, f"app-{uuid.uuid4().hex[:8]}"
        part = Subtopology(subtopology_id="0", source_topics=(peer.topic,))
        self.topology = Topology(epoch=0, subtopologies=(part,))
        self.seen: list[Any] = []
        self._epochs: dict[str, int] = {}

    def joins(self, member: str, instance: str | None, **fields: Any) -> int:
        """Join with the topology, as a new member or as one that comes back; the error code."""
        none = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": (), "client_tags": ()}
        joining = {"process_id": f"process of {member}", "rebalance_timeout_ms": 60_000, **none}
        return self._beat(member, 0, instance_id=instance, topology=self.topology, **(joining | fields))

    def beats(self, member: str, instance: str | None, **fields: Any) -> int:
        """A heartbeat in the epoch that the member was answered with last."""
        return self._beat(member, self._epochs.get(member, 1), instance_id=instance, **fields)

    def goes(self, member: str, instance: str | None, epoch: int) -> int:
        return self._beat(member, epoch, instance_id=instance)

    def has(self, member: str, instance: str | None, *tasks: int) -> int:
        """A heartbeat that owns these tasks and no others."""
        ids = (TaskIds(subtopology_id="0", partitions=tasks),) if tasks else ()
        return self.beats(member, instance, active_tasks=ids, standby_tasks=(), warmup_tasks=())

    def is_removed(self, instance: str) -> list[int]:
        """What LeaveGroup, the request of remove-members, is answered."""
        leaver = MemberIdentity(member_id="", group_instance_id=instance)
        answer = self.peer(LeaveGroupRequest(group_id=self.group, members=(leaver,)))
        codes = [answer.error_code, *(member.error_code for member in answer.members)]
        self.seen.append(("LeaveGroup", codes))
        return codes

    def look(self) -> Any:
        """The group as StreamsGroupDescribe shows it, without names that differ from server to server."""
        (told,) = self.peer(StreamsGroupDescribeRequest(group_ids=(self.group,))).groups
        members = sorted(
            (
                m.member_id,
                m.instance_id,
                m.member_epoch,
                m.process_id,
                _tasks(m.assignment.active_tasks),
                _tasks(m.target_assignment.active_tasks),
                [(o.partition, o.offset) for o in m.task_offsets],
            )
            for m in told.members
        )
        shown = (told.group_state, told.group_epoch, told.assignment_epoch, told.assignor_name, members)
        self.seen.append(("described", *shown))
        return shown

    def _beat(self, member: str, epoch: int, **fields: Any) -> int:
        request = StreamsGroupHeartbeatRequest(
            group_id=self.group, member_id=member, member_epoch=epoch, **fields
        )
        answer = self.peer(request)
        text = (answer.error_message or "").replace(self.group, "GROUP").replace(self.peer.topic, "TOPIC")
        tasks = None if answer.active_tasks is None else _tasks(answer.active_tasks)
        statuses = sorted(status.status_code for status in answer.status or ())
        self.seen.append((member, answer.error_code, text, answer.member_epoch, tasks, statuses))
        if not answer.error_code:
            self._epochs[member] = answer.member_epoch
        code: int = answer.error_code
        return code


def _tasks(entries: tuple[Any, ...]) -> list[tuple[str, tuple[int, ...]]]:
    return sorted((entry.subtopology_id, tuple(sorted(entry.partitions))) for entry in entries)


def two_static_members(app: Application) -> None:
    """Have "one" of member a and "two" of member b share the tasks."""
    assert app.joins("a", "one") == ErrorCode.NONE
    assert app.has("a", "one", *range(PARTITIONS)) == ErrorCode.NONE
    assert app.joins("b", "two") == ErrorCode.NONE
    assert app.has("a", "one", 0, 1) == ErrorCode.NONE
    assert app.has("b", "two", 2, 3) == ErrorCode.NONE


def lives(app: Application) -> list[Any]:
    """Two static members and a dynamic one: restarts, doubles, removals; everything that was answered."""
    ok, fenced, unreleased = ErrorCode.NONE, ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID
    two_static_members(app)
    offsets = (TaskOffset(subtopology_id="0", partition=2, offset=7),)
    app.beats("b", "two", task_offsets=offsets, task_end_offsets=offsets)
    app.look()
    # A second process with the id of a live member.
    assert app.joins("double", "one") == unreleased
    # It leaves for now: its tasks wait, and nobody else is told of it.
    assert app.goes("a", "one", LEAVES_FOR_NOW) == ok
    app.beats("b", "two")
    app.look()
    app.is_removed("one")
    app.look()
    # It comes back as another process, under another member id; the former one is fenced.
    assert app.joins("a2", "one") == ok
    app.has("a2", "one", 0, 1)
    assert app.beats("a", "one") == fenced
    app.look()
    # Ids that nobody or another member has, a member that names none, and members that are none.
    app.beats("b", "three")
    assert app.beats("b", "one") == fenced
    app.beats("b", None)
    app.goes("a2", "three", LEAVES_FOR_NOW)
    app.goes("nobody", "one", LEAVES_FOR_NOW)
    app.goes("nobody", None, LEAVES_FOR_NOW)
    app.joins("c", "")
    # A dynamic member beside them; one leaves for good, and returns as a new one.
    assert app.joins("d", None) == ok
    app.look()
    assert app.goes("a2", "one", LEAVES) == ok
    app.beats("b", "two")
    app.has("d", None)
    app.look()
    assert app.joins("a3", "one") == ok
    app.beats("b", "two")
    app.look()
    app.is_removed("two")
    return app.seen


def test_static_members_are_answered_as_by_kafka(peers: list[Peer]) -> None:
    """KIP-345 in streams groups, which Kafka 4.4 hosts: each heartbeat's answer, and what is described."""
    kafkas, ours = (lives(Application(peer)) for peer in peers)
    assert [pair for pair in zip(ours, kafkas, strict=True) if pair[0] != pair[1]] == []


def test_no_request_removes_a_static_member_that_left_for_now(peers: list[Peer]) -> None:
    """LeaveGroup is refused and the member stays, so `remove-members` refuses as well."""
    found = []
    for peer in peers:
        app = Application(peer)
        assert app.joins("a", "one") == ErrorCode.NONE
        assert app.goes("a", "one", LEAVES_FOR_NOW) == ErrorCode.NONE
        found.append(app.is_removed("one"))
        (_, _, _, _, members) = app.look()
        assert [(m[1], m[2]) for m in members] == [("one", LEAVES_FOR_NOW)]
    kafkas, ours = found
    assert ours == kafkas and any(ours)


def test_a_fenced_heartbeat_costs_tasks(peers: list[Peer]) -> None:
    """Kafka 4.4.0 renames in memory whose target it is before it checks the id, and fences only then.

    Until the next epoch the fenced member is answered with the other one's tasks.
    """
    for peer in peers:
        app = Application(peer)
        two_static_members(app)
        app.goes("a", "one", LEAVES_FOR_NOW)
        assert app.joins("a2", "one") == ErrorCode.NONE
        assert app.beats("b", "one") == ErrorCode.FENCED_INSTANCE_ID
        assert app.beats("b", "two") == ErrorCode.NONE
        assert app.seen[-1] == ("b", 0, "", 3, [], [])


def test_the_commands_show_static_members(
    peers: list[Peer], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of Kafka 4.4 and of ours: list, wait, describe, doctor, remove-members and the history of a restart."""
    move_in(monkeypatch, tmp_path)
    for peer in peers:
        app = Application(peer)

        def ask(*argv: str, at: str = peer.bootstrap) -> Ran:
            return ran(capsys, *argv, "-o", "json", "-b", at)

        two_static_members(app)
        static = ask("list", "--static-only").data["groups"]
        assert app.group in {group["group_id"] for group in static}
        assert ask("wait", app.group, "--for", "member=one", "--stop-after", "20s").code == 0
        members = ask("describe", app.group).group(app.group)["members"]
        assert [(m["instance_id"], m["member_id"], m["state"]) for m in members] == [
            ("one", "a", "stable"),
            ("two", "b", "stable"),
        ]
        app.goes("a", "one", LEAVES_FOR_NOW)
        away = ask("describe", app.group).group(app.group)
        assert [m["state"] for m in away["members"]] == ["left", "stable"]
        checked = ask("doctor", app.group, "--patience", "0s").group(app.group)
        (finding,) = (each for each in checked["findings"] if each["code"] == "KG103")
        assert finding["hint"] == "bring it back, or: wait for its session to end"
        refused = ask("remove-members", app.group, "--instance-id", "one")
        assert refused.code != 0 and "Kafka has no request to remove its members" in refused.err
        assert app.joins("a2", "one") == ErrorCode.NONE
        app.has("a2", "one", 0, 1)
        app.beats("b", "two")
        told = ask("replay-log", app.group).data["events"]
        assert [
            (e["event"], e["instance_id"])
            for e in told
            if e["event"] in ("member-left-for-now", "member-replaced")
        ] == [("member-left-for-now", "one"), ("member-replaced", "one")]
        verified = ask("replay-log", app.group, "--verify")
        assert (verified.code, [row["verdict"] for row in verified.data["groups"]]) == (0, ["same"])
        blamed = ask("blame", app.group)
        assert blamed.code == 0 and "one" in blamed.out
