"""Frozen values that every layer shares."""

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from functools import cache, lru_cache
from operator import attrgetter
from types import FunctionType, MappingProxyType
from typing import NamedTuple, TypeAlias, TypeVar, dataclass_transform

Document: TypeAlias = dict[str, object]
"""A JSON object; the content of one that was read is validated before use."""

V = TypeVar("V")
K = TypeVar("K")
W = TypeVar("W")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[V]) -> type[V]:
    """Make a slotted dataclass, frozen for the type checker alone: for values made often, or at every start.

    A frozen `__init__` costs four times as much: it sets fields through `object.__setattr__`.
    """
    return with_methods(dataclass(slots=True, init=False, eq=False, repr=False)(cls))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value_by_name(cls: type[V]) -> type[V]:
    """Make the same of which all arguments have names."""
    made = dataclass(slots=True, kw_only=True, init=False, eq=False, repr=False)(cls)
    return with_methods(made, by_name=True)


def with_methods(made: type[V], *, by_name: bool = False) -> type[V]:
    """Return a dataclass with shared comparison, hash and repr methods: generating its own is slow.

    They omit fields with `compare=False` or `repr=False`, as `dataclass` does. Its `__init__` takes arguments
    `by_name` alone or by position too; the first object has it generated, as a command makes none of most.
    """

    def first(self: object, *args: object, **named: object) -> None:
        made.__init__ = _init_of(made, by_name)  # type: ignore[method-assign]
        made.__init__(self, *args, **named)

    for name, function in (("__eq__", _same), ("__hash__", _hash), ("__repr__", _shown), ("__init__", first)):
        if name not in made.__dict__:
            setattr(made, name, function)
    return made


def _init_of(made: type, by_name: bool) -> FunctionType:
    """Return the `__init__` that `dataclass` would generate."""
    known: dict[str, object] = {"MISSING": MISSING}
    declared = fields(made)
    taken, lines = ["self", "*"] if by_name and declared else ["self"], ["pass"]
    for attribute in declared:
        name = value = attribute.name
        if not attribute.init:
            # A copy (`dataclasses.replace`) starts with its own.
            known[f"of_{name}"], value = attribute.default_factory, f"of_{name}()"
        elif attribute.default is not MISSING:
            known[f"of_{name}"] = attribute.default
            taken.append(f"{name}=of_{name}")
        elif attribute.default_factory is not MISSING:
            known[f"of_{name}"] = attribute.default_factory
            taken.append(f"{name}=MISSING")
            value = f"of_{name}() if {name} is MISSING else {name}"
        else:
            taken.append(name)
        lines.append(f"self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(taken)}):\n " + "\n ".join(lines), known)
    init: FunctionType = known["__init__"]  # type: ignore[assignment]
    init.__qualname__ = f"{made.__qualname__}.__init__"
    return init


_COMPARED: dict[type, Callable[[object], object]] = {}
"""What takes the compared fields from an object of a class, made when the first one is compared."""


def _compared(self: object) -> object:
    take = _COMPARED.get(self.__class__)
    if take is None:
        declared = self.__dataclass_fields__  # type: ignore[attr-defined]
        names = [name for name, f in declared.items() if f.compare]
        take = _COMPARED[self.__class__] = attrgetter(*names) if names else lambda of: ()
    return take(self)


def _same(self: object, other: object) -> bool:
    return _compared(self) == _compared(other) if other.__class__ is self.__class__ else NotImplemented


def _hash(self: object) -> int:
    return hash(_compared(self))


def _shown(self: object) -> str:
    declared = self.__dataclass_fields__  # type: ignore[attr-defined]
    fields = [f"{name}={getattr(self, name)!r}" for name, f in declared.items() if f.repr]
    return f"{type(self).__qualname__}({', '.join(fields)})"


ZERO_UUID = bytes(16)
NO_OFFSET = NO_PRODUCER_ID = NO_PRODUCER_EPOCH = NO_LEADER_EPOCH = NO_EPOCH = NO_EXPIRY = -1
"""The value of an absent one on the wire and in records.

NO_EPOCH is that of a member without an assignment, a group without targets, a partition without an owner, and
of a commit that names no member.
"""
GROUP_TYPES = CLASSIC, CONSUMER, SHARE, STREAMS = ("classic", "consumer", "share", "streams")
"""The types of groups that a coordinator keeps, as ListGroups names them."""
EPOCH_TYPES = (CONSUMER, SHARE, STREAMS)
"""Those whose coordinator counts epochs, of groups and of targets, instead of generations."""
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""The values of `security.protocol`: without TLS and with, without authentication and with."""
OFFSETS_TOPIC = "__consumer_offsets"
SHARE_STATE_TOPIC = "__share_group_state"
TRANSACTION_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_STATE_TOPIC})


UUID_LENGTH = 22
"""The length of a UUID as Kafka writes it."""


def uuid_text(value: bytes) -> str:
    """Return a topic or member uuid as Kafka prints it: 22 characters of URL-safe base64, no padding."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def of_client(member_id: str, instance_id: str | None, client_id: str | None) -> str:
    """Return ` of client ID` for a member known only by a UUID, which says nothing (KIP-848); else ""."""
    bare = not instance_id and len(member_id) == UUID_LENGTH
    return f" of client {client_id}" if bare and client_id else ""


