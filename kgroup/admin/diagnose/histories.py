"""The history of many groups: a topic's metadata and each of its partitions are read once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kgroup.admin.diagnose.facts import Facts, missed
from kgroup.admin.diagnose.group_records import Recorded, look_into
from kgroup.admin.diagnose.handled import DeliveryLog, look_into_deliveries
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import SHARE
from kgroup.admin.refusals import is_gone
from kgroup.admin.statuses import HISTORY, Unseen
from kgroup.client.transport import SocketTransport
from kgroup.domain import SHARE_STATE_TOPIC, offsets_partition_of
from kgroup.errors import KgroupError
from kgroup.history.sources.live import LiveTopic

if TYPE_CHECKING:
    from kgroup.admin.diagnose.commits import Learned
    from kgroup.admin.diagnose.read_ahead import Ahead

MANY = 1_000
"""The number of groups from which a separate process reads the history: it takes a while to start."""


class Past:
    """The history of the groups named, read partition by partition on demand; a context manager.

    A group's history is kept until it is added to facts, so request groups `in_order`.
    """

    def __init__(self, cluster: ClusterView, group_ids: Iterable[str]) -> None:
        self._cluster = cluster
        self._wanted = list(dict.fromkeys(group_ids))
        self._topic: LiveTopic | KgroupError | None = None
        self._by_partition: dict[int, list[str]] = {}
        self._ahead: Ahead | None = None
        self._read: dict[int, KgroupError | None] = {}
        self._known: dict[str, Recorded] = {}
        self._deliveries: dict[str, DeliveryLog] | KgroupError | None = None
        self.steps: dict[str, Learned] = {}
        """By group, what was learned of its commits: a recorder looks again and again."""

    def __enter__(self) -> Past:
        return self

    def __exit__(self, *_: object) -> None:
        if self._ahead is not None:
            self._ahead.close()

    def in_order(self) -> list[str]:
        """Return the groups partition by partition; in the order named where that is unknown."""
        topic = self.topic()
        if isinstance(topic, KgroupError):
            return self._wanted
        return [group for number in sorted(self._by_partition) for group in self._by_partition[number]]

    def add_to(self, facts: Sequence[Facts]) -> list[Facts]:
        """Return each group's facts with its history, or the reason why there is none."""
        topic = self.topic() if facts else None
        if isinstance(topic, KgroupError):
            failed = missed(HISTORY, topic)
            return [f.also(failed) for f in facts]
        return [self._with(f) for f in facts]

    def _with(self, facts: Facts) -> Facts:
        name = facts.group.group_id
        if (failed := self._failure(name)) is not None:
            return facts.also(missed(HISTORY, failed))
        recorded = self._known.pop(name)
        if recorded.damaged is not None:
            # What is missing may be the newest of it: who the members are, and what they have.
            return facts.also(Unseen(HISTORY, "DAMAGED", recorded.damaged))
        if facts.group.type != SHARE:
            return facts.also(recorded=recorded)
        facts = facts.also(recorded=Recorded(recorded.events, whole_from_ms=recorded.whole_from_ms))
        if self._deliveries is None:
            self._deliveries = self._read_deliveries()
        if isinstance(self._deliveries, KgroupError):
            return facts.also(missed(HISTORY, self._deliveries))
        delivered = self._deliveries.get(name, DeliveryLog())
        if delivered.damaged is not None:
            return facts.also(Unseen(HISTORY, "DAMAGED", delivered.damaged))
        return facts.also(delivered=delivered)

    def _read_deliveries(self) -> dict[str, DeliveryLog] | KgroupError:
        """Return what share groups did with their records; nothing where none has stored anything yet."""
        names = self.topic()
        assert isinstance(names, LiveTopic)
        transport, timeout_s = self._cluster.transport, self._cluster.retry.timeout_s
        try:
            topic = LiveTopic(transport, timeout_s, with_names=False, name=SHARE_STATE_TOPIC)
            return look_into_deliveries(topic, names.topic_names, self._wanted)
        except KgroupError as error:
            return {} if is_gone(error) else error

    def topic(self) -> LiveTopic | KgroupError:
        """Return the topic, opened now if it was not, or why it cannot be read."""
        if self._topic is None:
            try:
                self._topic = LiveTopic(self._cluster.transport, self._cluster.retry.timeout_s)
            except KgroupError as error:
                self._topic = error
            else:
                self._by_partition = self._topic.by_partition(self._wanted)
                far = len(self._wanted) >= MANY and isinstance(self._cluster.transport, SocketTransport)
                # On Windows a process cannot be given its end of a pipe.
                if far and sys.platform != "win32":
                    from kgroup.admin.diagnose.read_ahead import Ahead

                    self._ahead = Ahead(self._topic, self._by_partition)
        return self._topic

    def _failure(self, group: str) -> KgroupError | None:
        """Return why the group's partition cannot be read; None once it is read."""
        topic = self.topic()
        assert not isinstance(topic, KgroupError)
        number = offsets_partition_of(group, len(topic.partitions))
        if number not in self._read:
            try:
                self._known |= self._look_into(topic, number)
                self._read[number] = None
            except KgroupError as error:
                self._read[number] = error
        return self._read[number]

    def _look_into(self, topic: LiveTopic, number: int) -> dict[str, Recorded]:
        if self._ahead is not None:
            return self._ahead.look_into(number)
        return look_into(topic, number, self._by_partition[number])
