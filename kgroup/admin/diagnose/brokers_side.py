"""What brokers have to do with partitions that stand still, where no member's record shows it.

One broker that leads all of them may be out of its clients' reach. A reader that commits in transactions
commits nothing while `__transaction_state` has too few replicas in sync.
"""

from kgroup.admin.codes import UNTRANSACTED
from kgroup.admin.diagnose.facts import Facts, missed
from kgroup.admin.discovery import ClusterView, or_error
from kgroup.admin.models import Finding, TopicDescription
from kgroup.admin.read.in_sync import InSync
from kgroup.admin.statuses import ERROR, OK, WARN, PartitionStatus, Unseen
from kgroup.domain import TRANSACTION_TOPIC, TopicPartition
from kgroup.errors import KgroupError
from kgroup.history.fold.events import Kind

_ENDS = (Kind.TRANSACTION_COMMITTED, Kind.TRANSACTION_ABORTED)


def look_at_the_brokers(cluster: ClusterView, facts: list[Facts]) -> list[Facts]:
    """Find what brokers have to do with what stands still: at most one Metadata request for all groups."""
    apart = {f.group.group_id: pair for f in facts if (pair := _apart(f)) is not None}
    transacting = {f.group.group_id for f in facts if _transacts(f)}
    topics = {p.topic for f in facts if f.group.group_id in apart for p, _ in f.rows}
    if transacting:
        topics.add(TRANSACTION_TOPIC)
    if not topics:
        return facts
    described = or_error(topics, lambda: cluster.topics(topics))
    nodes = {node.id: node for node in cluster.brokers()} if apart else {}
    led = {
        TopicPartition(topic.name, partition.partition): partition.leader
        for topic in described.values()
        if isinstance(topic, TopicDescription)
        for partition in topic.partitions
    }
    unseen, untransacted = (
        _of_transactions(cluster, described[TRANSACTION_TOPIC]) if transacting else ([], None)
    )
    known = []
    for group_facts in facts:
        if group_facts.group.group_id in apart:
            stopped, going = apart[group_facts.group.group_id]
            leaders = {led.get(partition, -1) for partition in stopped}
            if len(leaders) == 1 and leaders.isdisjoint(led.get(partition) for partition in going):
                group_facts = group_facts.also(one_leader=nodes.get(leaders.pop()))
        if group_facts.group.group_id in transacting:
            group_facts = group_facts.also(*unseen, untransacted=untransacted)
        known.append(group_facts)
    return known


def _of_transactions(
    cluster: ClusterView, topic: TopicDescription | KgroupError
) -> tuple[list[Unseen], Finding | None]:
    """Return why it is not known whether transactions can be stored, and that they cannot."""
    if isinstance(topic, KgroupError):
        return [missed(TRANSACTION_TOPIC, topic)], None
    in_sync = InSync(cluster, topic)
    short = [finding for partition in topic.partitions for finding in in_sync.too_few(partition.partition)]
    hidden = [error for partition in topic.partitions for error in in_sync.unseen(partition.partition)]
    unseen = [Unseen(error.item, error.code, error.message) for error in hidden[:1]]
    if not short:
        return unseen, None
    (what, hint), more = short[0], len(short) - 1
    also = f", and so it is with {more} more of its partitions" if more else ""
    severity = ERROR if len(short) == len(topic.partitions) else WARN
    return unseen, Finding(UNTRANSACTED, severity, f"{what}{also}", hint)


def _apart(facts: Facts) -> tuple[set[TopicPartition], set[TopicPartition]] | None:
    """Return several partitions that stand still, and those that were committed after all of them, if any."""
    stopped = _stopped(facts)
    if len(stopped) < 2:
        return None
    last = max(facts.log.committed_ms.get(partition, -1) for partition in stopped)
    going = {partition for partition, ms in facts.log.committed_ms.items() if ms > last}
    return (stopped, going) if going else None


def _stopped(facts: Facts) -> set[TopicPartition]:
    """Return the partitions that their owners leave, certainly or perhaps."""
    named = facts.with_status(PartitionStatus.STALLED, PartitionStatus.NOT_BEGUN)
    return {p for p, _, status in named if status.weight == ERROR or status.name == PartitionStatus.STALLED}


def _transacts(facts: Facts) -> bool:
    """Return whether a group that is not well has committed in transactions."""
    if not any(event.kind in _ENDS for event in facts.recent):
        return False
    return any(status.weight != OK for status, _ in facts.alike)
