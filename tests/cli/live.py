"""A cluster of ours on TCP in this process, and groups with members in it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.describe import describe
from kgroup.admin.topics import create_topic
from kgroup.client.settings import ConnectionSettings, parse_bootstrap
from kgroup.client.transport import SocketTransport
from kgroup.domain import TopicPartition, uuid_text
from kgroup.errors import ErrorCode, KgroupError
from kgroup.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgroup.protocol.messages.heartbeat import HeartbeatRequest
from kgroup.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kgroup.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kgroup.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kgroup.protocol.subscription import Assignment, Subscription
from kgroup.runtime.cluster import Cluster
from kgroup.testing.serving import Serving
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.entry.serve import LegacyBrokers, LegacyOptions

FAST = LegacyConfig(rebalance_backoff_ms=200, commit_interval_ms=100, zk_session_ms=1200)
SESSION_MS = 1_800_000
"""The longest that brokers allow: no member goes because a test takes its time."""
SLOW_MACHINE_S = 300
"""For what takes no time at all unless the machine is busy; less than a test has as a whole."""


@contextmanager
def served(cluster: Cluster) -> Iterator[str]:
    """Serve on a free port from a thread of its own; gives host:port."""
    serving = Serving(cluster)
    try:
        yield serving.bootstrap
    finally:
        serving.stop()


@contextmanager
def served_with_coordinators(
    cluster: Cluster, config: LegacyConfig | None = None
) -> Iterator[tuple[str, str, LegacyBrokers]]:
    """The same with a coordinator of the ZooKeeper era beside each broker; where the two listen, and they."""

    async def made() -> LegacyBrokers:
        return LegacyBrokers(cluster, LegacyOptions(config=config or FAST))

    serving = Serving(cluster)
    try:
        coordinators = serving.call(made())
        try:
            yield serving.bootstrap, ",".join(serving.call(coordinators.start())), coordinators
        finally:
            serving.call(coordinators.stop())
    finally:
        serving.stop()


class Client:
    """Speaks to the cluster as members and producers would, request by request."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.transport = SocketTransport(ConnectionSettings(parse_bootstrap(bootstrap)))
        self.admin = ClusterView(self.transport)
        self._beats: dict[tuple[str, str | None], HeartbeatRequest] = {}

    def close(self) -> None:
        self.transport.close()

    def create_topic(self, name: str, partitions: int) -> None:
        create_topic(self.admin, name, partitions)

    def classic_group(
        self, group: str, topic: str, owned: dict[str | None, list[int]]
    ) -> dict[str | None, str]:
        """A stable classic group whose members, by instance id, own these partitions; their member ids.

        Members join one after the other; each join takes the earlier ones through the rebalance.
        """
        members: dict[str | None, str] = {}
        for count in range(1, len(owned) + 1):
            self._rebalance(group, topic, dict(list(owned.items())[:count]), members)
        return members

    def stay(self) -> None:
        """Have the members of classic groups heartbeat: each is here for a session more."""
        for beat in self._beats.values():
            assert self.transport.request(None, beat).error_code == 0

    def join_unanswered(self, group: str, topic: str, instance: str) -> None:
        """Let a further static member join a group whose members do not rejoin; return once it rebalances.

        The join waits until its rebalance times out or the server stops.
        """
        request = self._join_request(group, instance, "", Subscription(topics=(topic,)).encode(1))

        def join() -> None:
            transport = SocketTransport(self.transport.settings)
            with suppress(KgroupError):
                transport.request(None, request)
            transport.close()

        threading.Thread(target=join).start()
        while self.state(group) == "Stable":
            pass

    def consumer_member(self, group: str, topic: str, instance: str) -> str:
        """A static member of the consumer protocol that has joined; its member id."""
        member_id = uuid_text(instance.encode().ljust(16, b"-"))
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=0,
            instance_id=instance,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=(topic,),
            topic_partitions=(),
        )
        answer = self.transport.request(None, request)
        assert answer.error_code == 0, answer
        return member_id

    def stays(self, group: str, member_id: str) -> None:
        """Heartbeat as a member of the consumer protocol that has changed nothing."""
        (described,) = describe(self.admin, [group], offsets=False).groups
        epoch = next(m.member_epoch for m in described.known_members if m.member_id == member_id)
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=epoch)
        assert self.transport.request(None, request).error_code == 0

    def leave_for_now(self, group: str, member_id: str, instance: str) -> None:
        """Shut a static member down as its client would (epoch -2)."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member_id, member_epoch=-2, instance_id=instance
        )
        assert self.transport.request(None, request).error_code == 0

    def commit(self, group: str, topic: str, offsets: dict[int, int]) -> None:
        """Commit as a client outside the group; the group must be empty or not exist."""
        partitions = tuple(
            OffsetCommitRequestPartition(partition_index=p, committed_offset=o) for p, o in offsets.items()
        )
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=(OffsetCommitRequestTopic(name=topic, partitions=partitions),),
        )
        answer = self.transport.request(None, request, max_version=9)
        assert {p.error_code for t in answer.topics for p in t.partitions} == {0}

    def state(self, group: str) -> str:
        return describe(self.admin, [group], offsets=False).groups[0].state

    def _rebalance(self, group, topic, owned, members) -> None:
        """Everybody joins at the same time, on a connection of its own; then the leader assigns."""
        metadata = Subscription(topics=(topic,)).encode(1)
        joined, threads = {}, []
        # The newest first: a join without changes into a group that is stable would start no rebalance.
        for instance in reversed(owned):
            thread = threading.Thread(
                target=lambda i=instance: joined.update(
                    {i: self._join(group, i, members.get(i, ""), metadata)}
                )
            )
            threads.append(thread)
            thread.start()
            while members and self.state(group) == "Stable":
                pass
        for thread in threads:
            thread.join(SLOW_MACHINE_S)
        members.update({instance: answer.member_id for instance, answer in joined.items()})
        leader = next(i for i, answer in joined.items() if answer.leader == answer.member_id)
        given = tuple(
            SyncGroupRequestAssignment(
                member_id=members[i],
                assignment=Assignment(partitions=tuple(TopicPartition(topic, p) for p in partitions)).encode(
                    1
                ),
            )
            for i, partitions in owned.items()
        )
        for instance in sorted(owned, key=lambda i: i != leader):
            request = SyncGroupRequest(
                group_id=group,
                generation_id=joined[instance].generation_id,
                member_id=members[instance],
                group_instance_id=instance,
                assignments=given if instance == leader else (),
            )
            assert self.transport.request(None, request, max_version=4).error_code == 0
            self._beats[group, instance] = HeartbeatRequest(
                group_id=group,
                generation_id=joined[instance].generation_id,
                member_id=members[instance],
                group_instance_id=instance,
            )

    def _join_request(self, group, instance, member_id, metadata):
        return JoinGroupRequest(
            group_id=group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SLOW_MACHINE_S * 1000,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type="consumer",
            protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
        )

    def _join(self, group, instance, member_id, metadata):
        request = self._join_request(group, instance, member_id, metadata)
        transport = SocketTransport(self.transport.settings)
        try:
            answer = transport.request(None, request)
            if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                return self._join(group, instance, answer.member_id, metadata)
            assert answer.error_code == 0, answer
            return answer
        finally:
            transport.close()
