"""The parts of a request that a rule can select, and answers in which some of them failed.

A request is about one group or transaction as a whole, or has entries: names, or topics with their
partitions. Entries that fail do not reach the handler, and stand in its answer with their error, as in kfake.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, TypeAlias

from kgroup.broker.handlers.coordinators import GROUP, TRANSACTION
from kgroup.broker.rights.rule import Entry
from kgroup.domain import ZERO_UUID
from kgroup.errors import ErrorCode
from kgroup.protocol.codec import Message
from kgroup.protocol.messages.leave_group import MemberResponse
from kgroup.protocol.messages.offset_delete import OffsetDeleteResponsePartition, OffsetDeleteResponseTopic

At: TypeAlias = tuple[int, ...]
"""Where an entry stands: () is the whole request, then places in its arrays."""
NameOf: TypeAlias = Callable[[bytes], str | None]
"""The name of the topic with an id; None for an id that no topic has."""

SELECTORS = ("topic", "topic_id", "partitions", "group", "txn_id", "resource")
WHOLE: At = ()
PRODUCE, FETCH, METADATA, OFFSET_FETCH, FIND_COORDINATOR, LEAVE_GROUP = 0, 1, 3, 9, 10, 13


class Site(NamedTuple):
    """The known names of a part of a request; None for what it does not name."""

    at: At = WHOLE
    topic: str | None = None
    topic_id: bytes | None = None
    partition: int | None = None
    group: str | None = None
    txn_id: str | None = None
    resource: str | None = None


class Shape(Protocol):
    """How the requests of an API name what they are about, and how their answers do."""

    @property
    def selects(self) -> frozenset[str]:
        """The selectors that its entries carry."""
        ...

    def sites(self, body: Entry, name_of: NameOf) -> Iterator[Site]:
        """Yield its entries, in their order."""
        ...

    def only(self, body: Entry, kept: Collection[At]) -> Message:
        """Return the request for these entries alone."""
        ...

    def merged(self, answer: Entry, failed: Entry) -> Message:
        """Return an answer with the entries of another one, in the place of its own or in addition."""
        ...


@dataclass(frozen=True, slots=True)
class Names:
    """Entries that are names, or have one in a field; `made` answers one where a refusal has no entries."""

    entries: str
    answers: str
    kind: str
    field: str | None
    answer_field: str

    @property
    def selects(self) -> frozenset[str]:
        ids = {"topic_id"} if self.kind == "topic" else set()
        return frozenset({self.kind, *ids})

    def sites(self, body: Entry, name_of: NameOf) -> Iterator[Site]:
        for place, entry in enumerate(getattr(body, self.entries) or ()):
            name = getattr(entry, self.field) if self.field else entry
            topic_id = getattr(entry, "topic_id", ZERO_UUID)
            if topic_id != ZERO_UUID:
                yield Site((place,), topic=name or name_of(topic_id), topic_id=topic_id)
            else:
                yield Site((place,), **{self.kind: name})

    def only(self, body: Entry, kept: Collection[At]) -> Message:
        entries = tuple(e for place, e in enumerate(getattr(body, self.entries)) if (place,) in kept)
        found: Message = replace(body, **{self.entries: entries})
        return found

    def merged(self, answer: Entry, failed: Entry) -> Message:
        more = getattr(failed, self.answers)
        names = {self._named(entry) for entry in more}
        kept = (entry for entry in getattr(answer, self.answers) if self._named(entry) not in names)
        found: Message = replace(answer, **{self.answers: (*kept, *more)})
        return found

    def _named(self, entry: Entry) -> tuple[object, object]:
        return getattr(entry, self.answer_field), getattr(entry, "topic_id", ZERO_UUID)


@dataclass(frozen=True, slots=True)
class Partitions:
    """Entries that are partitions, below their topics; a partition is a number or has it in a field."""

    topics: str = "topics"
    answers: str = "topics"
    name: str = "name"
    parts: str = "partitions"
    number: str | None = "partition_index"
    answer_parts: str = "partitions"
    answer_number: str = "partition_index"
    selects: frozenset[str] = frozenset({"topic", "topic_id", "partitions"})

    def sites(self, body: Entry, name_of: NameOf) -> Iterator[Site]:
        for first, topic in enumerate(getattr(body, self.topics) or ()):
            topic_id = getattr(topic, "topic_id", ZERO_UUID)
            by_id = topic_id if topic_id != ZERO_UUID else None
            name = getattr(topic, self.name) or (name_of(topic_id) if by_id else None)
            for second, part in enumerate(getattr(topic, self.parts)):
                number = getattr(part, self.number) if self.number else part
                yield Site((first, second), topic=name, topic_id=by_id, partition=number)

    def only(self, body: Entry, kept: Collection[At]) -> Message:
        topics = []
        for first, topic in enumerate(getattr(body, self.topics)):
            parts = tuple(p for second, p in enumerate(getattr(topic, self.parts)) if (first, second) in kept)
            if parts:
                topics.append(replace(topic, **{self.parts: parts}))
        found: Message = replace(body, **{self.topics: tuple(topics)})
        return found

    def merged(self, answer: Entry, failed: Entry) -> Message:
        topics = {self._named(topic): topic for topic in getattr(answer, self.answers)}
        for more in getattr(failed, self.answers):
            failing = getattr(more, self.answer_parts)
            numbers = {getattr(part, self.answer_number) for part in failing}
            known = topics.get(self._named(more), more)
            kept = (
                p for p in getattr(known, self.answer_parts) if getattr(p, self.answer_number) not in numbers
            )
            topics[self._named(more)] = replace(known, **{self.answer_parts: (*kept, *failing)})
        found: Message = replace(answer, **{self.answers: tuple(topics.values())})
        return found

    def _named(self, topic: Entry) -> tuple[object, object]:
        return getattr(topic, self.name), getattr(topic, "topic_id", ZERO_UUID)


_TOPICS = Names("topics", "topics", "topic", "name", "name")
_CONFIGS = Names("resources", "responses", "resource", "resource_name", "resource_name")
_GROUPS = Names("group_ids", "groups", "group", None, "group_id")
_BY_NAME = Partitions(parts="partition_indexes", number=None)
_SHAPES: Mapping[int, Shape] = {
    PRODUCE: Partitions(
        "topic_data", "responses", "name", "partition_data", "index", "partition_responses", "index"
    ),
    FETCH: Partitions(
        "topics", "responses", "topic", "partitions", "partition", "partitions", "partition_index"
    ),
    2: Partitions(),  # ListOffsets
    METADATA: _TOPICS,
    8: Partitions(),  # OffsetCommit
    OFFSET_FETCH: Names("groups", "groups", "group", "group_id", "group_id"),
    FIND_COORDINATOR: Names("coordinator_keys", "coordinators", "group", None, "key"),
    LEAVE_GROUP: Names("members", "members", "resource", "member_id", "member_id"),
    15: Names("groups", "groups", "group", None, "group_id"),  # DescribeGroups
    19: _TOPICS,  # CreateTopics
    20: Names("topics", "responses", "topic", "name", "name"),  # DeleteTopics
    21: Partitions(),  # DeleteRecords
    23: Partitions(name="topic", number="partition", answer_number="partition"),  # OffsetForLeaderEpoch
    24: Partitions(  # AddPartitionsToTxn
        "v3_and_below_topics",
        "results_by_topic_v3_and_below",
        number=None,
        answer_parts="results_by_partition",
    ),
    28: Partitions(),  # TxnOffsetCommit
    32: replace(_CONFIGS, answers="results"),  # DescribeConfigs
    33: _CONFIGS,  # AlterConfigs
    37: replace(_TOPICS, answers="results"),  # CreatePartitions
    42: Names("groups_names", "results", "group", None, "group_id"),  # DeleteGroups
    44: _CONFIGS,  # IncrementalAlterConfigs
    45: Partitions(answers="responses"),  # AlterPartitionReassignments
    47: Partitions(),  # OffsetDelete
    61: _BY_NAME,  # DescribeProducers
    65: Names("transactional_ids", "transaction_states", "txn_id", None, "transactional_id"),
    69: _GROUPS,  # ConsumerGroupDescribe
    75: _TOPICS,  # DescribeTopicPartitions
    77: _GROUPS,  # ShareGroupDescribe
    89: _GROUPS,  # StreamsGroupDescribe
    90: replace(_GROUPS, entries="groups", field="group_id"),  # DescribeShareGroupOffsets
}
OF_SHARE_GROUPS = frozenset({76, 78, 79, *range(83, 88), 91, 92})
"""Requests of one share group; they fail as a whole, whichever topics they name."""
_OLD_DELETE_TOPICS = Names("topic_names", "responses", "topic", None, "name")
_OLD_OFFSET_FETCH = _BY_NAME
BY_ID_SINCE, MANY_SINCE, MANY_KEYS_SINCE, MEMBERS_SINCE = 6, 8, 4, 3  # of DeleteTopics and so on

_CONTEXT: Mapping[int, frozenset[str]] = {
    **dict.fromkeys((8, 11, 12, LEAVE_GROUP, 14, 47, 68, 88, 93, *OF_SHARE_GROUPS), frozenset({"group"})),
    **dict.fromkeys((25, 28), frozenset({"group", "txn_id"})),
    **dict.fromkeys((PRODUCE, 22, 24, 26, FIND_COORDINATOR), frozenset({"txn_id"})),
}
"""What a request names once, for all of its entries."""


def selectors_of(key: int) -> frozenset[str]:
    """Return the selectors that requests of an API carry."""
    shape = _SHAPES.get(key)
    more = {"topic", "topic_id", "partitions"} if key == OFFSET_FETCH else set()
    return (shape.selects if shape else frozenset()) | _CONTEXT.get(key, frozenset()) | more


def shape_of(key: int, version: int) -> Shape | None:
    """Return how requests of an API have their entries in a version; None for those without any."""
    if key == 20 and version < BY_ID_SINCE:
        return _OLD_DELETE_TOPICS
    if key == OFFSET_FETCH and version < MANY_SINCE:
        return _OLD_OFFSET_FETCH
    if (key, version < MANY_KEYS_SINCE) == (FIND_COORDINATOR, True):
        return None
    if (key, version < MEMBERS_SINCE) == (LEAVE_GROUP, True):
        return None
    return _SHAPES.get(key)


def sites_of(body: Entry, version: int, name_of: NameOf) -> list[Site]:
    """Return the entries of a request, with what holds for all of them; without any, the whole request."""
    if body.API == FIND_COORDINATOR:
        keys = body.coordinator_keys if version >= MANY_KEYS_SINCE else (body.key,)
        kind = {GROUP: "group", TRANSACTION: "txn_id"}.get(body.key_type)
        one = version < MANY_KEYS_SINCE
        return [Site(WHOLE if one else (n,), **({kind: key} if kind else {})) for n, key in enumerate(keys)]
    whole = Site(
        group=_named(body, "group_id"),
        txn_id=_named(body, "transactional_id", "v3_and_below_transactional_id"),
    )
    if body.API == OFFSET_FETCH and version >= MANY_SINCE:
        found = []
        for n, group in enumerate(body.groups):
            found.append(Site((n,), group=group.group_id))
            asked = _BY_NAME.sites(group, name_of)
            found += (site._replace(at=(n, *site.at), group=group.group_id) for site in asked)
        return found
    shape = shape_of(body.API, version)
    found = [] if shape is None else list(shape.sites(body, name_of))
    return [
        each._replace(group=each.group or whole.group, txn_id=each.txn_id or whole.txn_id) for each in found
    ] or [whole]


def _named(body: Entry, *fields: str) -> str | None:
    return next((found for field in fields if (found := getattr(body, field, None))), None)


def refused_entries(body: Entry, code: ErrorCode) -> Message | None:
    """Return the answer whose entries carry an error, of an API whose own refusals have no entries."""
    from kgroup.protocol import registry

    answer: Entry = registry.response_class(body.API)
    if body.API == LEAVE_GROUP:
        members = tuple(
            MemberResponse(member_id=m.member_id, group_instance_id=m.group_instance_id, error_code=code)
            for m in body.members
        )
        found: Message = answer(members=members)
        return found
    if body.API == 47:
        topics = tuple(
            OffsetDeleteResponseTopic(
                name=t.name,
                partitions=tuple(
                    OffsetDeleteResponsePartition(partition_index=p.partition_index, error_code=code)
                    for p in t.partitions
                ),
            )
            for t in body.topics
        )
        deleted: Message = answer(topics=topics)
        return deleted
    return None
