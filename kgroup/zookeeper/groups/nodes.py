"""The nodes of groups, topics and brokers, read level by level with one round of requests per level.

A node that goes away between two rounds counts as missing. A node that may not be read, or that Kafka did not
write, is an error of its group; nothing is taken for empty.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from kgroup.admin.models import ItemError
from kgroup.admin.refusals import code_name, refused
from kgroup.domain import TopicPartition
from kgroup.errors import BrokerRefused, ConfigError, DecodeError, ErrorCode, KgroupError
from kgroup.zookeeper.groups.records import (
    Broker,
    Registration,
    broker_of,
    cluster_id_of,
    consumer_of,
    number_in,
    offset_of,
    partition_number,
    partitions_of_topic,
    registration_of,
)
from kgroup.zookeeper.store.names import is_name, path_of
from kgroup.zookeeper.store.operations import Children, Exists, Failure, Get, Node, Result, Stat
from kgroup.zookeeper.wire.messages import Registered

T = TypeVar("T")
D = TypeVar("D")
Ask = Callable[..., tuple[Result, ...]]
CONSUMERS, BROKERS = "consumers", "brokers"
ELECTED, EPOCH = "coordinator", "coordinator_epoch"
"""Where groups are kept, a coordinator of the design of 0.9 keeps its broker's id."""
IDS, OWNERS, OFFSETS = "ids", "owners", "offsets"
_ACL = "an ACL in ZooKeeper keeps it from this client: set zookeeper.sasl.username and its password"


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a partition; `lasting` if the node outlives the session that made it."""

    consumer: str
    lasting: bool
    thread: str


@dataclass(frozen=True, slots=True)
class Elected:
    """The coordinator of the design of 0.9: its broker, and which election it won; None if unknown."""

    broker_id: int
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Stored:
    """A committed offset, and when it was written."""

    offset: int
    modified_ms: int


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group's state at its coordinator, and all its members by id."""

    state: str
    members: tuple[Registered, ...]


@dataclass(slots=True)
class GroupNodes:
    """A group as its nodes have it; `unread` names the parts (ids, owners, offsets) not read in full.

    `topics` have had an owner or a committed offset: their nodes outlive the partitions' own. `undecodable`
    maps a partition to what its offset node holds instead of an offset. `elected` is the coordinator that has
    assigned the group, `described` its description of the group if it could be asked.
    """

    group_id: str
    registered: dict[str, Registration | DecodeError] = field(default_factory=dict)
    owners: dict[TopicPartition, Owner] = field(default_factory=dict)
    offsets: dict[TopicPartition, Stored] = field(default_factory=dict)
    undecodable: dict[TopicPartition, str] = field(default_factory=dict)
    topics: set[str] = field(default_factory=set)
    errors: list[ItemError] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    elected: Elected | None = None
    described: DescribedGroup | None = None

    def note(self, part: str, path: str, error: KgroupError) -> None:
        """Note that a node of a part could not be read."""
        self.unread.add(part)
        message = f"{self.group_id}: {path}: {error.message}"
        self.errors.append(ItemError(self.group_id, code_name(error), message, error.hint))


def group_ids(ask: Ask) -> tuple[str, ...]:
    """Return all groups of the tree, by id; ConfigError for a tree without Kafka."""
    (children,) = ask(Children(path_of(CONSUMERS)))
    if not isinstance(children, tuple):
        _refuse_if_hidden(children, path_of(CONSUMERS))
        refuse_if_no_kafka(ask)
        return ()
    names = tuple(name for name in children if name != ELECTED)
    return children if len(names) < len(children) and not _is_elected(ask) else names


def refuse_if_no_kafka(ask: Ask) -> None:
    """Raise ConfigError for a tree with neither groups nor brokers; it names a chroot that has them."""
    if not all(answer is Failure.NO_NODE for answer in ask(*_exist(""))):
        return
    (below,) = ask(Children("/"))
    names = below if isinstance(below, tuple) else ()
    likely = next(
        (name for name in names if any(isinstance(a, Stat) for a in ask(*_exist(f"/{name}")))), None
    )
    raise ConfigError(
        "there is no Kafka in this part of ZooKeeper: neither /consumers nor /brokers is there",
        f"did you mean the chroot /{likely}?" if likely else "is the chroot missing, as in HOST:PORT/kafka?",
    )


