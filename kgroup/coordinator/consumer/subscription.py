"""The subscriptions of a group: topic names, patterns, and the hash of the topics behind them (KIP-848)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import NamedTuple

from kgroup.coordinator.consumer.group import ConsumerGroup
from kgroup.coordinator.consumer.member import ConsumerMember
from kgroup.coordinator.consumer.records import remove_regex
from kgroup.coordinator.metrics import Counters
from kgroup.coordinator.records import write_epoch
from kgroup.coordinator.state import Step
from kgroup.coordinator.timer_kinds import TimerKind
from kgroup.coordinator.topic_hashes import hash_of
from kgroup.domain import TopicImage
from kgroup.patterns import Pattern, compile_regex, matching_topics
from kgroup.protocol import group_records as r
from kgroup.timers import TimerKey

LEAST_BETWEEN_REFRESHES_MS = 10_000
MOST_EFFORT = 100_000
"""Names times instructions that one step matches: some 12 ms with the slowest patterns."""
COMPILING = 25
"""As many names take as long to match as the pattern takes to compile."""


class RegexChange(Enum):
    """What a heartbeat did to the member's pattern."""

    NONE = auto()
    UPDATED = auto()
    UPDATED_AND_RESOLVED = auto()


class Subscriptions(NamedTuple):
    """The group's subscriptions including a member's change: subscribers by name and pattern."""

    names: Counter[str]
    patterns: Counter[str]
    members: int

    @classmethod
    def with_change(
        cls, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember
    ) -> Subscriptions:
        names, patterns, members = group.by_name, group.by_regex, len(group.members)
        if before.names != after.names:
            names = names.copy()
            names.subtract(before.names)
            names.update(after.names)
            names = +names
        if before.regex != after.regex:
            patterns = patterns.copy()
            patterns.subtract(filter(None, (before.regex,)))
            patterns.update(filter(None, (after.regex,)))
            patterns = +patterns
        if after.member_id not in group.members and after.instance_id not in group.static:
            members += 1
        return cls(names, patterns, members)

    @classmethod
    def without(cls, group: ConsumerGroup, leavers: Iterable[ConsumerMember]) -> Subscriptions:
        gone = list(leavers)
        names, patterns = group.by_name.copy(), group.by_regex.copy()
        for member in gone:
            names.subtract(member.names)
            patterns.subtract(filter(None, (member.regex,)))
        return cls(+names, +patterns, len(group.members) - len(gone))

    def homogeneous(self) -> bool:
        """Whether all members subscribe alike: the same names, or one and the same pattern and no names."""
        if self.patterns:
            return len(self.patterns) == 1 and not self.names and self.patterns.total() == self.members
        return all(count == self.members for count in self.names.values())

    def topics(self, group: ConsumerGroup) -> set[str]:
        """Return names subscribed to, and topics that patterns resolved to."""
        return set(self.names).union(*(group.resolved_topics(pattern) for pattern in self.patterns))


def update_regex(
    step: Step, group: ConsumerGroup, before: ConsumerMember, after: ConsumerMember
) -> RegexChange:
    """Note a changed pattern, and have the group's patterns resolved again when that is due.

    Raise Refused(INVALID_REGULAR_EXPRESSION) for a pattern new to the group that is not RE2.
    """
    change, must_resolve = RegexChange.NONE, False
    # Resolving looks at every topic of the cluster, so a heartbeat only schedules it. The group goes on with
    # the last result, and a pattern new to it names no topics until its first resolution (KIP-848).
    old, new = before.regex, after.regex
    if before.metadata.subscribed_topic_regex != after.metadata.subscribed_topic_regex:
        change = RegexChange.UPDATED
        # No other member has it: the one moment to report that it is malformed. Later ones trust the record.
        if new and not group.by_regex[new]:
            compile_regex(new)
            must_resolve = True
        # The pattern is resolved already, or it matches nothing: that changes the topics now.
        elif (new and new in group.resolved) or (not new and old):
            change = RegexChange.UPDATED_AND_RESOLVED
        # The last subscriber leaves: if the record stayed, an unused pattern would be resolved for ever.
        if old and group.by_regex[old] == 1:
            remove_regex(step, group.group_id, old)
    if must_resolve or group.by_regex:
        _schedule_resolution(step, group, Subscriptions.with_change(group, before, after), must_resolve)
    return change


