"""Whether each group's replayed state equals the one that the cluster describes."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple, TypeAlias

from kgroup.admin.models import ItemError
from kgroup.admin.read.describe import describe
from kgroup.admin.read.listing import list_groups
from kgroup.admin.read.source import Chosen, Source
from kgroup.domain import TopicPartition
from kgroup.errors import KgroupError
from kgroup.history.deliveries import DeliveryReader
from kgroup.history.fold.state import GroupState
from kgroup.history.fold.view import SHARE, STREAMS
from kgroup.history.replay import Coverage, Reader
from kgroup.history.sources.live import LiveLog
from kgroup.history.verify import About, Difference, differences, hiding_error, uncompared

Starts: TypeAlias = Mapping[str, Mapping[TopicPartition, int]] | None
"""Start offsets of share groups; None where they may not all have been read."""
_POLL_S = 0.5
_TRIES = 5
UNKNOWN_GROUP = "GROUP_ID_NOT_FOUND"
"""The only refusal that proves something: the group does not exist. All others leave that unknown."""
NOT_SEEN = "NOT_SEEN"
"""The code of a hidden group where no broker named an error."""


class Verdict(NamedTuple):
    """The differences of a group, and its parts that were not compared; `all_of_it`: nothing was.

    `failed`: the error that hid a requested part, or its name, so that another time or principal may show
    more; "" if none did.
    """

    differences: list[Difference]
    uncompared: list[str]
    all_of_it: bool = False
    failed: str | KgroupError = ""

    @property
    def word(self) -> str:
        return "differs" if self.differences else "not compared" if self.all_of_it else "same"

    @classmethod
    def unknown(cls, why: str, failed: str | KgroupError = NOT_SEEN) -> Verdict:
        """Return the verdict on a group of which nothing could be compared, by an error or its name."""
        return cls([], [f"all of it: {why}"], all_of_it=True, failed=failed)


@dataclass(slots=True)
class Comparison:
    """The verdicts by group, why there may be groups without one, and what was read of the logs."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    unseen: tuple[ItemError, ...] = ()
    coverage: list[Coverage] = field(default_factory=list)
    failures: list[tuple[str, KgroupError]] = field(default_factory=list)
    """The logs that were not read to their end, and why."""

    def named(self, word: str) -> list[str]:
        """Return the groups with this verdict."""
        return [name for name, verdict in self.verdicts.items() if verdict.word == word]


def compare(source: Source, selection: Chosen) -> Comparison:
    """Compare each group of the log or the cluster; one that changes meanwhile is compared again.

    If no log can be read, raise the failure of the first.
    """
    readers = [
        Reader(log, topic_names=source.topic_names, names=selection.names, wanted=selection.wanted)
        for log in source.logs
    ]
    deliveries: list[DeliveryReader] = []
    comparison = Comparison()
    for tries_left in reversed(range(_TRIES)):
        for reader in readers:
            reader.advance()
        deliveries += () if deliveries else source.delivery_readers(readers, selection)
        read: dict[str, dict[TopicPartition, int]] = {}
        for shared in deliveries:
            shared.advance()
            for group, partition, stored in shared.states:
                read.setdefault(group, {})[partition] = stored.value.start_offset
        # The partition of a group's state is unknown: unread records may belong to any group.
        hidden = source.state_failure is not None or any(log.failure is not None for log in source.state)
        starts = None if hidden else read
        states = {name: s for reader in readers for name, s in reader.fold.states.items()}
        deleted = {name for reader in readers for name in reader.fold.groups} - states.keys()
        asked: Collection[str] = comparison.named("differs")
        if not asked:
            listed, comparison.unseen = set(selection.names or ()), ()
            # Groups selected by id are requested by name, so no list has to be complete for them.
            if selection.names is None:
                assert source.admin is not None
                listing, selected = list_groups(source.admin), selection.wanted
                listed = {g.group_id for g in listing.groups if selected is None or selected(g.group_id)}
                comparison.unseen = listing.errors
            asked = states.keys() | listed
        kept = {n: v for n, v in comparison.verdicts.items() if n not in asked}
        comparison.verdicts = dict(sorted((kept | _compared(source, states, starts, asked, deleted)).items()))
        if not comparison.named("differs") or not tries_left:
            break
        time.sleep(_POLL_S)
    _excuse_restless(comparison, readers, deliveries)
    source.check()
    comparison.coverage = [
        *(reader.coverage for reader in readers),
        *(shared.coverage for shared in deliveries),
    ]
    comparison.failures = source.failures
    return comparison


