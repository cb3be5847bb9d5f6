"""A tree as Kafka 0.8 to 1.1 leaves it, in memory, and brokers that know no ApiVersions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kgroup.admin.models import Node
from kgroup.client.retry import Retry
from kgroup.errors import KgroupError
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kgroup.protocol.messages.list_offsets_0 import (
    ListOffsets0PartitionResponse,
    ListOffsets0Request,
    ListOffsets0Response,
    ListOffsets0TopicResponse,
)
from kgroup.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kgroup.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from kgroup.zookeeper.groups.brokers import OldCluster
from kgroup.zookeeper.groups.groups import Groups
from kgroup.zookeeper.store.operations import Create, Delete, Exists, Failure, Result, SetData, Stat
from kgroup.zookeeper.store.tree import Tree

BROKER = Node(1, "b1", 9092)
SERVED = {2: range(1), 3: range(1), 9: range(1, 2), 10: range(1)}


class OldTree:
    """Nodes with parents made as needed; `now_ms` is when the next one is written."""

    def __init__(self, chroot: str = "") -> None:
        self.tree = Tree()
        self.now_ms = 1_000
        self.writer = self.tree.open()
        self.reader = self.tree.open(chroot=chroot)
        self.chroot = chroot

    def put(self, path: str, data: str | bytes = b"", *, ephemeral: bool = False) -> None:
        """A node with this data, made or changed."""
        names = f"{self.chroot}{path}".strip("/").split("/")
        raw = data.encode() if isinstance(data, str) else data
        for depth in range(1, len(names) + 1):
            at, last = "/" + "/".join(names[:depth]), depth == len(names)
            (there,) = self.tree.ask(self.writer, (Exists(at),))
            if isinstance(there, Stat):
                ops = (SetData(at, raw),) if last else ()
            else:
                ops = (Create(at, raw if last else b"", ephemeral and last),)
            for answer in self.tree.ask(self.writer, ops, now_ms=self.now_ms) if ops else ():
                assert not isinstance(answer, Failure), (at, answer)

    def remove(self, path: str) -> None:
        """A node and all below it, where they are there."""
        for at in sorted(p for p, _ in self.tree.walk(f"{self.chroot}{path}"))[::-1]:
            self.tree.ask(self.writer, (Delete(at),))

    def topic(self, name: str, partitions: int) -> None:
        numbers = {str(number): [1] for number in range(partitions)}
        self.put(f"/brokers/topics/{name}", json.dumps({"version": 1, "partitions": numbers}))

    def broker(self, data: Mapping[str, Any] | None = None) -> None:
        plain = {"version": 1, "host": "b1", "port": 9092, "jmx_port": -1, "timestamp": "1"}
        self.put("/brokers/ids/1", json.dumps(data or plain), ephemeral=True)

    def consumer(self, group: str, name: str, topics: Mapping[str, int], pattern: str = "static") -> str:
        """A live consumer's registration; its id."""
        document = {"version": 1, "subscription": topics, "pattern": pattern, "timestamp": "1795303999791"}
        self.put(f"/consumers/{group}/ids/{group}_{name}", json.dumps(document), ephemeral=True)
        return f"{group}_{name}"

    def owner(self, group: str, topic: str, partition: int, consumer: str, *, lasting: bool = False) -> None:
        self.put(f"/consumers/{group}/owners/{topic}/{partition}", f"{consumer}-0", ephemeral=not lasting)

    def offset(self, group: str, topic: str, partition: int, offset: int | str) -> None:
        self.put(f"/consumers/{group}/offsets/{topic}/{partition}", str(offset))

    def deny(self, path: str) -> None:
        self.tree.deny(self.chroot + path)

    def ask(self, *ops: Any) -> tuple[Result, ...]:
        return self.tree.ask(self.reader, ops)

    def paths(self) -> set[str]:
        """Every node there is."""
        return {path for path, _ in self.tree.walk()}


class OldBroker:
    """One broker of Kafka 0.8.2: Metadata, ListOffsets and FindCoordinator 0, OffsetFetch 1, nothing else."""

    concurrent = False

    def __init__(
        self,
        ends: Mapping[tuple[str, int], int],
        kafka: Mapping[tuple[str, str, int], int] | None = None,
        starts: Mapping[tuple[str, int], int] | None = None,
    ) -> None:
        self.ends, self.kafka, self.starts = dict(ends), dict(kafka or {}), dict(starts or {})
        self.asked: list[Message] = []
        self.failure: dict[type[Message], KgroupError] = {}

    def request(
        self,
        node: int | None,
        message: Message,
        *,
        min_version: int = 0,
        max_version: int | None = None,
        timeout_s: float | None = None,
    ) -> Message:
        served = SERVED[message.API]
        assert max(min_version, message.VERSIONS[0]) <= served[-1], f"{message} in no version of 0.8.2"
        self.asked.append(message)
        if type(message) in self.failure:
            raise self.failure[type(message)]
        match message:
            case MetadataRequest():
                assert not message.topics, "asked by its name, a topic may be created"
                return self._metadata()
            case ListOffsets0Request():
                return self._offsets(message)
            case FindCoordinatorRequest():
                return FindCoordinatorResponse(node_id=1, host="b1", port=9092)
            case OffsetFetchRequest():
                return self._fetched(message)
        raise AssertionError(f"0.8.2 does not know {message}")

    def versions(self, node: int | None, api_key: int) -> range | None:
        return SERVED.get(api_key)

    def nodes(self) -> Mapping[int, tuple[str, int]]:
        return {1: ("b1", 9092)}

    def close(self) -> None:
        pass

    def groups(self, tree: OldTree) -> Groups:
        """The groups of a tree whose only broker this is."""
        return Groups(tree.ask, lambda alive: OldCluster(self, Retry(timeout_s=0.0)), lambda *_: {})

    def _metadata(self) -> MetadataResponse:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in self.ends:
            by_topic.setdefault(topic, []).append(partition)
        topics = tuple(
            MetadataResponseTopic(
                name=name,
                partitions=tuple(
                    MetadataResponsePartition(
                        partition_index=n, leader_id=1, replica_nodes=(1,), isr_nodes=(1,)
                    )
                    for n in numbers
                ),
            )
            for name, numbers in by_topic.items()
        )
        return MetadataResponse(
            brokers=(MetadataResponseBroker(node_id=1, host="b1", port=9092),), topics=topics
        )

    def _offsets(self, request: ListOffsets0Request) -> ListOffsets0Response:
        def at(topic: str, asked: Any) -> ListOffsets0PartitionResponse:
            key = (topic, asked.partition_index)
            found = self.ends[key] if asked.timestamp == -1 else self.starts.get(key, 0)
            return ListOffsets0PartitionResponse(partition_index=asked.partition_index, offsets=(found,))

        return ListOffsets0Response(
            topics=tuple(
                ListOffsets0TopicResponse(name=t.name, partitions=tuple(at(t.name, p) for p in t.partitions))
                for t in request.topics
            )
        )

    def _fetched(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        return OffsetFetchResponse(
            topics=tuple(
                OffsetFetchResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        OffsetFetchResponsePartition(
                            partition_index=n,
                            committed_offset=self.kafka.get((request.group_id, topic.name, n), -1),
                            metadata="",
                            error_code=0,
                        )
                        for n in topic.partition_indexes
                    ),
                )
                for topic in request.topics or ()
            )
        )