def id_text(value: bytes) -> str:
    """Return a topic's id as text; "" where the broker, before Kafka 2.8, has none."""
    return "" if value == ZERO_UUID else uuid_text(value)


def uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes of `uuid_text`; raise ValueError for anything else."""
    value = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(value) != 16:
        raise ValueError(f"{text!r} is not a uuid in Kafka's form (22 characters of URL-safe base64)")
    return value


class MemberStatus(StrEnum):
    """A member's progress to its target, in the words of JSON documents and stored folds."""

    STABLE = "stable"
    REVOKING = "revoking"
    """It must revoke partitions (UNREVOKED_PARTITIONS)."""
    WAITING = "waiting"
    """It waits for partitions that others have not revoked (UNRELEASED_PARTITIONS)."""
    JOINING = "joining"
    """Only its subscription is on record."""
    BEHIND = "behind"
    """It has its target and has not confirmed the epoch."""
    LEFT = "left"
    """Epoch -2: a static member that is away and keeps its partitions (KIP-848)."""
    REBALANCING = "rebalancing"
    """In a classic group that rebalances, whose members own nothing meanwhile."""
    REGISTERED = "registered"
    """In a group in ZooKeeper, which shows no more."""
    FETCHING = "fetching"
    """In a group with a coordinator of the ZooKeeper era, which has started it."""
    UNKNOWN = "unknown"


class TopicPartition(NamedTuple):
    """A partition of a topic; ordered by topic name, then number."""

    topic: str
    partition: int

    @lru_cache(maxsize=1 << 14)  # noqa: B019  of values, and bounded
    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@lru_cache(maxsize=1 << 14)
def place_of(topic: str, partition: int) -> TopicPartition:
    """Return one object for equal partitions, where thousands of groups commit the same topics."""
    return TopicPartition(topic, partition)


@value
class EndMarker:
    """The end of a producer's transaction, to be appended as a control batch of its own."""

    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int


@value
class OffsetAndMetadata:
    """A committed offset. `leader_epoch` is -1 and `expire_timestamp_ms` is None when unset; times in ms."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int | None = None
    topic_id: bytes = ZERO_UUID


@value
class Topic:
    """A topic as the coordinator sees it: `racks[p]` are the racks of partition p's replicas."""

    name: str
    topic_id: bytes
    partitions: int
    racks: tuple[tuple[str, ...], ...] = ()


class TopicChanges(NamedTuple):
    """The names of the changed topics, and the topics that are gone, as they were."""

    names: frozenset[str]
    gone: Mapping[str, Topic]


@value
class TopicImage:
    """All topics of the cluster at one moment; `version` grows with every change.

    `created_version` is the version of the last image that created a topic (KIP-848 regex refresh).
    """

    version: int = 0
    created_version: int = 0
    by_name: MappingProxyType[str, Topic] = field(default_factory=lambda: MappingProxyType({}))
    by_id: MappingProxyType[bytes, Topic] = field(default_factory=lambda: MappingProxyType({}))
    made_from: tuple[Mapping[str, Topic], TopicChanges] | None = field(
        default=None, compare=False, repr=False
    )
    """The topics of the image before, if this was made by `changed`, and the differences."""

    @classmethod
    def of(cls, topics: Iterable[Topic], version: int = 1, created_version: int = 1) -> "TopicImage":
        known = list(topics)
        return cls(
            version,
            created_version,
            MappingProxyType({t.name: t for t in known}),
            MappingProxyType({t.topic_id: t for t in known}),
        )

    def changed(self, topics: Mapping[str, Topic | None]) -> "TopicImage":
        """Return the next image: the same except for these topics, by name; None for one that is gone."""
        topics = {name: topic for name, topic in topics.items() if self.by_name.get(name) != topic}
        by_name, by_id = self.by_name.copy(), self.by_id.copy()
        for name in topics:
            before = by_name.get(name)
            if before is not None:
                del by_id[before.topic_id]
        for name, topic in topics.items():
            if topic is None:
                del by_name[name]
            else:
                by_name[name] = by_id[topic.topic_id] = topic
        changes = _changes(self.by_name, by_name, by_id, topics)
        version = self.version + 1
        created = not topics.keys() <= self.by_name.keys()
        return TopicImage(
            version,
            version if created else self.created_version,
            MappingProxyType(by_name),
            MappingProxyType(by_id),
            (self.by_name, changes),
        )

    def changes_since(self, before: "TopicImage") -> TopicChanges:
        """Return the differences from an earlier image; known already if this was made from that."""
        if self.made_from is not None and self.made_from[0] is before.by_name:
            return self.made_from[1]
        names = before.by_name.keys() | self.by_name.keys()
        return _changes(before.by_name, self.by_name, self.by_id, names)

    def name_of(self, topic_id: bytes) -> str | None:
        topic = self.by_id.get(topic_id)
        return topic.name if topic else None

    def id_of(self, name: str) -> bytes | None:
        topic = self.by_name.get(name)
        return topic.topic_id if topic else None