def _excuse_restless(
    comparison: Comparison, readers: Sequence[Reader], deliveries: Sequence[DeliveryReader]
) -> None:
    """Exclude offsets committed while both sides are read: they never stand still."""
    restless = {
        name
        for name in comparison.named("differs")
        if all(difference.about is About.OFFSETS for difference in comparison.verdicts[name].differences)
    }
    before = _newest_commits(readers, deliveries, restless)
    if restless:
        for reader in readers:
            reader.advance()
        for shared in deliveries:
            shared.advance()
    after = _newest_commits(readers, deliveries, restless)
    for name in restless:
        if before.get(name) != after.get(name):
            why = "offsets: they are committed faster than they can be compared"
            rest = comparison.verdicts[name].uncompared
            comparison.verdicts[name] = Verdict([], [*rest, why], failed="CHANGES")


def _newest_commits(
    readers: Sequence[Reader], deliveries: Sequence[DeliveryReader], names: Collection[str]
) -> dict[str, set[object]]:
    """Return the log position of each group's newest commit; for a share group its start offsets."""
    states = {name: s for reader in readers for name, s in reader.fold.states.items() if name in names}
    newest: dict[str, set[object]] = {
        n: {max((c.log_offset for c in s.offsets.values()), default=-1)} for n, s in states.items()
    }
    for group, partition, stored in (state for reader in deliveries for state in reader.states):
        if group in names:
            newest.setdefault(group, set()).add((partition, stored.value.start_offset))
    return newest


def _compared(
    source: Source,
    states: Mapping[str, GroupState],
    starts: Starts,
    names: Iterable[str],
    deleted: Collection[str],
) -> dict[str, Verdict]:
    """Return how each of these groups differs, without those that neither the log nor the cluster knows.

    Of `deleted` groups nothing is left at the end of the log.
    """
    assert source.admin is not None
    described = describe(source.admin, sorted(names))
    said = {group.group_id: asdict(group) for group in described.groups}
    refused = {error.item: error for error in described.errors}
    verdicts: dict[str, Verdict] = {}
    for name in names:
        state = states.get(name)
        if unread := source.unread(name):
            verdicts[name] = Verdict.unknown(unread.message, unread)
        elif name in said:
            verdicts[name] = _verdict(
                source, state, said[name], None if starts is None else starts.get(name, {})
            )
        elif (refusal := refused.get(name)) is None or refusal.code != UNKNOWN_GROUP:
            verdicts[name] = (
                Verdict.unknown(refusal.message, refusal.code)
                if refusal
                else Verdict.unknown("the cluster did not answer")
            )
        elif state is not None:
            # A broker that cannot describe groups of this type proves nothing against them.
            verdicts[name] = (
                Verdict.unknown(refusal.message, refusal.code)
                if state.kind in (SHARE, STREAMS)
                else Verdict([Difference(f"in the log, but {refusal.message}")], [])
            )
        elif name in deleted:
            verdicts[name] = Verdict([], [])
    return verdicts


def _verdict(
    source: Source,
    state: GroupState | None,
    said: Mapping[str, object],
    starts: Mapping[TopicPartition, int] | None,
) -> Verdict:
    hidden = hiding_error(said)
    unlike = list(differences(state, said, starts=starts))
    not_compared = uncompared(state, said, starts_read=starts is not None)
    live = next((log.topic for log in source.logs if isinstance(log, LiveLog)), None)
    if live is not None and any(difference.about is About.PARTITIONS for difference in unlike):
        # Members may own partitions of topics that are gone.
        live.refresh()
        of_these = list(differences(state, said, live.topic_names, starts)) if live.topic_names else unlike
        if of_these != unlike:
            not_compared.append("partitions of topics that are gone: brokers do not describe their owners")
        unlike = of_these
    all_of_it = state is None and hidden is not None and not unlike
    unread = starts is None and state is not None and state.kind == SHARE
    failed = NOT_SEEN if unread else ""
    return Verdict(unlike, not_compared, all_of_it, failed=failed if hidden is None else str(hidden["code"]))
