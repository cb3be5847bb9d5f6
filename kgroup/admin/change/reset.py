"""Where a reset moves each committed offset: every spec of Kafka's tool, with its clamping and fallbacks.

Judged against `kafka-consumer-groups --reset-offsets` of Kafka 4.3: requested offsets are kept within the
log, times without a record become the log's end, and "current" is the end where nothing is committed.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from kgroup.admin.change.offset_plans import (
    ABSENT,
    CommittedOffset,
    Draft,
    GroupNow,
    OffsetsPlan,
    Purpose,
    hints_for_absent,
    look_before,
    make_plan,
)
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import TopicDescription
from kgroup.admin.read.offsets import EARLIEST, LATEST, ListedOffset, list_offsets
from kgroup.admin.refusals import code_name, not_found
from kgroup.domain import TopicPartition
from kgroup.errors import ConfigError, KgroupError

TO_EARLIEST, TO_LATEST, TO_CURRENT = "to-earliest", "to-latest", "to-current"
TO_OFFSET, SHIFT_BY, TO_TIME = "to-offset", "shift-by", "to-datetime"
FROM_FILE, TO_GROUP = "from-file", "to-group"
NO_COMMITTED_OFFSET = "NO_COMMITTED_OFFSET"

FileRows = Mapping[str, Mapping[TopicPartition, int]]
"""Offsets by group and partition, as a plan file lists them."""


@dataclass(frozen=True, slots=True)
class Spec:
    """The target: `number` is the offset, shift or time in ms, `rows` the file's, `group` the model."""

    kind: str
    number: int = 0
    rows: FileRows = field(default_factory=dict)
    group: str = ""

    @property
    def text(self) -> str:
        """The spec in words, as in the journal."""
        if self.kind == TO_TIME:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=self.number)
            return f"{self.kind} {moment.isoformat(timespec='milliseconds')}"
        value = self.group or (str(self.number) if self.kind in (TO_OFFSET, SHIFT_BY) else "")
        return f"{self.kind} {value}".strip()


@dataclass(frozen=True, slots=True)
class Scope:
    """The partitions: everything committed, or topics, each with some partitions or (None) all of them."""

    all_topics: bool = False
    topics: Mapping[str, frozenset[int] | None] = field(default_factory=dict)


def plan_reset(
    cluster: ClusterView,
    group_ids: Iterable[str],
    spec: Spec,
    scope: Scope,
    reason: str | None = None,
    share: Collection[str] = (),
    create: bool = True,
) -> OffsetsPlan:
    """Return the effect of the reset on each group, allowed now or not; changes nothing.

    Partitions that cannot be reset are failed items. Raise for a named topic or a model that does not exist,
    and ConfigError for groups missing in the file and for a time before 1970. Absent groups in `share` become
    share groups; with `create` off, absent groups stay absent.
    """
    if spec.kind == TO_TIME and spec.number < 0:
        raise ConfigError("the time to reset to is before 1970", "--to-earliest moves to the first record")
    names = list(dict.fromkeys(group_ids))
    models = [spec.group] if spec.kind == TO_GROUP else []
    now = look_before(cluster, [*names, *models], share)
    for model in (now[name] for name in models):
        if model.error is not None:
            raise model.error
        if model.state == ABSENT and not model.committed:
            raise not_found(model.group_id)
    hints = {} if create else hints_for_absent(cluster, now, names)
    whole = [topic for topic, numbers in scope.topics.items() if numbers is None]
    known = cluster.topics(whole)
    in_scope = {TopicPartition(topic, n) for topic, numbers in scope.topics.items() for n in numbers or ()}
    for topic in whole:
        described = known[topic]
        if not isinstance(described, TopicDescription):
            raise described
        in_scope |= {TopicPartition(topic, entry.partition) for entry in described.partitions}
    named = frozenset(in_scope)
    chosen = {
        group: frozenset() if group in hints else _chosen(now[group], spec, scope, named, now)
        for group in names
    }
    log = _Log(cluster, {partition for partitions in chosen.values() for partition in partitions})
    drafts: dict[str, dict[TopicPartition, Draft]] = {group: {} for group in chosen}
    for group, partitions in chosen.items():
        for p in partitions:
            try:
                drafts[group][p] = _target(p, now[group], spec, log, now)
            except KgroupError as failure:
                drafts[group][p] = Draft(None, failure.message, code_name(failure))
    # As in Kafka, a reset to the current offset commits it again.
    purpose = Purpose("reset-offsets", spec.text, reason, mark=True, again=spec.kind == TO_CURRENT)
    return make_plan(purpose, now, drafts, hints)


