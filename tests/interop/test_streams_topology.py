"""A topology that changes while an application rolls: what Kafka 4.3.1 answers, and what ours does.

Kafka 4.3.1 keeps the first topology of a streams group until the group is deleted. Another one is refused
whatever its epoch, also in an empty group; a thread of an older epoch may stay, and is told that it is stale.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kgroup.errors import ErrorCode
from kgroup.protocol.messages.delete_groups import DeleteGroupsRequest
from kgroup.protocol.messages.streams_group_describe import StreamsGroupDescribeRequest
from kgroup.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Topology
from kgroup.protocol.streams_records import Subtopology, TopicInfo

from .conftest import ASKED, KINDS, require
from .coordinating import coordinates
from .peer import Peer

pytestmark = pytest.mark.interop

AT_ONCE = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
}
REFUSED = (int(ErrorCode.INVALID_REQUEST), "Topology updates are not supported yet.")
STALE = 0


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Peer]]:
    """Kafka and ours, both with nothing in them."""
    require("java", "mvn")
    folders = {kind: tmp_path_factory.mktemp(kind) for kind in KINDS}
    with (
        KINDS["kafka"](AT_ONCE, base=folders["kafka"]) as kafka,
        KINDS["kgroup"](AT_ONCE, base=folders["kgroup"]) as ours,
    ):
        coordinates(kafka)
        coordinates(ours)
        both = [Peer(kafka), Peer(ours)]
        yield both
        for peer in both:
            peer.close()


class Rolling:
    """Threads of an application on one server, and all that they were told."""

    def __init__(self, peer: Peer, epoch: int) -> None:
        self.peer, self.group = peer, f"app-{uuid.uuid4().hex[:8]}"
        part = Subtopology(subtopology_id="0", source_topics=(peer.topic,))
        self.first = Topology(epoch=epoch, subtopologies=(part,))
        counts = replace(part, state_changelog_topics=(TopicInfo(name=f"{peer.topic}-counts-changelog"),))
        self.second = replace(self.first, subtopologies=(counts,))
        self.seen: list[Any] = []

    def joins(self, member: str, topology: Topology) -> tuple[int, str | None]:
        """What a thread is told that starts with a topology; the statuses, and its tasks, are `seen`."""
        answer = self._beat(member, 0, topology=topology)
        statuses = [(s.status_code, self._text(s.status_detail)) for s in answer.status or ()]
        tasks = [(ids.subtopology_id, ids.partitions) for ids in answer.active_tasks or ()]
        self.seen.append((member, answer.member_epoch, sorted(statuses), tasks))
        return answer.error_code, self._text(answer.error_message)

    def goes(self, member: str) -> int:
        code: int = self._beat(member, -1).error_code
        return code

    def state(self) -> Any:
        """The group's state, epochs and topology epoch, and that of each member."""
        (told,) = self.peer(StreamsGroupDescribeRequest(group_ids=(self.group,))).groups
        members = sorted((m.member_id, m.topology_epoch, m.member_epoch) for m in told.members)
        epoch = told.topology.epoch if told.topology else None
        return told.error_code, told.group_state, told.group_epoch, told.assignment_epoch, epoch, members

    def is_deleted(self) -> int:
        (result,) = self.peer(DeleteGroupsRequest(groups_names=(self.group,))).results
        code: int = result.error_code
        return code

    def _text(self, text: str | None) -> str | None:
        return None if text is None else text.replace(self.group, "GROUP").replace(self.peer.topic, "TOPIC")

    def _beat(self, member: str, epoch: int, **fields: Any) -> Any:
        joins = {"process_id": f"process of {member}", "rebalance_timeout_ms": 60_000, "client_tags": ()}
        none = {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()}
        return self.peer(
            StreamsGroupHeartbeatRequest(
                group_id=self.group,
                member_id=member,
                member_epoch=epoch,
                **(joins | none if epoch == 0 else {}),
                **fields,
            )
        )


def rolled(peer: Peer) -> list[Any]:
    """An application whose new topology rolls out, thread by thread; everything it was told."""
    app = Rolling(peer, epoch=3)
    newer = replace(app.second, epoch=4)
    assert app.joins("a", app.first) == (0, None)
    assert app.joins("b", app.first) == (0, None)
    app.seen.append(app.state())
    # b restarts with the new topology: with the same epoch, with the next, and as it was under the next.
    assert app.goes("b") == 0
    assert app.joins("b", app.second) == REFUSED
    assert app.joins("b", newer) == REFUSED
    assert app.joins("b", replace(app.first, epoch=4)) == REFUSED
    app.seen.append(app.state())
    # A thread that was not rolled for long is behind: it may stay, whatever it runs.
    assert app.joins("c", replace(app.second, epoch=2)) == (0, None)
    assert [code for code, _ in app.seen[-1][2]] == [STALE]
    app.seen.append(app.state())
    assert (app.goes("a"), app.goes("c")) == (0, 0)
    # All are gone, and the topology is still there.
    assert app.joins("a", newer) == REFUSED
    app.seen.append(app.state())
    assert app.is_deleted() == 0
    assert app.joins("a", newer) == (0, None)
    app.seen.append(app.state()[:-1])
    return app.seen


@pytest.mark.skipif(
    set(ASKED) != {"kafka", "kgroup"}, reason="one server alone has nothing to be compared to"
)
def test_a_topology_that_rolls_is_answered_as_by_kafka(peers: list[Peer]) -> None:
    """AE-32: what a thread of another topology is told, and that the group keeps the first."""
    for peer in peers:
        peer.create(partitions=2)
        peer.settle(peer.topic, 2)
    kafkas, ours = (rolled(peer) for peer in peers)
    assert [pair for pair in zip(ours, kafkas, strict=True) if pair[0] != pair[1]] == []