def _changes(
    before: Mapping[str, Topic],
    after: Mapping[str, Topic],
    ids_after: Mapping[bytes, Topic],
    names: Iterable[str],
) -> TopicChanges:
    changed = frozenset(name for name in names if before.get(name) != after.get(name))
    gone = {name: before[name] for name in changed & before.keys() if before[name].topic_id not in ids_after}
    return TopicChanges(changed, gone)


@cache
def _low_halves(bits: int, lanes: int) -> int:
    """Return a number with the lower `bits` set in each of its lanes, which are twice as wide."""
    return int.from_bytes((bytes(bits // 8) + b"\xff" * (bits // 8)) * lanes, "big")


def java_string_hash(text: str) -> int:
    """Return Java's String.hashCode: over UTF-16 code units, as a signed 32-bit number."""
    # The units are lanes of one number, of which neighbours and then halves are added up: a loop over them
    # took 4 ms for the longest possible id, and a request may name hundreds.
    bits = 8 if text.isascii() else 16
    data = text.encode("ascii" if bits == 8 else "utf-16-be", "surrogatepass")
    folded = int.from_bytes(data, "big")
    lanes = 1 << max((len(data) * 8 // bits - 1).bit_length(), 3)
    power = 31
    while bits < 64:
        lanes >>= 1
        low = _low_halves(bits, lanes)
        folded = (folded >> bits & low) * power + (folded & low)
        power *= power
        bits *= 2
    low = _low_halves(32, lanes)
    folded &= low
    while lanes > 1:
        lanes >>= 1
        low >>= 64 * lanes
        upper = folded >> 64 * lanes
        folded = (upper * pow(power, lanes, 1 << 32) + (folded ^ upper << 64 * lanes)) & low
    folded &= 0xFFFFFFFF
    return folded - (1 << 32) if folded >= 1 << 31 else folded


def offsets_partition_of(group_id: str, partitions: int) -> int:
    """Return the `__consumer_offsets` partition that holds a group, of `partitions` in all.

    Kafka takes the absolute value (0 for -2^31), not the lower 31 bits; the two differ.
    """
    value = java_string_hash(group_id)
    return (0 if value == -(1 << 31) else abs(value)) % partitions


def grouped(pairs: Iterable[tuple[K, W]]) -> dict[K, list[W]]:
    """Return the values of each key, both in order of arrival."""
    by_key: dict[K, list[W]] = {}
    for key, item in pairs:
        by_key.setdefault(key, []).append(item)
    return by_key


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, tuple[int, ...]]:
    """Return the numbers of partitions by their topic, both in order."""
    by_topic = grouped((partition.topic, partition.partition) for partition in sorted(partitions))
    return {topic: tuple(numbers) for topic, numbers in by_topic.items()}


def ranges(numbers: Iterable[int]) -> str:
    """Return `0-2,5` for 0, 1, 2 and 5."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def partitions_text(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions as people write them: `orders:0-3,6 pay:0`, in order; `-` for none."""
    by_topic = numbers_by_topic(partitions)
    return " ".join(f"{topic}:{ranges(numbers)}" for topic, numbers in by_topic.items()) or "-"


def first_of(names: Sequence[object], most: int = 5, joint: str = ", ") -> str:
    """Return the first few names, and how many more there are."""
    return joint.join(map(str, names[:most])) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )


def count_of(count: int, noun: str, ending: str = "s") -> str:
    """Return a count in words: `1 member`, `3 members`."""
    return f"{count} {noun}{'' if count == 1 else ending}"
