"""A cluster of two brokers and three groups, and the ways in which some of it cannot be seen.

`healthy` is the world with nothing hidden; each scene takes one thing out of sight. Fakes only: brokers that
answer what is written here, and a clock that moves when somebody sleeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kgroup.domain import OFFSETS_TOPIC, offsets_partition_of
from kgroup.errors import ErrorCode
from kgroup.protocol.messages import consumer_group_describe as cgd
from kgroup.protocol.messages import describe_groups as dg
from kgroup.protocol.messages import list_groups as lg
from kgroup.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, FinalizedFeatureKey
from kgroup.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kgroup.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from kgroup.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kgroup.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.unit.admin.fake_cluster import FakeCluster
from tests.unit.admin.groups import Groups, classic_group, classic_member, consumer_group, consumer_member

READER, OTHER, IDLE = "g-reader", "g-other", "g-idle"
"""A classic group with a member, a consumer group with one, and one with offsets only. See `_homes`."""
OFFSETS_PARTITIONS = 8
STREAMS_GROUP_DESCRIBE = 89


@dataclass
class World:
    """The fake brokers, and what they know of groups."""

    fake: FakeCluster
    groups: Groups

    def __post_init__(self) -> None:
        self.untold: set[str] = set()
        self.fake.on(lg.ListGroupsRequest, self._list)
        self.fake.on(FindCoordinatorRequest, self._find)
        for request, names in (
            (cgd.ConsumerGroupDescribeRequest, lambda asked: asked.group_ids),
            (dg.DescribeGroupsRequest, lambda asked: asked.groups),
        ):
            self._guard(request, names)
        answer = self.fake.handlers[OffsetFetchRequest]
        self.fake.on(OffsetFetchRequest, lambda node, asked: self._only_allowed(answer(node, asked)))

    def home(self, group: str) -> int:
        """The broker that leads the group's partition of the offsets topic; -1 for none."""
        number = offsets_partition_of(group, OFFSETS_PARTITIONS)
        return self.fake.leaders.get("__consumer_offsets", {}).get(number, 1 + number % 2)

    def _list(self, node: int, request: lg.ListGroupsRequest) -> lg.ListGroupsResponse:
        known = {**self.groups.classic, **self.groups.consumer, **self.groups.share}
        allowed = self.fake.allowed_groups
        everything = self.fake.cluster_operations & 1 << 8
        rows = [
            lg.ListedGroup(
                group_id=name,
                protocol_type="share" if name in self.groups.share else "consumer",
                group_state=group.group_state,
                group_type=self._type_of(name),
            )
            for name, group in known.items()
            if everything or allowed is None or name in allowed
        ]
        rows += [
            lg.ListedGroup(group_id=name, protocol_type=kind, group_state="Stable", group_type=kind)
            for name, kind in self.groups.listed.items()
        ]
        return lg.ListGroupsResponse(groups=tuple(row for row in rows if self.home(row.group_id) == node))

    def _type_of(self, group: str) -> str:
        if group in self.groups.share:
            return "Share"
        return "Consumer" if group in self.groups.consumer else "Classic"

    def _find(self, node: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            coordinators=tuple(
                Coordinator(key=key, node_id=home, host=f"b{home}", port=9092)
                if self._may_describe(key) and (home := self.home(key)) > 0
                else Coordinator(key=key, error_code=self._no_coordinator(key))
                for key in request.coordinator_keys
            )
        )

    def _may_describe(self, group: str) -> bool:
        return self.fake.allowed_groups is None or group in self.fake.allowed_groups

    def _no_coordinator(self, group: str) -> ErrorCode:
        if self._may_describe(group):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return ErrorCode.GROUP_AUTHORIZATION_FAILED

    def _guard(self, request: type, names: Callable) -> None:
        """Refuse groups that the principal may not describe, as brokers do."""
        told = self.fake.handlers[request]

        def answer(node: int, asked: object) -> object:
            allowed = self.fake.allowed_groups
            denied = [name for name in names(asked) if allowed is not None and name not in allowed]
            found = told(node, asked)
            kind = (
                cgd.DescribedGroup
                if isinstance(found, cgd.ConsumerGroupDescribeResponse)
                else dg.DescribedGroup
            )
            rows = tuple(
                kind(group_id=row.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
                if row.group_id in denied
                else row
                for row in found.groups
            )
            return type(found)(groups=rows)

        self.fake.on(request, answer)

    def _only_allowed(self, answer: object) -> object:
        """Without the topics that the principal may not describe, in silence, as brokers do."""
        allowed = self.fake.allowed_topics
        if allowed is None:
            return answer
        groups = tuple(
            replace(group, topics=tuple(t for t in group.topics if t.name in allowed))
            for group in answer.groups
        )
        return replace(answer, groups=groups)


_SETTINGS = DescribeConfigsResult(
    configs=tuple(
        DescribeConfigsResourceResult(name=name, value=value)
        for name, value in (
            ("group.consumer.migration.policy", "bidirectional"),
            ("group.consumer.max.size", "100"),
            ("group.max.size", "100"),
            ("offsets.retention.minutes", "10080"),
        )
    )
)


def _settings(node: int, asked: DescribeConfigsRequest) -> DescribeConfigsResponse:
    named = (replace(_SETTINGS, resource_name=each.resource_name) for each in asked.resources)
    return DescribeConfigsResponse(results=tuple(named))


_FEATURES = ApiVersionsResponse(
    finalized_features_epoch=1,
    finalized_features=(FinalizedFeatureKey(name="group.version", max_version_level=1, min_version_level=1),),
)


def _no_records(node: int, request: FetchRequest) -> FetchResponse:
    """An offsets topic whose records were all compacted away."""
    parts = tuple(PartitionData(partition_index=p.partition) for p in request.topics[0].partitions)
    return FetchResponse(responses=(FetchableTopicResponse(topic=OFFSETS_TOPIC, partitions=parts),))


def healthy() -> World:
    """Nothing hidden: three groups, all read to the end but for ten records of the idle one."""
    fake = FakeCluster(topics={"orders": 4, "pay": 2, "__consumer_offsets": OFFSETS_PARTITIONS})
    groups = Groups(fake)
    groups.ends = {f"orders:{p}": 100 for p in range(4)} | {f"pay:{p}": 100 for p in range(2)}
    groups.starts = dict.fromkeys(groups.ends, 0)
    groups.add(
        classic_group(READER, classic_member("m1", "orders:0,1,2,3", "i-1")),
        consumer_group(OTHER, consumer_member("m2", "orders:0,1,2,3", instance="i-2")),
        classic_group(IDLE, state="Empty"),
    )
    for name in (READER, OTHER):
        groups.committed[name] = {f"orders:{p}": 100 for p in range(4)}
    groups.committed[IDLE] = {"pay:0": 95, "pay:1": 95}
    data_logs = fake.handlers[FetchRequest]
    fake.on(
        FetchRequest,
        lambda node, asked: (
            _no_records(node, asked) if asked.topics[0].topic == OFFSETS_TOPIC else data_logs(node, asked)
        ),
    )
    fake.on(DescribeConfigsRequest, _settings)
    fake.on(ApiVersionsRequest, lambda node, asked: _FEATURES)
    world = World(fake, groups)
    assert {world.home(READER), world.home(IDLE)} == {1, 2}, "a scene hides one and leaves the other"
    return world


def a_broker_down() -> World:
    """The broker of one of the groups is in the metadata and answers nothing."""
    world = healthy()
    world.fake.down.add(world.home(IDLE))
    return world


def a_leaderless_offsets_partition() -> World:
    """Nobody leads the partition that holds one of the groups; every broker answers."""
    world = healthy()
    world.fake.leaders["__consumer_offsets"] = {offsets_partition_of(IDLE, OFFSETS_PARTITIONS): -1}
    return world


def members_not_told() -> World:
    """A group of a type whose members this broker does not tell."""
    world = healthy()
    world.fake.served[STREAMS_GROUP_DESCRIBE] = None
    world.groups.listed = {"g-streams": "streams"}
    return world


def an_undecodable_assignment() -> World:
    """A reader whose assignment is in bytes that do not decode."""
    world = healthy()
    member = dg.DescribedGroupMember(
        member_id="m1",
        client_id="c",
        client_host="/10.0.0.1",
        member_metadata=b"\xff\xff",
        member_assignment=b"\xff\xff\xff",
    )
    world.groups.add(classic_group(READER, member))
    return world


def nothing_committed() -> World:
    """A live reader that has committed nothing, with 100 records in each partition."""
    world = healthy()
    world.groups.committed[READER] = {}
    return world


def no_right_to_topics() -> World:
    """The principal may describe the groups, and none of the topics."""
    world = healthy()
    world.fake.allowed_topics = set()
    return world


def no_right_to_list() -> World:
    """The principal may describe two of the groups by name, and not the cluster."""
    world = healthy()
    world.fake.allowed_groups = {READER, OTHER}
    world.fake.cluster_operations = 0
    return world


SCENES: dict[str, Callable[[], World]] = {
    made.__name__: made
    for made in (
        healthy,
        a_broker_down,
        a_leaderless_offsets_partition,
        members_not_told,
        an_undecodable_assignment,
        nothing_committed,
        no_right_to_topics,
        no_right_to_list,
    )
}
