"""What brokers have to do with partitions that stand still, where no member's record shows it.

One broker that leads all of them may be out of its clients' reach. A reader that commits in transactions
commits nothing while `__transaction_state` has too few replicas in sync.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kgroup.admin.diagnose.facts import LAG, Facts
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import TopicDescription
from kgroup.admin.read.in_sync import InSync
from kgroup.admin.statuses import ERROR, OK, PartitionStatus
from kgroup.domain import TRANSACTION_TOPIC, TopicPartition
from kgroup.errors import KgroupError
from kgroup.history.fold.events import Kind

_OF_TRANSACTIONS = (Kind.TRANSACTION_COMMITTED, Kind.TRANSACTION_ABORTED)


def look_at_the_brokers(cluster: ClusterView, facts: Sequence[Facts]) -> None:
    """Find what brokers have to do with what stands still: at most one Metadata request for all groups."""
    judged = [each for each in facts if LAG not in each.left_out]
    stopped = {id(each): _stopped(each) for each in judged}
    apart = [each for each in judged if len(stopped[id(each)]) > 1 and _go_on(each, stopped[id(each)])]
    transacting = [each for each in judged if _transacts(each)]
    topics = {partition.topic for each in apart for partition, _ in each.rows}
    if transacting:
        topics.add(TRANSACTION_TOPIC)
    if not topics:
        return
    try:
        described = cluster.topics(topics)
    except KgroupError:
        return  # it explains a finding, and decides nothing
    nodes = {node.id: node for node in cluster.brokers()} if apart else {}
    led = {
        TopicPartition(topic.name, each.partition): each.leader
        for topic in described.values()
        if isinstance(topic, TopicDescription)
        for each in topic.partitions
    }
    for each in apart:
        those = stopped[id(each)]
        leaders = {led.get(partition, -1) for partition in those}
        if len(leaders) == 1 and leaders.isdisjoint(led.get(p) for p in _go_on(each, those)):
            each.one_leader = nodes.get(leaders.pop())
    stored = described.get(TRANSACTION_TOPIC)
    if isinstance(stored, TopicDescription):
        in_sync = InSync(cluster, stored)
        short = [each.partition for each in stored.partitions if any(in_sync.too_few(each.partition))]
        for each in transacting if short else ():
            what, hint = next(in_sync.too_few(short[0]))
            more = f", and so it is with {len(short) - 1} more of its partitions" if len(short) > 1 else ""
            every = len(short) == len(stored.partitions)
            each.untransacted = (f"{what}{more}", hint, every)


def _stopped(facts: Facts) -> Collection[TopicPartition]:
    """Return the partitions that their owners leave, certainly or perhaps."""
    named = facts.with_status(PartitionStatus.STALLED, PartitionStatus.NOT_BEGUN)
    return {p for p, _, status in named if status.weight == ERROR or status.name == PartitionStatus.STALLED}


def _go_on(facts: Facts, stopped: Collection[TopicPartition]) -> set[TopicPartition]:
    """Return the partitions that were committed after all of those that stand still."""
    last = max(facts.committed_ms.get(partition, -1) for partition in stopped)
    return {partition for partition, ms in facts.committed_ms.items() if ms > last}


def _transacts(facts: Facts) -> bool:
    """Return whether a group that is not well has committed in transactions."""
    if not any(event.kind in _OF_TRANSACTIONS for event in facts.recent):
        return False
    return any(status.weight != OK for status, _ in facts.alike)
