"""A cluster the rows are played on: who may do anything makes it ready, bob asks."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from kgroup.broker.embedded import EmbeddedTransport
from kgroup.errors import Unreachable
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from kgroup.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kgroup.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kgroup.protocol.messages.describe_acls import DescribeAclsRequest
from kgroup.protocol.messages.metadata import MetadataRequest
from kgroup.runtime.cluster import Cluster
from kgroup.security.acls import Acl, Operation, PatternType, Permission, ResourceType
from kgroup.security.principals import ANONYMOUS, Principal

from .grants import ASKER
from .visible import Seen, ids_in, visible

WAIT_S = 20.0
LOST = "the connection was closed"


class Way(Protocol):
    """A way into a cluster, as one principal."""

    def request(
        self, node: int | None, message: Message, *, min_version: int = 0, max_version: int | None = None
    ) -> Message: ...

    def nodes(self) -> Mapping[int, tuple[str, int]]: ...


@dataclass(slots=True)
class World:
    """Two ways into one cluster: as a super user, and as bob."""

    boss: Way
    asker: Way
    topics: dict[bytes, str] = field(default_factory=dict)
    """Topic id → name."""
    made: dict[str, Any] = field(default_factory=dict)
    """What cases keep for their requests, as the producer of a transaction, by its name."""

    @property
    def node(self) -> int:
        return min(self.boss.nodes())

    def ask(self, message: Message, version: int | None = None) -> Any:
        """As the super user."""
        low = 0 if version is None else version
        return self.boss.request(self.node, message, min_version=low, max_version=version)

    def play(self, message: Message, version: int | None) -> Seen:
        """As bob: what he sees."""
        low = 0 if version is None else version
        try:
            found = self.asker.request(self.node, message, min_version=low, max_version=version)
        except Unreachable:
            return LOST
        if any(topic_id not in self.topics for topic_id in ids_in(found)):
            self.learn_topics()
        return visible(found, self.topics)

    def create_topics(self, names: Sequence[str]) -> None:
        """Topics of one partition, known to the broker when this returns."""
        for at in range(0, len(names), 100):
            wanted = tuple(
                CreatableTopic(name=name, num_partitions=1, replication_factor=1)
                for name in names[at : at + 100]
            )
            found = self.ask(CreateTopicsRequest(topics=wanted, timeout_ms=30_000))
            assert not [t for t in found.topics if t.error_code], found
        deadline = time.monotonic() + WAIT_S
        while not set(names) <= set(self.learn_topics().values()):
            assert time.monotonic() < deadline, "the topics are not there"

    def learn_topics(self) -> dict[bytes, str]:
        """Every topic there is, and those there were."""
        found = self.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        self.topics.update({topic.topic_id: topic.name for topic in found.topics})
        return self.topics

    def id_of(self, name: str) -> bytes:
        return next(topic_id for topic_id, known in self.topics.items() if known == name)

    def set_acls(self, acls: Iterable[Acl]) -> None:
        """These rules and no others, in force when this returns."""
        wanted = set(acls)
        everything = DeleteAclsFilter(
            resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
        )
        if self.acls() - wanted:
            self.ask(DeleteAclsRequest(filters=(everything,)))
        if wanted:
            found = self.ask(CreateAclsRequest(creations=tuple(map(_creation, wanted))))
            assert not [r for r in found.results if r.error_code], found
        deadline = time.monotonic() + WAIT_S
        while self.acls() != wanted:
            assert time.monotonic() < deadline, "the rules are not in force"

    def acls(self) -> set[Acl]:
        """The rules the broker goes by."""
        request = DescribeAclsRequest(
            resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
        )
        found = self.ask(request)
        return {
            Acl(
                ResourceType(resource.resource_type),
                resource.resource_name,
                PatternType(resource.pattern_type),
                acl.principal,
                acl.host,
                Operation(acl.operation),
                Permission(acl.permission_type),
            )
            for resource in found.resources
            for acl in resource.acls
        }


def _creation(acl: Acl) -> AclCreation:
    return AclCreation(
        resource_type=acl.resource_type,
        resource_name=acl.name,
        resource_pattern_type=acl.pattern,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


class InProcess:
    """Requests of one principal to a cluster in this process, whose brokers others ask, too."""

    def __init__(self, shared: EmbeddedTransport, principal: Principal) -> None:
        self._shared = shared
        self._principal = principal

    def request(self, node: int | None, message: Message, **limits: Any) -> Message:
        self._shared.principal = self._principal
        return self._shared.request(node, message, **limits)

    def nodes(self) -> Mapping[int, tuple[str, int]]:
        return self._shared.nodes()


def in_process(cluster: Cluster) -> World:
    """The embedded cluster, asked as one does who comes over the network."""
    shared = EmbeddedTransport(cluster, ANONYMOUS)
    return World(InProcess(shared, ANONYMOUS), InProcess(shared, Principal.parse(ASKER)))
