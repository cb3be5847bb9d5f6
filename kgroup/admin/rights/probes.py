"""What this principal may do, as brokers tell it: authorized operations, and questions that change nothing.

Where they do not tell it is unknown. A DENY for one name beside a right to all others goes unnoticed.
"""

from collections.abc import Callable, Collection, Iterable
from functools import reduce
from operator import and_
from typing import TypeVar

from kgroup.admin.discovery import ClusterView
from kgroup.admin.read.visibility import GROUP_PROBES, PROBES, UNTOLD, cluster_operations
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

TOPIC_OPERATIONS_SINCE, GROUP_OPERATIONS_SINCE, ABSENT_UNTIL = 8, 3, 5
"""Versions of Metadata and DescribeGroups; from 6 on the latter tells nothing of absent groups."""
BRINGS = {READ: DESCRIBE, WRITE: DESCRIBE, DELETE: DESCRIBE, ALTER: DESCRIBE, ALTER_CONFIGS: DESCRIBE_CONFIGS}
"""What comes with a right in Kafka's authorizers."""
DENIED = 0
"""The bits of a resource that may not even be described: nothing else is told of it."""
_ASKED_AND_ALLOWED = frozenset(
    {
        ErrorCode.TOPIC_ALREADY_EXISTS,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
)
"""What a broker answers that has found the right and something else amiss."""
Bits = int | None
AskBits = Callable[[tuple[str, ...]], dict[str, Bits]]
T = TypeVar("T")


class Held:
    """The rights of the principal that asks, each looked up once; raises Unreachable when nobody answers."""

    def __init__(self, cluster: ClusterView) -> None:
        self._cluster = cluster
        self._bits: dict[tuple[str, str], Bits] = {}
        self._probed: dict[Right, bool | None] = {}
        self._describable: set[tuple[str, str]] = set()

    def look_up(self, rights: Iterable[Right]) -> None:
        """Ask about all these resources together: a request for the topics, one for the groups."""
        places = {(right.resource, right.name) for right in rights} - self._bits.keys()
        groups = sorted(name for kind, name in places if kind == GROUP)
        topics = sorted(name for kind, name in places if kind == TOPIC)
        self._take(GROUP, groups, GROUP_PROBES, self._groups)
        self._take(TOPIC, topics, PROBES, self._topics)
        if (CLUSTER, "") in places:
            self._bits[CLUSTER, ""] = _told(lambda: cluster_operations(self._cluster))

    def _take(self, kind: str, names: Collection[str], probes: tuple[str, ...], ask: AskBits) -> None:
        """Note the bits of each name; EVERY has those that names have in common which nothing has."""
        every = EVERY in names
        asked = tuple(dict.fromkeys([*(n for n in names if n != EVERY), *(probes if every else ())]))
        found = ask(asked) if asked else {}
        self._bits |= {(kind, name): found.get(name) for name in names if name != EVERY}
        if every:
            bits = [found[probe] for probe in probes if found.get(probe) is not None]
            common = reduce(and_, (each or 0 for each in bits)) if bits else None
            self._bits[kind, EVERY] = common if len(bits) == len(probes) or common == DENIED else None
            if all((kind, probe) in self._describable for probe in probes):
                self._describable.add((kind, EVERY))

    def holds(self, right: Right) -> bool | None:
        """Whether the principal has the right; None where no broker tells."""
        self.look_up([right])
        place = (right.resource, right.name)
        bits = self._bits.get(place)
        if right.operation == DESCRIBE and place in self._describable:
            return True
        # Who may create any topic has no right to the one asked about.
        if right.operation == CREATE:
            return self._probe(right)
        if bits is None or (bits == DENIED and right.operation != DESCRIBE):
            return self._probe(right)
        return bool(bits & 1 << OPERATION_CODES[right.operation])

    def usable(self, right: Right) -> bool | None:
        """Whether what needs the right can be done: not where even what comes with it is refused.

        Every request that needs Read on a topic, say, stands behind another that needs Describe on it.
        """
        held = self.holds(right)
        brought = BRINGS.get(right.operation)
        if held is None and brought is not None:
            below = self.holds(Right(brought, right.resource, right.name))
            return False if below is False else None
        return held

    def _probe(self, right: Right) -> bool | None:
        """Return what a question that changes nothing tells of a right that no operations tell of."""
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
            names = (
                {GROUP: GROUP_PROBES, TOPIC: PROBES}.get(right.resource, ()) if right.name == EVERY else ()
            )
            told = [_allowed(ask, name) for name in names or (right.name,)] if ask else [None]
            self._probed[right] = False if False in told else None if None in told else True
        return self._probed[right]

    def _groups(self, names: tuple[str, ...]) -> dict[str, Bits]:
        """Each group's operations, of its coordinator; asking who that is could make the offsets topic."""
        found: dict[str, Bits] = {}
        for broker in self._cluster.brokers():
            left = tuple(name for name in names if found.get(name) is None)
            if left:
                found |= _told(lambda: self._groups_of(broker.id, left)) or {}  # noqa: B023
        return found

    def _groups_of(self, node: int, names: tuple[str, ...]) -> dict[str, Bits]:
        request = DescribeGroupsRequest(groups=names, include_authorized_operations=True)
        versions = (GROUP_OPERATIONS_SINCE, ABSENT_UNTIL)

        answer = self._cluster.ask_again(node, request, DescribeGroupsResponse, versions=versions)
        found: dict[str, Bits] = {}
        for told in answer.groups:
            if told.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
                found[told.group_id] = DENIED
            elif told.error_code or told.authorized_operations == UNTOLD:
                # The right to describe it was asked for before anything else.
                self._describable.add((GROUP, told.group_id))
            else:
                found[told.group_id] = told.authorized_operations
        return found

    def _topics(self, names: tuple[str, ...]) -> dict[str, Bits]:
        request = MetadataRequest(
            topics=tuple(MetadataRequestTopic(name=name) for name in names),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )

        versions = (TOPIC_OPERATIONS_SINCE, None)
        answer = _told(lambda: self._cluster.ask_again(None, request, MetadataResponse, versions=versions))
        found: dict[str, Bits] = {}
        for told in () if answer is None else answer.topics:
            name = told.name or ""
            if told.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                found[name] = DENIED
            elif told.topic_authorized_operations == UNTOLD:
                self._describable.add((TOPIC, name))
            else:
                found[name] = told.topic_authorized_operations
        return found


def _told(ask: Callable[[], T]) -> T | None:
    """Return the answer; None where the broker does not give it."""
    try:
        return ask()
    except BrokerRefused:
        return None


def _allowed(ask: Callable[[str], object], name: str) -> bool | None:
    """Whether a question was answered, or refused for another reason than a missing right."""
    try:
        ask(name)
    except BrokerRefused as error:
        if error.name in REFUSALS:
            return False
        return True if error.code in _ASKED_AND_ALLOWED else None
    return True