def _chosen(
    group: GroupNow, spec: Spec, scope: Scope, named: frozenset[TopicPartition], now: Mapping[str, GroupNow]
) -> frozenset[TopicPartition]:
    if spec.kind == FROM_FILE:
        if group.group_id not in spec.rows:
            raise ConfigError(f"the file has no row for group {group.group_id}")
        rows = frozenset(spec.rows[group.group_id])
        return rows & named if named else rows
    if spec.kind == TO_GROUP:
        model = frozenset(now[spec.group].committed)
        return model & named if named else model
    unset = group.share.not_set if group.share is not None else ()
    return frozenset((*group.committed, *unset)) | named if scope.all_topics else named


class _Log:
    """Ends and times of some partitions' logs, each kind requested once and only when needed."""

    def __init__(self, cluster: ClusterView, partitions: Iterable[TopicPartition]) -> None:
        self._cluster = cluster
        self._partitions = frozenset(partitions)
        self._topics = cluster.topics({p.topic for p in self._partitions})
        self._known: dict[int, Mapping[TopicPartition, ListedOffset | KgroupError]] = {}

    def at(self, partition: TopicPartition, when: int) -> int:
        """Return the offset for EARLIEST, LATEST or a time in ms; -1 for a time after the last record."""
        if when not in self._known:
            asked = dict.fromkeys(self._partitions, when)
            self._known[when] = list_offsets(self._cluster, asked, self._topics)
        listed = self._known[when][partition]
        if isinstance(listed, KgroupError):
            raise listed
        return listed.offset

    def within(self, partition: TopicPartition, offset: int) -> Draft:
        """Return the offset, or the end of the log that it lies beyond."""
        start, end = self.at(partition, EARLIEST), self.at(partition, LATEST)
        if offset > end:
            return Draft(CommittedOffset(end), f"{offset} lies beyond the end of the log, {end}")
        if offset < start:
            return Draft(CommittedOffset(start), f"{offset} lies before the start of the log, {start}")
        return Draft(CommittedOffset(offset))


def _target(
    partition: TopicPartition, group: GroupNow, spec: Spec, log: _Log, now: Mapping[str, GroupNow]
) -> Draft:
    if spec.kind in (TO_EARLIEST, TO_LATEST):
        return Draft(CommittedOffset(log.at(partition, EARLIEST if spec.kind == TO_EARLIEST else LATEST)))
    if spec.kind == TO_OFFSET:
        return log.within(partition, spec.number)
    if spec.kind == FROM_FILE:
        return log.within(partition, spec.rows[group.group_id][partition])
    if spec.kind == TO_TIME:
        offset = log.at(partition, spec.number)
        if offset >= 0:
            return Draft(CommittedOffset(offset))
        return Draft(CommittedOffset(log.at(partition, LATEST)), "no record is that new: the end of the log")
    stored = (now[spec.group] if spec.kind == TO_GROUP else group).committed.get(partition)
    if stored is not None and spec.kind == TO_CURRENT:
        return Draft(CommittedOffset(stored.offset))
    if stored is not None:
        return log.within(partition, stored.offset + (spec.number if spec.kind == SHIFT_BY else 0))
    if spec.kind == TO_CURRENT:
        return Draft(CommittedOffset(log.at(partition, LATEST)), "nothing committed: the end of the log")
    lacks = "nothing is committed that could be shifted"
    if spec.kind == TO_GROUP:
        lacks = f"{spec.group} has committed nothing for it"
    return Draft(None, lacks, NO_COMMITTED_OFFSET)
