"""What brokers have to do with partitions that stand still, where no member's record shows it.

One broker that leads all of them may be out of its clients' reach. A reader that commits in transactions
commits nothing while `__transaction_state` has too few replicas in sync.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kgroup.admin.codes import UNTRANSACTED
from kgroup.admin.diagnose.facts import LAG, Facts
from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import Finding, TopicDescription
from kgroup.admin.read.in_sync import InSync
from kgroup.admin.statuses import ERROR, OK, WARN, PartitionStatus, Unseen
from kgroup.domain import TRANSACTION_TOPIC, TopicPartition
from kgroup.errors import KgroupError
from kgroup.history.fold.events import Kind

_OF_TRANSACTIONS = (Kind.TRANSACTION_COMMITTED, Kind.TRANSACTION_ABORTED)


def look_at_the_brokers(cluster: ClusterView, facts: Sequence[Facts]) -> None:
    """Find what brokers have to do with what stands still: at most one Metadata request for all groups."""
    judged = [each for each in facts if LAG not in each.left_out]
    apart = [(each, stopped, going) for each in judged for stopped, going in _apart(each)]
    transacting = [each for each in judged if _transacts(each)]
    topics = {partition.topic for each, _, _ in apart for partition, _ in each.rows}
    if transacting:
        topics.add(TRANSACTION_TOPIC)
    if not topics:
        return
    described: Answers[TopicDescription]
    try:
        described = cluster.topics(topics)
    except KgroupError as error:
        described = {TRANSACTION_TOPIC: error}
    nodes = {node.id: node for node in cluster.brokers()} if apart else {}
    led = {
        TopicPartition(topic.name, each.partition): each.leader
        for topic in described.values()
        if isinstance(topic, TopicDescription)
        for each in topic.partitions
    }
    for each, stopped, going in apart:
        leaders = {led.get(partition, -1) for partition in stopped}
        if len(leaders) == 1 and leaders.isdisjoint(led.get(partition) for partition in going):
            each.one_leader = nodes.get(leaders.pop())
    if transacting:
        _look_at_transactions(cluster, transacting, described[TRANSACTION_TOPIC])


def _look_at_transactions(
    cluster: ClusterView, facts: Sequence[Facts], topic: TopicDescription | KgroupError
) -> None:
    """Note whether the transactions of these groups can be stored, or why that is not known."""
    if isinstance(topic, KgroupError):
        for each in facts:
            each.miss(TRANSACTION_TOPIC, topic)
        return
    in_sync = InSync(cluster, topic)
    short = [found for each in topic.partitions for found in in_sync.too_few(each.partition)]
    unseen = [found for each in topic.partitions for found in in_sync.unseen(each.partition)]
    for each in facts:
        each.unseen += [Unseen(found.item, found.code, found.message) for found in unseen[:1]]
        if short:
            (what, hint), more = short[0], len(short) - 1
            also = f", and so it is with {more} more of its partitions" if more else ""
            severity = ERROR if len(short) == len(topic.partitions) else WARN
            each.untransacted = Finding(UNTRANSACTED, severity, f"{what}{also}", hint)


def _apart(facts: Facts) -> Iterator[tuple[set[TopicPartition], set[TopicPartition]]]:
    """Yield several partitions that stand still, and those that were committed after all of them, if any."""
    stopped = _stopped(facts)
    if len(stopped) > 1:
        last = max(facts.committed_ms.get(partition, -1) for partition in stopped)
        if going := {partition for partition, ms in facts.committed_ms.items() if ms > last}:
            yield stopped, going


def _stopped(facts: Facts) -> set[TopicPartition]:
    """Return the partitions that their owners leave, certainly or perhaps."""
    named = facts.with_status(PartitionStatus.STALLED, PartitionStatus.NOT_BEGUN)
    return {p for p, _, status in named if status.weight == ERROR or status.name == PartitionStatus.STALLED}


def _transacts(facts: Facts) -> bool:
    """Return whether a group that is not well has committed in transactions."""
    if not any(event.kind in _OF_TRANSACTIONS for event in facts.recent):
        return False
    return any(status.weight != OK for status, _ in facts.alike)
