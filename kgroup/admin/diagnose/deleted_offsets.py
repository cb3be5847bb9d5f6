"""Committed offsets deleted with their topic: the group's progress in it is no longer known."""

from collections.abc import Iterator
from itertools import chain

from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.wording import Found
from kgroup.admin.discovery import ClusterView, or_error
from kgroup.admin.read.findings import SHOWN, some
from kgroup.admin.refusals import is_gone
from kgroup.admin.shell import command
from kgroup.domain import TopicPartition, first_of
from kgroup.durations import utc
from kgroup.history.fold.events import Kind

REMOVED = (Kind.OFFSETS_DELETED, Kind.OFFSETS_EXPIRED_OR_DELETED)


def _removed(facts: Facts) -> dict[TopicPartition, int]:
    """Return the partitions whose offsets were removed since history counts, and when."""
    removed = {
        partition: event.timestamp_ms
        for event in facts.recent
        if event.kind in REMOVED
        for partition in event.partitions
    }
    for partition, row in facts.rows if removed else ():
        if row.committed_offset is not None:
            removed.pop(partition, None)
    return removed


def look_for_their_topics(cluster: ClusterView, facts: list[Facts]) -> list[Facts]:
    """Find the deleted topics of removed offsets: one request for all groups, if any lost some."""
    names = {partition.topic for partition in chain.from_iterable(map(_removed, facts))}
    answers = or_error(names, lambda: cluster.topics(names))
    gone = frozenset(name for name, at in answers.items() if is_gone(at))
    return [f.also(gone_topics=gone) for f in facts] if gone else facts


def matching_nothing(facts: Facts) -> Iterator[Found]:
    """Yield which members read nothing, as the patterns that they subscribe to match no topic."""
    members = facts.group.known_members
    resolved = facts.state.regexes if facts.state is not None else {}
    idle = [
        member
        for member in members
        if member.subscribed_regex and resolved.get(member.subscribed_regex) == () and not member.assignment
    ]
    if idle:
        patterns = sorted({member.subscribed_regex or "" for member in idle})
        check = command("regex check", patterns[0])
        who = f"{first_of([member.name for member in idle])} {'reads' if len(idle) == 1 else 'read'}"
        who = "the group reads" if len(idle) == len(members) else who
        yield (
            f"{who} nothing: no topic matches {' '.join(patterns)}",
            f"create the topic, or correct the pattern: {check}",
            ["as the coordinator resolved it, for the topics that the members may describe"],
        )


def lost(facts: Facts) -> Iterator[Found]:
    """Yield the topics that were deleted with the group's offsets."""
    removed = {
        partition: at for partition, at in _removed(facts).items() if partition.topic in facts.gone_topics
    }
    if removed:
        names = sorted({partition.topic for partition in removed})
        were, them = ("topics {} were", "them") if len(names) > 1 else ("topic {} was", "it")
        what = were.format(", ".join(names))
        yield (
            f"{what} deleted, and the committed offsets of {some(removed)} with {them}",
            "auto.offset.reset decides where readers begin if a topic of that name is created again",
            [f"removed at {utc(at)}: {partition}" for partition, at in sorted(removed.items())[:SHOWN]],
        )
