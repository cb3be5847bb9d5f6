"""Replicas of the coordinators' topics in sync: where they are too few, a coordinator stores nothing.

Refused commits and joins leave no record: members look dead, and rebalances stuck.
"""

from collections.abc import Collection, Iterator
from functools import cached_property

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import ItemError, TopicDescription
from kgroup.admin.refusals import item_error
from kgroup.admin.settings import number_of, topic_settings
from kgroup.domain import OFFSETS_TOPIC, TRANSACTION_TOPIC, count_of, offsets_partition_of
from kgroup.errors import ErrorCode, KgroupError

MIN_IN_SYNC = "min.insync.replicas"
NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE.name
"""The answer of a coordinator that can store nothing."""
_REFUSED = {
    OFFSETS_TOPIC: "no commit is accepted, no rebalance completes",
    TRANSACTION_TOPIC: "no transaction begins or ends",
}


def unstored(cluster: ClusterView, group_ids: Collection[str]) -> dict[str, tuple[str, str] | ItemError]:
    """Return why the coordinators of these groups can store nothing of them, and what to do about it.

    An ItemError says why that is not known of a group.
    """
    topic = cluster.topics([OFFSETS_TOPIC]).get(OFFSETS_TOPIC) if group_ids else None
    if not isinstance(topic, TopicDescription):
        return {}
    in_sync, count = InSync(cluster, topic), len(topic.partitions)
    told: dict[str, tuple[str, str] | ItemError] = {}
    for name in group_ids:
        at = offsets_partition_of(name, count)
        told.update((name, why) for why in in_sync.too_few(at))
        told.update((name, error) for error in in_sync.unseen(at))
    return told


class InSync:
    """What the metadata of such a topic shows; the minimum is requested only where a replica lags."""

    def __init__(self, cluster: ClusterView, topic: TopicDescription) -> None:
        self._cluster = cluster
        self._topic = topic.name
        self._lagging = {
            partition.partition: (len(partition.replicas), lagging)
            for partition in topic.partitions
            if (lagging := sorted({*partition.replicas} - {*partition.isr}))
        }

    def too_few(self, partition: int) -> Iterator[tuple[str, str]]:
        """Yield that nothing can be stored in a partition, and what to do about it."""
        if partition not in self._lagging or isinstance(self._minimum, ItemError):
            return
        replicas, lagging = self._lagging[partition]
        in_sync = replicas - len(lagging)
        if in_sync < self._minimum:
            brokers = ", ".join(map(str, lagging))
            one = len(lagging) == 1
            have = f"{self._topic}-{partition} has {in_sync} of {count_of(replicas, 'replica')} in sync"
            what = f"{have}, and {MIN_IN_SYNC} is {self._minimum}: {_REFUSED[self._topic]}"
            missing = (
                f"broker {brokers}, or wait until it has"
                if one
                else f"brokers {brokers}, or wait until they have"
            )
            yield what, f"start {missing} caught up"

    def unseen(self, partition: int) -> Iterator[ItemError]:
        """Yield why it is not known whether anything can be stored in a partition."""
        if partition in self._lagging and isinstance(self._minimum, ItemError):
            yield self._minimum

    @cached_property
    def _minimum(self) -> int | ItemError:
        try:
            setting = topic_settings(self._cluster, [self._topic], MIN_IN_SYNC).get(self._topic)
        except KgroupError as error:
            setting = error
        if isinstance(setting, KgroupError):
            return item_error(MIN_IN_SYNC, setting)
        number = number_of(setting)
        unsaid = ItemError(MIN_IN_SYNC, "NOT_TOLD", f"the broker does not report that of {self._topic}")
        return unsaid if number is None else number
