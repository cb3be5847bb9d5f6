"""The history of many groups: the topic's metadata once, each of its partitions once, whatever the rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kgroup.admin.diagnose.facts import HISTORY, Facts, Unseen
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import SHARE
from kgroup.domain import offsets_partition_of
from kgroup.errors import KgroupError

if TYPE_CHECKING:
    from kgroup.history.fold.events import Event
    from kgroup.history.fold.restarts import Restart
    from kgroup.history.fold.state import GroupState
    from kgroup.history.sources.live import LiveTopic

FEW = 8


@dataclass(slots=True)
class _Past:
    """What the log holds of one group."""

    events: list[Event] = field(default_factory=list)
    state: GroupState | None = None
    restarts: Sequence[Restart] = ()
    damaged: str | None = None


class Past:
    """The history of the groups named, read partition by partition as it is asked for.

    What was read for a group is kept until it is told, so groups should be asked for `in_order`.
    """

    def __init__(self, cluster: ClusterView, group_ids: Iterable[str]) -> None:
        self._cluster = cluster
        self._wanted = list(dict.fromkeys(group_ids))
        self._topic: LiveTopic | KgroupError | None = None
        self._by_partition: dict[int, list[str]] = {}
        self._read: dict[int, KgroupError | None] = {}
        self._known: dict[str, _Past] = {}

    def in_order(self) -> list[str]:
        """The groups partition by partition; as they were named where that is not known."""
        topic = self._opened()
        if isinstance(topic, KgroupError):
            return self._wanted
        return [group for number in sorted(self._by_partition) for group in self._by_partition[number]]

    def tell(self, facts: Sequence[Facts]) -> None:
        """Give each its history, or the reason why there is none."""
        wanted = [each for each in facts if each.group.type != SHARE]
        topic = self._opened() if wanted else None
        for each in wanted:
            failed = topic if isinstance(topic, KgroupError) else self._failure(each.group.group_id)
            if failed is not None:
                each.miss(HISTORY, failed)
                continue
            past = self._known.pop(each.group.group_id)
            each.history, each.state, each.restarts = past.events, past.state, past.restarts
            if past.damaged:
                each.unseen.append(Unseen(HISTORY, "DAMAGED", past.damaged))

    def _opened(self) -> LiveTopic | KgroupError:
        from kgroup.history.sources.live import LiveTopic

        if self._topic is None:
            try:
                self._topic = LiveTopic(self._cluster.transport, self._cluster.retry.timeout_s)
            except KgroupError as error:
                self._topic = error
            else:
                for group in self._wanted:
                    number = offsets_partition_of(group, len(self._topic.partitions))
                    self._by_partition.setdefault(number, []).append(group)
        return self._topic

    def _failure(self, group: str) -> KgroupError | None:
        """Why the group's partition cannot be read; None once it is."""
        topic = self._opened()
        assert not isinstance(topic, KgroupError)
        number = offsets_partition_of(group, len(topic.partitions))
        if number not in self._read:
            try:
                self._look_into(topic, number)
                self._read[number] = None
            except KgroupError as error:
                self._read[number] = error
        return self._read[number]

    def _look_into(self, topic: LiveTopic, number: int) -> None:
        from kgroup.history.replay import replay
        from kgroup.history.sources.live import LiveLog

        named = self._by_partition[number]
        told = {group: _Past() for group in named}
        # Names are looked for in every batch, one by one: worth it for a few, for many all is decoded.
        few = len(told) <= FEW
        story = replay(
            [LiveLog(topic, number)],
            topic_names=topic.topic_names,
            names=named if few else None,
            wanted=None if few else told.__contains__,
        )
        for event in story.events:
            if event.group in told:
                told[event.group].events.append(event)
        fold = story.folds[number]
        states = fold.states  # looked through anew each time it is asked for
        for group, past in told.items():
            past.state, past.restarts = states.get(group), fold.restarts(group)
            if story.bad:
                what = f"{len(story.bad)} damaged ranges of __consumer_offsets-{number} could not be read"
                past.damaged = what
        self._known |= told