def _schedule_resolution(step: Step, group: ConsumerGroup, after: Subscriptions, due: bool) -> None:
    """Have all patterns resolved together, unless they are being or have just been.

    All of them, because their topics' hash is one. Not more often than every 10 s, because any member may
    change its pattern at each heartbeat and have every topic of the cluster matched again.
    """
    key = TimerKey(TimerKind.CONSUMER_REGEX, group.group_id)
    last = next(iter(group.resolved.values()), None)
    if step.is_armed(key) or not after.patterns:
        return
    if last is not None and step.now_ms <= last.timestamp + LEAST_BETWEEN_REFRESHES_MS:
        return
    due = due or last is None or len(after.patterns) != len(group.resolved)
    # New topics may match. A deleted topic needs no resolution: its name then names nothing.
    if last is not None:
        due = due or last.version < step.state.image.created_version
        due = due or step.now_ms > last.timestamp + step.config.regex_refresh_interval_ms
    if due:
        step.arm(key, 0, Resolution(step.now_ms, tuple(after.patterns), step.describable))


@dataclass(slots=True)
class Resolution:
    """Patterns being matched against the topics that existed when that began; soft.

    All patterns match the topics that the member whose heartbeat started it may see, as in Kafka.
    """

    started_ms: int
    patterns: tuple[str, ...]
    describable: Callable[[str], bool] | None
    image: TopicImage | None = None
    names: Sequence[str] = ()
    found: dict[str, set[str]] = field(default_factory=dict)
    _compiled: Pattern | None = None
    _at: int = 0

    def go_on(self) -> bool:
        """Match a few more names; return whether any are left. The work of one call is bounded."""
        effort = 0
        while len(self.found) < len(self.patterns) or self._compiled is not None:
            if effort >= MOST_EFFORT:
                return True
            if self._compiled is None:
                pattern = self.patterns[len(self.found)]
                self.found[pattern] = set()
                self._compiled, self._at = compile_regex(pattern), 0
                effort += COMPILING * self._compiled.programsize
            size = self._compiled.programsize
            names = self.names[self._at : self._at + max((MOST_EFFORT - effort) // size, 1)]
            self.found[self.patterns[len(self.found) - 1]] |= matching_topics(self._compiled, names)
            effort += len(names) * size
            self._at += len(names)
            if self._at >= len(self.names):
                self._compiled = None
        return False


def resolve(step: Step, group: ConsumerGroup, work: Resolution) -> None:
    """Write what each pattern matches; bump the group epoch when any set of topics changed.

    Many topics and long patterns take several steps, so that others are served in between.
    """
    if work.image is None:
        work.image = image = step.state.image
        work.names = tuple(image.by_name)
    if work.go_on():
        step.arm(TimerKey(TimerKind.CONSUMER_REGEX, group.group_id), 0, work)
        return
    topics = set(group.by_name)
    changed = False
    for pattern in work.patterns:
        # Its last subscriber has left since; no later step would remove a record written now.
        if not group.by_regex[pattern]:
            continue
        matching = tuple(sorted(filter(work.describable, work.found[pattern])))
        changed = changed or matching != group.resolved_topics(pattern)
        topics.update(matching)
        value = r.ConsumerGroupRegularExpressionValue(
            topics=matching, version=work.image.version, timestamp=work.started_ms
        )
        key = r.ConsumerGroupRegularExpressionKey(group_id=group.group_id, regular_expression=pattern)
        step.write(key, value)
    for pattern in group.by_regex:
        if pattern not in work.patterns:
            topics.update(group.resolved_topics(pattern))
    new_hash = hash_of(step.state, topics)
    if changed or new_hash != group.metadata_hash:
        bump_epoch(step, group, new_hash)


def refresh(step: Step, group: ConsumerGroup, subscriptions: Subscriptions, *, bump: bool) -> int:
    """Refresh the topics; return the group epoch, bumped if asked to or if they changed."""
    epoch = group.epoch
    new_hash = hash_of(step.state, subscriptions.topics(group))
    if bump or new_hash != group.metadata_hash:
        epoch = bump_epoch(step, group, new_hash)
    else:
        step.defer(partial(group.topics_refreshed, step.now_ms, epoch))
    # A record from before Kafka 4.0 (type 4), replaced by the hash: cleared at the next change.
    if group.has_partition_metadata:
        step.write(r.ConsumerGroupPartitionMetadataKey(group_id=group.group_id), None)
    return epoch


def bump_epoch(step: Step, group: ConsumerGroup, new_hash: int) -> int:
    """Write the next group epoch, which asks for a new target assignment."""
    epoch = group.epoch + 1
    write_epoch(step, group, epoch, new_hash)
    step.defer(partial(_count_rebalance, step.state.counters))
    step.defer(partial(group.topics_refreshed, step.now_ms, epoch))
    return epoch


def _count_rebalance(counters: Counters) -> None:
    counters.consumer_group_rebalance += 1
