"""What a broker wrote to `__consumer_offsets` loads into our coordinator, and describes as the broker does.

Runs last, so that it also covers every group the tests before it left on the server.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kgroup.client.transport import SocketTransport
from kgroup.coordinator.config import GroupConfig
from kgroup.coordinator.outcome import Request
from kgroup.domain import Topic, TopicImage, offsets_partition_of
from kgroup.log.partition import PartitionLog
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest
from kgroup.protocol.messages.list_groups import ListGroupsRequest
from kgroup.protocol.messages.metadata import MetadataRequest
from kgroup.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kgroup.runtime.shard import Shard

from .conftest import Case
from .driver import Client, settle
from .server import Server
from .waiting import eventually

pytestmark = [pytest.mark.interop]


def image_of(transport: SocketTransport) -> TopicImage:
    """The topics as the broker knows them."""
    answer: Any = transport.request(None, MetadataRequest(topics=None))
    return TopicImage.of(Topic(t.name, t.topic_id, len(t.partitions)) for t in answer.topics)


def loaded(server: Server, image: TopicImage, folder: Path) -> list[Shard]:
    """Our coordinators of copies of the broker's offsets partitions, by number."""
    shards = []
    for source in sorted(
        server.data_dir.rglob("__consumer_offsets-*"), key=lambda p: int(p.name.rpartition("-")[2])
    ):
        copy = folder / source.name
        copy.mkdir()
        for segment in source.glob("*.log"):
            shutil.copy(segment, copy)
        number = int(source.name.rpartition("-")[2])
        shard = Shard(number, PartitionLog(copy), GroupConfig(), 1, image)
        shard.load(0)
        shards.append(shard)
    return shards


class Ours:
    """Asks the shard that holds a group."""

    def __init__(self, shards: list[Shard]) -> None:
        self.shards = shards

    def ask(self, group: str, body: Message, version: int) -> Any:
        shard = self.shards[offsets_partition_of(group, len(self.shards))]
        (reply,) = shard.submit(1, Request(body, version, "test", "/127.0.0.1"), 0)
        return reply.response

    def listed(self) -> dict[str, tuple[str, str, str]]:
        found = {}
        for shard in self.shards:
            (reply,) = shard.submit(1, Request(ListGroupsRequest(), 5, "test", "/127.0.0.1"), 0)
            found.update(_listed(reply.response))
        return found


def _listed(answer: Any) -> dict[str, tuple[str, str, str]]:
    return {g.group_id: (g.group_type.lower(), g.protocol_type, g.group_state) for g in answer.groups}


def classic(answer: Any) -> Any:
    """A classic group without the order of its members."""
    (group,) = answer.groups
    members = {
        m.member_id: (
            m.group_instance_id,
            m.client_id,
            m.client_host,
            bytes(m.member_metadata),
            bytes(m.member_assignment),
        )
        for m in group.members
    }
    return group.error_code, group.group_state, group.protocol_type, group.protocol_data, members


def consumer(answer: Any) -> Any:
    """A consumer group without the order of members, topics and partitions."""
    (group,) = answer.groups
    members = {
        m.member_id: (
            m.instance_id,
            m.rack_id,
            m.member_epoch,
            m.client_id,
            m.client_host,
            sorted(m.subscribed_topic_names),
            m.subscribed_topic_regex,
            _partitions(m.assignment),
            _partitions(m.target_assignment),
            m.member_type,
        )
        for m in group.members
    }
    epochs = group.group_epoch, group.assignment_epoch
    return group.error_code, group.group_state, epochs, group.assignor_name, members


def _partitions(assignment: Any) -> list[tuple[bytes, str, list[int]]]:
    return sorted((t.topic_id, t.topic_name, sorted(t.partitions)) for t in assignment.topic_partitions)


def offsets(answer: Any) -> Any:
    (group,) = answer.groups
    return {
        (topic.name, p.partition_index): (p.committed_offset, p.committed_leader_epoch, p.metadata)
        for topic in group.topics
        for p in topic.partitions
    }


def differences(transport: SocketTransport, ours: Ours) -> list[str]:
    """Everything the broker and our coordinator tell differently, group by group."""
    theirs = {
        name: row
        for name, row in _listed(transport.request(None, ListGroupsRequest())).items()
        if row[0] in ("classic", "consumer")
    }
    found = [] if (mine := ours.listed()) == theirs else [f"list: {theirs} but {mine}"]
    for group, (kind, *_) in theirs.items():
        if kind == "consumer":
            asked: Message = ConsumerGroupDescribeRequest(group_ids=(group,))
            shown, version = consumer, 1
        else:
            asked, shown, version = DescribeGroupsRequest(groups=(group,)), classic, 6
        pairs = [(asked, shown, version)]
        fetch = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=group, topics=None),))
        pairs.append((fetch, offsets, 9))
        for body, show, at in pairs:
            told = show(transport.request(None, body, max_version=at))
            own = show(ours.ask(group, body, at))
            if told != own:
                found.append(f"{group}: {told} but {own}")
    return found


def test_segments_of_a_broker_load_into_our_coordinator(
    case: Case, java_client: Client, clients: Any, transport: SocketTransport, tmp_path: Path
) -> None:
    """CP-55, AE-* replay: members, epochs, assignments, targets and offsets agree for every group."""
    topic, other = case.topic(4), case.topic(2, "u")
    everything = case.partitions(topic)
    librdkafka = clients("librdkafka")
    groups = {
        "classic": [case.join(librdkafka, topic, instance=f"c{n}") for n in range(2)],
    }
    settle(groups["classic"], everything, each=2)
    groups["classic"][0].commit({(topic, 0): 7})
    case.group += "-848"
    groups["consumer"] = [
        case.join(java_client, topic, protocol="consumer", instance="s0"),
        case.join(librdkafka, topic, protocol="consumer"),
    ]
    settle(groups["consumer"], everything, each=2)
    groups["consumer"][0].commit({(topic, 0): 3, (topic, 1): 4})
    case.close(groups["consumer"][0])
    eventually(lambda: [row for row in case.describe()["members"] if row["epoch"] == -2])
    case.group += "-u"
    settle([case.join(java_client, other, protocol="consumer")], case.partitions(other, 2))

    image = image_of(transport)
    rounds = iter(range(100))

    def agree() -> bool:
        folder = tmp_path / str(next(rounds))
        folder.mkdir()
        found = differences(transport, Ours(loaded(case.server, image, folder)))
        assert not found, "\n".join(found)
        return True

    eventually(agree)
