"""A check-up of one group: what describing it proves, with what its settings and its recent history add.

Findings keep the codes of findings.py; those here need the log's start, the broker's settings or history.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from kgroup.admin.conditions import raised
from kgroup.admin.describe import describe
from kgroup.admin.discovery import Cluster
from kgroup.admin.findings import ERROR, INFO, WARN, Meaning
from kgroup.admin.models import CLASSIC, CONSUMER, SHARE, GroupDescription
from kgroup.admin.offsets import EARLIEST, ListedOffset, list_offsets
from kgroup.admin.settings import broker_setting, group_settings
from kgroup.domain import TopicPartition, offsets_partition_of
from kgroup.errors import KgroupError
from kgroup.shell import command

if TYPE_CHECKING:
    from kgroup.history.events import Event

T = TypeVar("T")
DOCTOR_CODES: dict[str, Meaning] = {
    "KG110": Meaning(WARN, "An instance id changes hands again and again: two processes may share it"),
    "KG111": Meaning(WARN, "The group rebalances again and again"),
    "KG307": Meaning(WARN, "The group's offsets expire soon"),
    "KG308": Meaning(ERROR, "Records were deleted before the group read them"),
}
FLAPS, REBALANCES = 3, 5
SESSION_TIMEOUT = "consumer.session.timeout.ms"
RETENTION = "offsets.retention.minutes"
_RANK = {ERROR: 0, WARN: 1, INFO: 2}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A finding with what shows it; `evidence` are facts in words, each with its source."""

    code: str
    severity: str
    message: str
    hint: str | None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checkup:
    """What was found, worst first, and what could not be looked at."""

    group: GroupDescription
    findings: tuple[Diagnosis, ...]
    skipped: tuple[str, ...]
    history_since_ms: int | None

    @property
    def healthy(self) -> bool:
        """Whether nothing found is an error."""
        return all(finding.severity != ERROR for finding in self.findings)


class _Facts:
    """What is known beyond the description; a question that cannot be answered is noted, not fatal."""

    def __init__(self, cluster: Cluster, group: GroupDescription, window_ms: int, now_ms: int) -> None:
        self.skipped: list[str] = []
        self.group, self.now_ms, self.since_ms = group, now_ms, now_ms - window_ms
        self.session_ms = self._try("session timeout", lambda: _session_ms(cluster, group))
        self.retention_ms = self._try("offsets retention", lambda: _retention_ms(cluster, group))
        self.starts = self._try("log starts", lambda: _starts(cluster, group)) or {}
        self.history = self._try("history", lambda: _events(cluster, group.group_id))
        self.recent = [event for event in self.history or () if event.timestamp_ms >= self.since_ms]

    def _try(self, what: str, ask: Callable[[], T]) -> T | None:
        try:
            return ask()
        except KgroupError as error:
            self.skipped.append(f"{what}: {error.message}")
            return None


