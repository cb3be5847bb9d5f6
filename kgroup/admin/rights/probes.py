"""What this principal may do: authorized operations, and requests that change nothing.

Where brokers report neither it is unknown. A DENY for one name despite a right to all others goes unnoticed.
"""

from collections.abc import Callable, Collection, Iterable
from functools import reduce
from operator import and_
from typing import TypeVar

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.visibility import GROUP_PROBES, NOT_ASKED, PROBES, cluster_operations
from kgroup.admin.settings import alter_group, broker_setting, group_settings
from kgroup.admin.topics import check_topic
from kgroup.errors import BrokerRefused, ErrorCode
from kgroup.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kgroup.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kgroup.security.rights import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    EVERY,
    GROUP,
    OPERATION_CODES,
    READ,
    REFUSALS,
    TOPIC,
    WRITE,
    Right,
)

DESCRIBE_GROUPS = 15
TOPIC_OPERATIONS_SINCE, GROUP_OPERATIONS_SINCE, ABSENT_UNTIL = 8, 3, 5
"""Versions of Metadata and DescribeGroups; from 6 on the latter reports nothing for absent groups."""
BRINGS = {READ: DESCRIBE, WRITE: DESCRIBE, DELETE: DESCRIBE, ALTER: DESCRIBE, ALTER_CONFIGS: DESCRIBE_CONFIGS}
"""The rights that another right implies in Kafka's authorizers."""
UNKNOWN_TO_OLD = 1 << OPERATION_CODES[DESCRIBE_CONFIGS] | 1 << OPERATION_CODES[ALTER_CONFIGS]
"""Rights to groups that brokers before 4.0, which have no settings of groups, neither check nor report."""
DENIED = 0
"""The bits of a resource that may not even be described: nothing else is reported for it."""
_ASKED_AND_ALLOWED = frozenset(
    {
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
)
"""The answers of a broker that found the right and something else amiss."""
Bits = int | None
AskBits = Callable[[tuple[str, ...]], dict[str, Bits]]
T = TypeVar("T")


class Held:
    """The rights of the principal that asks, each looked up once; Unreachable when no broker answers."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster
        self._bits: dict[tuple[str, str], Bits] = {}
        self._probed: dict[Right, bool | None] = {}
        self._describable: set[tuple[str, str]] = set()

    def look_up(self, rights: Iterable[Right]) -> None:
        """Look up all these resources together: one request for the topics, one for the groups."""
        places = {(right.resource, right.name) for right in rights} - self._bits.keys()
        groups = sorted(name for kind, name in places if kind == GROUP)
        topics = sorted(name for kind, name in places if kind == TOPIC)
        self._take(GROUP, groups, GROUP_PROBES, self._groups)
        self._take(TOPIC, topics, PROBES, self._topics)
        if (CLUSTER, "") in places:
            self._bits[CLUSTER, ""] = _or_none(lambda: cluster_operations(self._cluster))

    def _take(self, kind: str, names: Collection[str], probes: tuple[str, ...], ask: AskBits) -> None:
        """Note the bits of each name; EVERY has the bits common to names that nothing has."""
        every = EVERY in names
        asked = tuple(dict.fromkeys([*(n for n in names if n != EVERY), *(probes if every else ())]))
        reported = ask(asked) if asked else {}
        self._bits |= {(kind, name): reported.get(name) for name in names if name != EVERY}
        if every:
            bits = [reported[probe] for probe in probes if reported.get(probe) is not None]
            common = reduce(and_, (value or 0 for value in bits)) if bits else None
            self._bits[kind, EVERY] = common if len(bits) == len(probes) or common == DENIED else None
            if all((kind, probe) in self._describable for probe in probes):
                self._describable.add((kind, EVERY))

    def holds(self, right: Right) -> bool | None:
        """Return whether the principal has the right; None where no broker reports it."""
        self.look_up([right])
        target = (right.resource, right.name)
        bits = self._bits.get(target)
        if right.operation == DESCRIBE and target in self._describable:
            return True
        # The right to create any topic does not include the one asked about.
        if right.operation == CREATE:
            return self._probe(right)
        if bits is None or (bits == DENIED and right.operation != DESCRIBE):
            return self._probe(right)
        return bool(bits & 1 << OPERATION_CODES[right.operation])

    def usable(self, right: Right) -> bool | None:
        """Return whether what needs the right can be done: not where even an implied right is refused.

        Every request that needs Read on a topic, say, follows another that needs Describe on it.
        """
        held = self.holds(right)
        brought = BRINGS.get(right.operation)
        if held is None and brought is not None:
            below = self.holds(Right(brought, right.resource, right.name))
            return False if below is False else None
        return held

    def _probe(self, right: Right) -> bool | None:
        """Return the result of a harmless request for a right that no operations report."""
        if right not in self._probed:
            cluster = self._cluster
            questions: dict[tuple[str, str], Callable[[str], object]] = {
                (CLUSTER, DESCRIBE_CONFIGS): lambda _: broker_setting(
                    cluster, cluster.brokers()[0].id, "broker.id"
                ),
                (GROUP, DESCRIBE_CONFIGS): lambda name: group_settings(cluster, name),
                (GROUP, ALTER_CONFIGS): lambda name: alter_group(cluster, name, {}, validate_only=True),
                (TOPIC, CREATE): lambda name: check_topic(cluster, name),
            }
            ask = questions.get((right.resource, right.operation))
            if ask is None:
                self._probed[right] = None
                return None
            names = (
                {GROUP: GROUP_PROBES, TOPIC: PROBES}.get(right.resource, ()) if right.name == EVERY else ()
            )
            allowed: list[bool | None] = []
            for name in names or (right.name,):
                try:
                    ask(name)
                    allowed.append(True)
                except BrokerRefused as error:
                    # A refusal for another reason than a missing right shows only sometimes that it is there.
                    known = True if error.code in _ASKED_AND_ALLOWED else None
                    allowed.append(False if error.name in REFUSALS else known)
            self._probed[right] = False if False in allowed else None if None in allowed else True
        return self._probed[right]

    def _groups(self, names: tuple[str, ...]) -> dict[str, Bits]:
        """Return each group's operations, from all brokers: FindCoordinator may create the offsets topic."""
        bits: dict[str, Bits] = {}
        for broker in self._cluster.brokers():
            left = tuple(name for name in names if bits.get(name) is None)
            if not left:
                break
            request = DescribeGroupsRequest(groups=left, include_authorized_operations=True)
            served = self._cluster.transport.versions(broker.id, DESCRIBE_GROUPS)
            moot = UNKNOWN_TO_OLD if served is not None and served[-1] <= ABSENT_UNTIL else 0
            versions = (GROUP_OPERATIONS_SINCE, ABSENT_UNTIL)
            try:
                answer = self._cluster.ask_again(
                    broker.id, request, DescribeGroupsResponse, versions=versions
                )
            except BrokerRefused:
                continue
            for group in answer.groups:
                if group.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
                    bits[group.group_id] = DENIED
                elif group.error_code or group.authorized_operations == NOT_ASKED:
                    # The right to describe it was checked before anything else.
                    self._describable.add((GROUP, group.group_id))
                else:
                    bits[group.group_id] = group.authorized_operations | moot
        return bits

    def _topics(self, names: tuple[str, ...]) -> dict[str, Bits]:
        request = MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=name) for name in names),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )

        versions = (TOPIC_OPERATIONS_SINCE, None)
        answer = _or_none(lambda: self._cluster.ask_again(None, request, MetadataResponse, versions=versions))
        bits: dict[str, Bits] = {}
        for topic in () if answer is None else answer.topics:
            name = topic.name or ""
            if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                bits[name] = DENIED
            elif topic.topic_authorized_operations == NOT_ASKED:
                self._describable.add((TOPIC, name))
            else:
                bits[name] = topic.topic_authorized_operations
        return bits


def _or_none(ask: Callable[[], T]) -> T | None:
    """Return the answer; None where the broker refuses it."""
    try:
        return ask()
    except BrokerRefused:
        return None
