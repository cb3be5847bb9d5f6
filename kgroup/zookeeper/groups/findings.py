"""Findings that a group's nodes prove: those of other groups that apply here, and its own (KG4xx)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from kgroup.admin.codes import CODES
from kgroup.admin.models import Finding, GroupDescription
from kgroup.admin.read.findings import find as find_in_all
from kgroup.admin.read.findings import subscribed
from kgroup.admin.refusals import code_name
from kgroup.domain import TopicPartition, count_of, first_of
from kgroup.errors import ErrorCode, KgroupError
from kgroup.zookeeper.groups.nodes import OFFSETS, GroupNodes

_IN_ALL = frozenset({"KG105", "KG301", "KG302", "KG303", "KG305", "KG306"})
SHOWN = 5


def find(
    group: GroupDescription,
    topics: Mapping[str, tuple[int, ...] | KgroupError],
    nodes: GroupNodes,
    in_kafka: Iterable[TopicPartition],
    differing: Iterable[TopicPartition],
) -> tuple[Finding, ...]:
    """Return the findings of a group, by code."""
    counts: dict[str, int | None] = {}
    for name in {row.topic for row in group.offsets} | subscribed(group):
        topic = topics.get(name)
        if isinstance(topic, tuple):
            counts[name] = len(topic)
        elif isinstance(topic, KgroupError) and code_name(topic) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.name:
            counts[name] = None
    # The hints of the others name commands that do not reach a group in ZooKeeper.
    known = [replace(f, hint=None) for f in find_in_all(group, counts) if f.code in _IN_ALL]
    own = [
        Finding(code, CODES[code].severity, message)
        for code, message in _own(group, nodes, set(in_kafka), sorted(differing))
    ]
    return (*known, *own)


def _own(
    group: GroupDescription, nodes: GroupNodes, in_kafka: set[TopicPartition], differing: list[TopicPartition]
) -> Iterator[tuple[str, str]]:
    if in_kafka:
        where = f"{len(nodes.offsets) or 'none'} in ZooKeeper"
        count = count_of(len(in_kafka), "offset")
        yield "KG401", f"offsets.storage=kafka: {count} in __consumer_offsets, {where}"
    if group.state == "Unsettled":
        yield "KG402", _unsettled(group, nodes)
    if differing:
        shown = first_of([f"{p} {nodes.offsets[p].offset} in ZooKeeper" for p in differing], SHOWN)
        yield "KG403", f"showing those in Kafka, as Kafka's own tools do: {shown}"
    nothing = not in_kafka and not nodes.offsets and not nodes.undecodable and OFFSETS not in nodes.unread
    if nodes.registered and nothing and not group.errors:
        yield (
            "KG404",
            "no offset in ZooKeeper or Kafka: none committed yet, or auto.commit is off",
        )


def _unsettled(group: GroupDescription, nodes: GroupNodes) -> str:
    lost = sorted(p for p, owner in nodes.owners.items() if owner.consumer not in nodes.registered)
    free = [TopicPartition(r.topic, r.partition) for r in group.offsets if r.member_id is None and not r.gone]
    parts = []
    if free:
        parts.append(f"{_some(free)} without an owner")
    if lost:
        parts.append(f"{_some(lost)} with an owner that is not registered")
    said = " and ".join(parts) or "partitions without an owner"
    return f"{said}: a rebalance is in progress, or has failed; ZooKeeper does not show which"


def _some(partitions: list[TopicPartition]) -> str:
    return first_of(partitions, SHOWN, " ")