def examine(
    cluster: Cluster, group_id: str, *, window_ms: int = 3_600_000, now_ms: int | None = None
) -> Checkup:
    """Look at a group from every side; raises when the group itself cannot be described.

    `window_ms` is how far back history counts, where `__consumer_offsets` may be read.
    """
    told = describe(cluster, [group_id])
    for error in told.errors:
        raise raised(error)
    (group,) = told.groups
    facts = _Facts(cluster, group, window_ms, time.time_ns() // 1_000_000 if now_ms is None else now_ms)
    found = [
        Diagnosis(f.code, f.severity, f.message, f.hint, tuple(_evidence(f.code, facts)))
        for f in group.findings
    ]
    for check in (_deleted_unread, _flapping, _restless, _expiring):
        found += check(facts)
    found.sort(key=lambda finding: (_RANK[finding.severity], finding.code))
    since = None if facts.history is None else facts.since_ms
    unread = tuple(f"{row.topic}-{row.partition}: {row.error}" for row in group.offsets if row.error)
    return Checkup(group, tuple(found), (*facts.skipped, *unread), since)


def _session_ms(cluster: Cluster, group: GroupDescription) -> int | None:
    if group.type != CONSUMER:
        return None
    values = {setting.name: setting.value for setting in group_settings(cluster, group.group_id)}
    return int(values.get(SESSION_TIMEOUT) or 0) or None


def _retention_ms(cluster: Cluster, group: GroupDescription) -> int | None:
    if group.coordinator is None or group.type == SHARE:
        return None
    minutes = broker_setting(cluster, group.coordinator.id, RETENTION)
    return int(minutes) * 60_000 if minutes else None


def _starts(cluster: Cluster, group: GroupDescription) -> dict[TopicPartition, int]:
    readable = [TopicPartition(row.topic, row.partition) for row in group.offsets if row.error is None]
    found = list_offsets(cluster, dict.fromkeys(readable, EARLIEST)) if readable else {}
    return {p: listed.offset for p, listed in found.items() if isinstance(listed, ListedOffset)}


def _events(cluster: Cluster, group_id: str) -> list[Event]:
    from kgroup.history.live import LiveLog, LiveTopic
    from kgroup.history.replay import replay

    topic = LiveTopic(cluster.transport, cluster.retry.timeout_s)
    log = LiveLog(topic, offsets_partition_of(group_id, len(topic.partitions)))
    return replay([log], topic_names=topic.topic_names, names=[group_id]).events


def _evidence(code: str, facts: _Facts) -> Iterator[str]:
    """What the facts add to a finding of the description."""
    if code in ("KG101", "KG102"):
        started = _last(facts.history, "rebalance-started")
        completed = _last(facts.history, "rebalance-completed")
        if started and (completed is None or completed.timestamp_ms < started.timestamp_ms):
            since = f"rebalancing since {_iso(started.timestamp_ms)}"
            yield f"{since}, begun by: {started.cause or started.detail} (log offset {started.offset})"
    elif code == "KG103":
        yield from _when_the_absent_expire(facts)
    elif code == "KG304" and facts.retention_ms and facts.history:
        end = _iso(_last_write(facts.history) + facts.retention_ms)
        # A classic group's offsets live from when it became empty, others' each from its commit.
        every = "none before" if facts.group.type == CLASSIC else "the last not before"
        yield f"{every} {end}: {RETENTION} after the group's newest record"


def _when_the_absent_expire(facts: _Facts) -> Iterator[str]:
    session = facts.session_ms
    for member in facts.group.known_members:
        if member.state != "left":
            continue
        left = [
            event.timestamp_ms
            for event in facts.history or ()
            if event.kind == "member-left-for-now" and event.instance_id == member.instance_id
        ]
        if left and session:
            yield f"{member.name} left at {_iso(left[-1])}, its session ends at {_iso(left[-1] + session)}"
        elif session:
            yield f"{member.name}'s session ends within {session / 1000:g} s ({SESSION_TIMEOUT})"


def _deleted_unread(facts: _Facts) -> Iterator[Diagnosis]:
    lost = [
        f"{row.topic}-{row.partition}: {start - row.committed_offset} records, "
        f"from {row.committed_offset} to {start}"
        for row in facts.group.offsets
        if row.committed_offset is not None
        and (start := facts.starts.get(TopicPartition(row.topic, row.partition), -1)) > row.committed_offset
    ]
    if lost:
        count = f"{len(lost)} partition" + ("s" if len(lost) > 1 else "")
        yield _diagnosis(
            "KG308",
            f"the log of {count} begins after the committed offset: those records are gone unread",
            "auto.offset.reset decides where the reader goes on; longer retention keeps it from happening",
            lost,
        )


def _flapping(facts: _Facts) -> Iterator[Diagnosis]:
    replaced = Counter(e.instance_id for e in facts.recent if e.kind == "member-replaced" and e.instance_id)
    for instance_id, count in sorted(replaced.items()):
        if count >= FLAPS:
            times = [_iso(e.timestamp_ms) for e in facts.recent if e.instance_id == instance_id][-FLAPS:]
            yield _diagnosis(
                "KG110",
                f"{instance_id} was taken over {count} times since {_iso(facts.since_ms)}",
                "give every process a group.instance.id of its own; kgroup explain FENCED_INSTANCE_ID",
                [f"last at {', '.join(times)}"],
            )


def _restless(facts: _Facts) -> Iterator[Diagnosis]:
    started = [event for event in facts.recent if event.kind == "rebalance-started"]
    if len(started) >= REBALANCES:
        causes = Counter(event.cause or event.detail for event in started).most_common(3)
        yield _diagnosis(
            "KG111",
            f"{len(started)} rebalances since {_iso(facts.since_ms)}",
            f"{command('replay-log', facts.group.group_id, options='--since 1h')} tells each",
            [f"{count} times: {cause}" for cause, count in causes],
        )


def _expiring(facts: _Facts) -> Iterator[Diagnosis]:
    """An empty group whose newest record is older than nine tenths of the retention."""
    if facts.group.known_members or not facts.history or not facts.retention_ms:
        return
    if not any(row.committed_offset is not None for row in facts.group.offsets):
        return
    last = _last_write(facts.history)
    left = last + facts.retention_ms - facts.now_ms
    if left < facts.retention_ms // 10:
        renew = command("reset-offsets", facts.group.group_id, options="--all-topics --to-current")
        yield _diagnosis(
            "KG307",
            f"nothing was written since {_iso(last)}: the last offset expires after "
            f"{_iso(last + facts.retention_ms)}",
            f"{renew} renews them",
            [f"{RETENTION} is {facts.retention_ms // 60_000}"],
        )


def _diagnosis(code: str, message: str, hint: str, evidence: Iterable[str]) -> Diagnosis:
    return Diagnosis(code, DOCTOR_CODES[code].severity, message, hint, tuple(evidence))


def _last(events: Sequence[Event] | None, kind: str) -> Event | None:
    return next((event for event in reversed(events or ()) if event.kind == kind), None)


def _last_write(events: Sequence[Event]) -> int:
    return max(max(event.timestamp_ms, event.end_timestamp_ms) for event in events)


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
