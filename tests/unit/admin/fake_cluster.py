"""A cluster behind the Transport protocol: handlers by request class, every message through its bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kgroup.admin.discovery import ClusterView
from kgroup.admin.journal import Journal
from kgroup.admin.read.visibility import NOT_ASKED
from kgroup.client.retry import Limit, OutcomeUnknown, Retry
from kgroup.errors import BrokerRefused, ErrorCode, Unreachable
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kgroup.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kgroup.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kgroup.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kgroup.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kgroup.protocol.registry import known, request_class

Handler = Callable[[int, Any], Message]


class ManualTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class FakeCluster:
    """Brokers 1 and 2; groups live on broker `coordinator_of`, by default on 1; topics by partition count.

    `leaders` are those that differ from the usual (-1: none). Brokers `down` are in the metadata and answer
    nothing; each answer of the `slow` ones takes so many seconds of `time`. `allowed_topics` and
    `allowed_groups` are all that the principal may describe; None: any.
    """

    handlers: dict[type[Message], Handler] = field(default_factory=dict)
    served: dict[int, range | None] = field(default_factory=dict)
    brokers: tuple[int, ...] = (1, 2)
    coordinator_of: dict[str, int] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    leaders: dict[str, dict[int, int]] = field(default_factory=dict)
    down: set[int] = field(default_factory=set)
    slow: dict[int, float] = field(default_factory=dict)
    limit: Limit = field(default_factory=Limit)
    cut: list[str] = field(default_factory=list)
    allowed_topics: set[str] | None = None
    allowed_groups: set[str] | None = None
    cluster_operations: int = 0xFF8
    sent: list[tuple[int | None, Message, int]] = field(default_factory=list)
    time: ManualTime = field(default_factory=ManualTime)

    concurrent = False

    def __post_init__(self) -> None:
        self.handlers.setdefault(FindCoordinatorRequest, self._find_coordinator)
        self.handlers.setdefault(MetadataRequest, self._metadata)
        self.handlers.setdefault(DescribeClusterRequest, self._describe_cluster)
        # As a principal is answered that may not describe the cluster.
        denied = DescribeQuorumResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        self.handlers.setdefault(DescribeQuorumRequest, lambda *_: denied)
        self.handlers.setdefault(DescribeConfigsRequest, self._describe_configs)
        self.handlers.setdefault(DescribeGroupsRequest, self._describe_groups)

    def cluster(self, timeout_s: float = 10.0, journal: Journal | None = None) -> ClusterView:
        return ClusterView(self, self.retry(timeout_s), journal=journal)

    def retry(self, timeout_s: float = 10.0) -> Retry:
        return Retry(timeout_s, clock=self.time, sleep=self.time.sleep, chance=lambda: 0.5)

    def on(self, request: type[Message], handler: Handler) -> FakeCluster:
        self.handlers[request] = handler
        return self

    def requests(self, kind: type[Message]) -> list[Any]:
        return [message for _, message, _ in self.sent if isinstance(message, kind)]

    def request(
        self,
        node: int | None,
        message: Message,
        *,
        min_version: int = 0,
        max_version: int | None = None,
        timeout_s: float | None = None,
    ) -> Message:
        ours = type(message).VERSIONS
        served = self.versions(node, message.API)
        highest = ours[-1] if max_version is None else max_version
        version = min(highest, ours[-1], served[-1]) if served else -1
        if version < max(min_version, ours[0]):
            raise BrokerRefused(ErrorCode.UNSUPPORTED_VERSION, f"{type(message).__name__}: no common version")
        arrived = type(message).decode(message.encode(version), version)
        up = sorted(set(self.brokers) - self.down, key=lambda n: self.slow.get(n, 0.0))
        node = next(iter(up), node) if node is None else node
        if node is None or node in self.down:
            raise Unreachable("no broker answers" if node is None else f"broker {node} is down")
        if node in self.slow:
            self._take_time(node, type(message).__name__, timeout_s)
        self.sent.append((node, arrived, version))
        answer = self.handlers[type(message)](node, arrived)
        return type(answer).decode(answer.encode(version), version)

    def _take_time(self, node: int, name: str, timeout_s: float | None) -> None:
        """Let the time of an answer pass; raise what a transport does when there is not enough of it."""
        left = self.limit.left()
        if left <= 0:
            self.cut.append(name)
            raise self.limit.over()
        allowed = min(left, 30.0 if timeout_s is None else timeout_s)
        self.time.sleep(min(self.slow[node], allowed))
        if self.slow[node] > allowed:
            self.cut.append(name)
            raise OutcomeUnknown(f"broker {node} did not answer {name} in time")

    def versions(self, node: int | None, api_key: int) -> range | None:
        if api_key in self.served:
            return self.served[api_key]
        return request_class(api_key).VERSIONS if known(api_key) else None

    def nodes(self) -> Mapping[int, tuple[str, int]]:
        return {node: (f"b{node}", 9092) for node in self.brokers}

    def close(self) -> None: ...

    def _find_coordinator(self, node: int, request: FindCoordinatorRequest) -> Message:
        def found(key: str) -> dict[str, Any]:
            home = self.coordinator_of.get(key, 1)
            return {"node_id": home, "host": f"b{home}", "port": 9092}

        if not request.coordinator_keys:
            return FindCoordinatorResponse(**found(request.key))
        keys = request.coordinator_keys
        return FindCoordinatorResponse(coordinators=tuple(Coordinator(key=key, **found(key)) for key in keys))

    def _describe_cluster(self, node: int, request: DescribeClusterRequest) -> Message:
        told = self.cluster_operations if request.include_cluster_authorized_operations else NOT_ASKED
        return DescribeClusterResponse(cluster_id="fake", cluster_authorized_operations=told)

    def _metadata(self, node: int, request: MetadataRequest) -> Message:
        names = [topic.name for topic in request.topics or ()]
        if request.topics is None:
            names = [n for n in self.topics if self.allowed_topics is None or n in self.allowed_topics]
        return MetadataResponse(
            brokers=tuple(MetadataResponseBroker(node_id=n, host=f"b{n}", port=9092) for n in self.brokers),
            cluster_id="fake",
            controller_id=1,
            topics=tuple(self._topic(name or "") for name in names),
        )

    def _topic(self, name: str) -> MetadataResponseTopic:
        if self.allowed_topics is not None and name not in self.allowed_topics:
            return MetadataResponseTopic(name=name, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if name not in self.topics:
            return MetadataResponseTopic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partitions = tuple(
            MetadataResponsePartition(
                partition_index=p,
                leader_id=self.leaders.get(name, {}).get(p, 1 + p % len(self.brokers)),
                replica_nodes=(1 + p % len(self.brokers),),
                isr_nodes=(1 + p % len(self.brokers),),
            )
            for p in range(self.topics[name])
        )
        return MetadataResponseTopic(name=name, partitions=partitions)

    @staticmethod
    def _describe_groups(node: int, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        """No group is there, and each would be on the broker that is asked."""
        dead = (DescribedGroup(group_id=name, group_state="Dead") for name in request.groups)
        return DescribeGroupsResponse(groups=tuple(dead))

    @staticmethod
    def _describe_configs(node: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        """No resource has any of the settings that are asked for."""
        return DescribeConfigsResponse(
            results=tuple(
                DescribeConfigsResult(resource_type=each.resource_type, resource_name=each.resource_name)
                for each in request.resources
            )
        )