def groups(ask: Ask, requested: Iterable[str]) -> dict[str, GroupNodes | KgroupError]:
    """Return each group as its nodes have it, or the error for it."""
    names = list(dict.fromkeys(requested))
    named = [name for name in names if is_name(name) and not (name == ELECTED and _is_elected(ask))]
    there = dict(zip(named, ask(*(Exists(path_of(CONSUMERS, name)) for name in named)), strict=True))
    by_id: dict[str, GroupNodes | KgroupError] = {}
    for name in names:
        answer = there.get(name, Failure.NO_NODE)
        by_id[name] = GroupNodes(name) if isinstance(answer, Stat) else _not_found(name)
    if names and not any(isinstance(answer, Stat) for answer in there.values()):
        refuse_if_no_kafka(ask)
    known = [group for group in by_id.values() if isinstance(group, GroupNodes)]
    _read_ids(ask, known)
    for part, take in ((OWNERS, _take_owner), (OFFSETS, _take_offset)):
        _read_partitions(ask, known, part, take)
    bare = [group.group_id for group in known if not (group.registered or group.topics)]
    still = ask(*(Exists(path_of(CONSUMERS, name)) for name in bare))
    gone = [name for name, answer in zip(bare, still, strict=True) if answer is Failure.NO_NODE]
    return by_id | {name: _not_found(name) for name in gone}


def topics(ask: Ask, requested: Iterable[str] | None = None) -> dict[str, tuple[int, ...] | KgroupError]:
    """Return the partitions of topics, or the error for each; all topics for None."""
    if requested is None:
        (names,) = ask(Children(path_of(BROKERS, "topics")))
        if not isinstance(names, tuple):
            _refuse_if_hidden(names, path_of(BROKERS, "topics"))
            names = ()
    else:
        names = tuple(dict.fromkeys(requested))
    asked = [name for name in names if is_name(name)]
    answers = dict(zip(asked, ask(*(Get(path_of(BROKERS, "topics", n)) for n in asked)), strict=True))
    by_name: dict[str, tuple[int, ...] | KgroupError] = {}
    for name in names:
        answer = answers.get(name, Failure.NO_NODE)
        if answer is Failure.NO_NODE:
            if requested is not None:
                by_name[name] = refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name}")
        elif isinstance(answer, Node):
            by_name[name] = _decoded(partitions_of_topic, answer.data)
        else:
            by_name[name] = _hidden(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"topic {name}")
    return by_name


def brokers(ask: Ask) -> tuple[tuple[Broker, ...], tuple[ItemError, ...]]:
    """Return the live brokers, and errors for unreadable ones."""
    where = path_of(BROKERS, "ids")
    (numbers,) = ask(Children(where))
    if not isinstance(numbers, tuple):
        _refuse_if_hidden(numbers, where)
        return (), ()
    live: list[Broker] = []
    errors: list[ItemError] = []
    for number, node in zip(numbers, ask(*(Get(f"{where}/{n}") for n in numbers)), strict=True):
        if isinstance(node, Node):
            broker = _decoded(partial(broker_of, number), node.data)
            if isinstance(broker, Broker):
                live.append(broker)
                continue
            errors.append(
                ItemError(f"broker {number}", code_name(broker), f"broker {number}: {broker.message}")
            )
        elif node is Failure.NO_AUTH:
            hidden = _hidden(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, f"broker {number}")
            errors.append(ItemError(f"broker {number}", hidden.name, hidden.message, hidden.hint))
    return tuple(live), tuple(errors)


def elected(ask: Ask) -> Elected | None:
    """Return the elected coordinator; None in trees of Kafka itself, which has none."""
    node, epoch = ask(Get(path_of(CONSUMERS, ELECTED)), Get(path_of(EPOCH)))
    if not isinstance(node, Node) or not node.stat.owner:
        return None
    broker_id = number_in(node.data, 1 << 31)
    if broker_id is None:
        return None
    return Elected(broker_id, number_in(epoch.data, 1 << 31) if isinstance(epoch, Node) else None)


def coordinated(ask: Ask, names: Sequence[str]) -> frozenset[str]:
    """Return the groups that an elected coordinator has assigned: the owners have its session timeout."""
    nodes = ask(*(Get(path_of(CONSUMERS, name, OWNERS)) for name in names))
    pairs = zip(names, nodes, strict=True)
    return frozenset(n for n, node in pairs if isinstance(node, Node) and b"session_timeout_ms" in node.data)


def cluster_id(ask: Ask) -> str | None:
    """Return the cluster's id, which Kafka keeps since 0.10.1; None if it cannot be read."""
    (node,) = ask(Get(path_of("cluster", "id")))
    return cluster_id_of(node.data) if isinstance(node, Node) else None


def _exist(chroot: str) -> tuple[Exists, Exists]:
    return Exists(chroot + path_of(CONSUMERS)), Exists(chroot + path_of(BROKERS, "ids"))


def _is_elected(ask: Ask) -> bool:
    (node,) = ask(Exists(path_of(CONSUMERS, ELECTED)))
    return isinstance(node, Stat) and node.owner != 0


def _not_found(name: str) -> BrokerRefused:
    return refused(ErrorCode.GROUP_ID_NOT_FOUND, f"group {name}", "it is not in ZooKeeper")


