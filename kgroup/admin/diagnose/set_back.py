"""Committed offsets that were set back, or deleted and begun anew: what was read is read again."""

from collections.abc import Iterator

from kgroup.admin.diagnose.deleted_offsets import REMOVED
from kgroup.admin.diagnose.facts import Facts
from kgroup.admin.diagnose.wording import Found
from kgroup.admin.models import SHARE
from kgroup.admin.read.findings import SHOWN, some
from kgroup.admin.shell import command
from kgroup.admin.statuses import NOT_THE_SAME_TOPIC, SUSPECT_MS
from kgroup.domain import TopicPartition, count_of
from kgroup.durations import utc
from kgroup.history.fold.events import Event, Kind


def set_back(facts: Facts) -> Iterator[Found]:
    """Yield the partitions whose committed offset is below what it was before it was set back."""
    if facts.group.type == SHARE:
        return
    before = _before(facts)
    rewinds = []
    for partition, row in facts.rows if before else ():
        was, event = before.get(partition, (-1, None))
        now, end = row.committed_offset, row.log_end_offset
        new = row.status is not None and row.status.name in NOT_THE_SAME_TOPIC
        # A log that ends before that offset is another topic's, or lost records.
        if event is not None and now is not None and end is not None and now < was <= end and not new:
            rewinds.append((partition, was, now, event))
    if not rewinds:
        return
    again = sum(was - now for _, was, now, _ in rewinds)
    many = f"{count_of(again, 'record')} {'is' if again == 1 else 'are'} read again"
    blame = command("blame", facts.group.group_id)
    yield (
        f"{some(p for p, *_ in rewinds)}: the committed offset was set back, and up to {many}",
        f"{blame} shows what did it; if nobody meant to, stop the readers and set it forward again",
        [
            f"{partition}: committed {now}, and {was} before {utc(event.timestamp_ms)}"
            + (f": {event.cause}" if event.cause else "")
            for partition, was, now, event in rewinds[:SHOWN]
        ],
    )


def _before(facts: Facts) -> dict[TopicPartition, tuple[int, Event]]:
    """Return the highest offset that each partition had before one was set back, and when that was.

    Commits of one member may overtake each other for a moment: those do not count.
    """
    passed = 0 if not facts.group.known_members else SUSPECT_MS
    before: dict[TopicPartition, tuple[int, Event]] = {}
    for event in facts.recent:
        if event.kind in (Kind.REWOUND, *REMOVED) and facts.age_ms(event.timestamp_ms) >= passed:
            for partition, (was, _) in zip(event.partitions, event.before, strict=False):
                if was > before.get(partition, (-1, event))[0]:
                    before[partition] = was, event
    return before
