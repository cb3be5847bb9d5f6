"""The logs of `__consumer_offsets` to read, of a cluster or of files: replayed, read further, tried again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from kgroup.admin.refusals import is_gone
from kgroup.domain import SHARE_STATE_TOPIC, Document, offsets_partition_of
from kgroup.errors import KgroupError
from kgroup.history.deliveries import DeliveryReader, add_deliveries
from kgroup.history.fold.folding import Extras
from kgroup.history.fold.removals import Today
from kgroup.history.replay import At, Coverage, Reader, Story, replay

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView
    from kgroup.history.log_items import BadRange
    from kgroup.history.sources.chunks import Progress
    from kgroup.history.sources.logs import OffsetsLog

_MAX_JOBS = 4
"""Processes that decode; each takes a hundred megabytes or so."""


class Chosen(Protocol):
    """The groups to read: by name, by a predicate, or all; `collapse` makes runs of like events one."""

    @property
    def names(self) -> list[str] | None: ...
    @property
    def wanted(self) -> Callable[[str], bool] | None: ...
    @property
    def collapse(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Groups:
    """These groups, or all."""

    names: list[str] | None = None
    wanted: Callable[[str], bool] | None = None
    collapse: bool = True


@dataclass(slots=True)
class Source:
    """The logs of a command's cluster or files."""

    logs: list[OffsetsLog]
    topic_names: dict[bytes, str]
    admin: ClusterView | None = None
    cluster: Document | None = None
    sizes: list[int] = field(default_factory=list)
    progress: Callable[[], AbstractContextManager[Progress | None]] = nullcontext
    """Shows how much of long input is read."""
    today: Today = field(default_factory=Today)
    partitions: int = 0
    """The partitions of the live topic; 0 for files."""
    state: list[OffsetsLog] = field(default_factory=list)
    """Logs of `__share_group_state` among files; those of a cluster are opened on demand."""
    state_failure: KgroupError | None = None
    """Why that topic of a cluster could not be opened."""
    gaps: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What the recorder of the files knows to be missing, by the name of the log."""

    def replay(
        self,
        selection: Chosen,
        at: At | None = None,
        *,
        keep_owners: bool = False,
        keep_notes: bool = False,
    ) -> Story:
        """Return the whole story of the selected groups.

        The coverage names partitions that cannot be read; if that is all of them, raise the failure of the
        first.
        """
        # Only Linux tells which cores the process may use.
        cores = os.cpu_count() or 1
        if sys.platform == "linux":
            cores = len(os.sched_getaffinity(0))
        with self.progress() as progress:
            story = replay(
                self.logs,
                topic_names=self.topic_names,
                names=selection.names,
                wanted=selection.wanted,
                at=at,
                runs=selection.collapse,
                extras=Extras(self.today, keep_owners, keep_notes),
                progress=progress,
                jobs=min(_MAX_JOBS, cores) if selection.collapse else 1,
            )
        self.check()
        story.coverage = list(map(self._with_gaps, story.coverage))
        if self.state or (story.shared and self.admin is not None):
            logs = self.state_logs()
            if (error := self.state_failure) is not None:
                topic = SHARE_STATE_TOPIC
                failed = Coverage(-1, topic, -1, -1, 0, 0, -1, -1, -1, (), error, topic)
                story.state_coverage.append(failed)
            add_deliveries(
                story,
                logs,
                self.topic_names,
                names=selection.names,
                wanted=selection.wanted,
                runs=selection.collapse,
                at=at,
            )
            story.state_coverage = list(map(self._with_gaps, story.state_coverage))
        return story

    def _with_gaps(self, covered: Coverage) -> Coverage:
        gaps = self.gaps.get(f"{covered.topic}-{covered.partition}", ())
        return replace(covered, gaps=tuple(gaps)) if gaps else covered

    def state_logs(self) -> list[OffsetsLog]:
        """Return the logs of `__share_group_state`; those of a cluster are opened now.

        A group's partition is unknown, so all are returned; none where the topic does not exist yet, and
        where `state_failure` says why it could not be opened.
        """
        from kgroup.history.sources.live import LiveLog, LiveTopic

        if self.state or self.admin is None:
            return self.state
        self.state_failure = None
        try:
            timeout_s = self.admin.retry.timeout_s
            topic = LiveTopic(self.admin.transport, timeout_s, with_names=False, name=SHARE_STATE_TOPIC)
        except KgroupError as error:
            self.state_failure = None if is_gone(error) else error
        else:
            self.state += [LiveLog(topic, partition, tolerant=True) for partition in topic.partitions]
        return self.state

    def delivery_readers(self, readers: Iterable[Reader], selection: Chosen) -> list[DeliveryReader]:
        """Return readers of share groups' actions, once `readers` have met a share group; else none.

        They name topics as far as names are known now.
        """
        folds = [reader.fold for reader in readers]
        if not any(group.state.share.newest >= 0 for fold in folds for group in fold.groups.values()):
            return []
        names = dict(self.topic_names)
        for fold in folds:
            names |= fold.names.names
        return [
            DeliveryReader(
                log, names, names=selection.names, wanted=selection.wanted, runs=selection.collapse
            )
            for log in self.state_logs()
        ]

    def check(self) -> None:
        """Raise the first log's failure, if none of the logs could be read."""
        failures = [log.failure for log in self.logs]
        if failures and all(failures):
            raise failures[0]  # type: ignore[misc]

    def try_again(self) -> None:
        """Retry the brokers that did not answer the last time."""
        from kgroup.history.sources.live import LiveLog

        for log in (*self.logs, *self.state):
            if isinstance(log, LiveLog):
                log.topic.try_again()

    @property
    def damage(self) -> list[BadRange]:
        """The damaged ranges of the logs, each once, however often the logs were read."""
        return list({str(bad): bad for log in self.logs for bad in log.bad}.values())

    def unread(self, group: str) -> KgroupError | None:
        """Return why a group's partition was not read to its end; None if it was."""
        partition = offsets_partition_of(group, self.partitions) if self.partitions else -1
        return next((log.failure for log in self.logs if log.partition == partition), None)

    @property
    def failures(self) -> list[tuple[str, KgroupError]]:
        """The logs that were not read to their end, and why."""
        logs = (*self.logs, *self.state)
        failed = [(log.source, log.failure) for log in logs if log.failure is not None]
        return failed if self.state_failure is None else [*failed, (SHARE_STATE_TOPIC, self.state_failure)]


def source_of(cluster: ClusterView, names: Iterable[str] | None = None) -> Source:
    """Return the logs of a cluster: of the partitions that these groups live in, or of all."""
    from kgroup.admin.read.today import today
    from kgroup.history.sources.live import LiveLog, LiveTopic

    topic = LiveTopic(cluster.transport, cluster.retry.timeout_s)
    partitions = topic.partitions
    if names is not None:
        partitions = sorted({offsets_partition_of(name, len(partitions)) for name in names})
    return Source(
        [LiveLog(topic, partition, tolerant=True) for partition in partitions],
        dict(topic.topic_names),
        cluster,
        today=today(cluster, next(iter(topic.leaders.values()), None)),
        partitions=len(topic.partitions),
    )