def _hidden(code: ErrorCode, what: str) -> BrokerRefused:
    return BrokerRefused(code, f"{what}: {code.name}: not authorised to read it in ZooKeeper", hint=_ACL)


def _refuse_if_hidden(answer: Result, path: str) -> None:
    if answer is Failure.NO_AUTH:
        raise _hidden(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, path)


def _decoded(decode: Callable[[D], T], data: D) -> T | DecodeError:
    try:
        return decode(data)
    except DecodeError as error:
        return error


def _read_ids(ask: Ask, groups: Sequence[GroupNodes]) -> None:
    named = [(group, name) for group, name in _children(ask, groups, IDS)]
    nodes = ask(*(Get(path_of(CONSUMERS, group.group_id, IDS, name)) for group, name in named))
    for (group, name), node in zip(named, nodes, strict=True):
        if isinstance(node, Node):
            group.registered[name] = _decoded(registration_of, node.data)
            if isinstance(wrong := group.registered[name], DecodeError):
                group.note(IDS, path_of(CONSUMERS, group.group_id, IDS, name), wrong)
        elif node is not Failure.NO_NODE:
            # It is known to be registered; what it reads is not.
            hidden = _hidden(ErrorCode.GROUP_AUTHORIZATION_FAILED, name)
            group.registered[name] = DecodeError(hidden.message, hidden.hint)
            group.note(IDS, path_of(CONSUMERS, group.group_id, IDS, name), hidden)


def _children(ask: Ask, groups: Sequence[GroupNodes], part: str) -> Iterator[tuple[GroupNodes, str]]:
    """Yield the names below one part of each group; errors are noted in the group."""
    paths = [path_of(CONSUMERS, group.group_id, part) for group in groups]
    for group, path, names in zip(groups, paths, ask(*map(Children, paths)), strict=True):
        if isinstance(names, tuple):
            yield from ((group, name) for name in names)
        elif names is not Failure.NO_NODE:
            group.note(part, path, _hidden(ErrorCode.GROUP_AUTHORIZATION_FAILED, part))


Take = Callable[[GroupNodes, TopicPartition, Node], None]


def _read_partitions(ask: Ask, groups: Sequence[GroupNodes], part: str, take: Take) -> None:
    """Pass every node of a part that stands for a partition, `part/TOPIC/NUMBER`, to `take`."""
    asked = list(_partition_nodes(ask, groups, part))
    for (group, partition, read), node in zip(asked, ask(*(read for _, _, read in asked)), strict=True):
        if isinstance(node, Node):
            take(group, partition, node)
        elif node is not Failure.NO_NODE:
            group.note(part, read.path, _hidden(ErrorCode.GROUP_AUTHORIZATION_FAILED, str(partition)))
            if part == OFFSETS:
                group.undecodable[partition] = "not authorised to read it in ZooKeeper"


def _partition_nodes(
    ask: Ask, groups: Sequence[GroupNodes], part: str
) -> Iterator[tuple[GroupNodes, TopicPartition, Get]]:
    by_topic = list(_children(ask, groups, part))
    for group, topic in by_topic:
        group.topics.add(topic)
    paths = [path_of(CONSUMERS, group.group_id, part, topic) for group, topic in by_topic]
    for (group, topic), path, names in zip(by_topic, paths, ask(*map(Children, paths)), strict=True):
        if names is Failure.NO_NODE:
            continue
        if not isinstance(names, tuple):
            group.note(part, path, _hidden(ErrorCode.GROUP_AUTHORIZATION_FAILED, topic))
            continue
        for name in names:
            number = _decoded(partition_number, name)
            if isinstance(number, DecodeError):
                group.note(part, path, number)
            else:
                yield group, TopicPartition(topic, number), Get(f"{path}/{name}")


def _take_owner(group: GroupNodes, partition: TopicPartition, node: Node) -> None:
    consumer = _decoded(consumer_of, node.data)
    if isinstance(consumer, DecodeError):
        where = path_of(CONSUMERS, group.group_id, OWNERS, partition.topic, str(partition.partition))
        group.note(OWNERS, where, consumer)
    else:
        group.owners[partition] = Owner(consumer, node.stat.owner == 0, node.data.decode())


def _take_offset(group: GroupNodes, partition: TopicPartition, node: Node) -> None:
    offset = _decoded(offset_of, node.data)
    if isinstance(offset, DecodeError):
        where = path_of(CONSUMERS, group.group_id, OFFSETS, partition.topic, str(partition.partition))
        group.note(OFFSETS, where, offset)
        group.undecodable[partition] = f"in ZooKeeper {offset.message}"
    else:
        group.offsets[partition] = Stored(offset, node.stat.modified_ms)


def existing(answers: Mapping[str, tuple[int, ...] | KgroupError]) -> dict[str, tuple[int, ...]]:
    """Return the topics whose partitions are known."""
    return {name: numbers for name, numbers in answers.items() if isinstance(numbers, tuple)}
