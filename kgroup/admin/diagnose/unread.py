"""The fate of unread records: held back by a transaction that does not end, or about to be deleted."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from kgroup.admin.diagnose.facts import LAG, LOG_STARTS, TRANSACTIONS, Facts, Going, HeldBack, Unseen
from kgroup.admin.diagnose.wording import SHOWN
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import SHARE
from kgroup.admin.read.findings import some
from kgroup.admin.read.offsets import LATEST, READ_COMMITTED, ListedOffset, list_offsets
from kgroup.admin.read.open_transactions import open_transactions
from kgroup.admin.read.record_times import record_times
from kgroup.admin.refusals import code_name
from kgroup.admin.settings import topic_settings
from kgroup.domain import TopicPartition
from kgroup.durations import utc
from kgroup.errors import KgroupError

Found = tuple[str, str, str, list[str]]
"""A code, the finding, what to do about it, and its evidence."""
HELD_BACK, GOING = "KG311", "KG312"
OPEN_MS = 15_000
"""The age of a transaction's first record from which it counts as one that does not end."""
MARKERS = 1
NEAR = 0.75
"""The part of the retention after which an unread record counts as about to be deleted."""
FETCHED = 20
"""Partitions per round, over all groups, in which the first unread record is read for its time."""
RETENTION = "retention.ms"
Behind = Mapping[TopicPartition, int]
"""Partitions with unread records, and their committed offsets."""


def look_at_the_unread(cluster: ClusterView, facts: Sequence[Facts]) -> None:
    """Find what happens to unread records: a few requests per leader, for all groups."""
    found = [(each, _behind(each)) for each in facts if LAG not in each.left_out]
    for look, take in ((TRANSACTIONS, _held_back), (LOG_STARTS, _going)):
        behind = [(each, those) for each, those in found if look not in each.left_out]
        if places := {place for _, those in behind for place in those}:
            take(cluster, behind, places)


def _behind(facts: Facts) -> dict[TopicPartition, int]:
    unread = {}
    for place, row in zip(facts.places, facts.group.offsets, strict=True):
        if not row.lag or row.committed_offset is None:
            continue
        # A share group has finished, or may have, the record at its start offset.
        if facts.group.type != SHARE or row.lag == (row.log_end_offset or 0) - row.committed_offset:
            unread[place] = row.committed_offset
    return unread


def _held_back(
    cluster: ClusterView, behind: Sequence[tuple[Facts, Behind]], places: Collection[TopicPartition]
) -> None:
    stable = list_offsets(cluster, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
    # A reader of uncommitted records does not stop there; a marker may lie between the two. The log's end was
    # read before: without an open transaction the stable offset is not below it.
    stopped = [
        (
            each,
            {
                place: at.offset
                for place, row in zip(each.places, each.group.offsets, strict=True)
                if place in those
                and isinstance(at := stable[place], ListedOffset)
                and 0 <= at.offset - those[place] <= MARKERS
                and at.offset < (row.log_end_offset or 0)
            },
        )
        for each, those in behind
    ]
    asked = {place: OPEN_MS for _, those in stopped for place in those}
    old = _written_before(cluster, asked, stopped) if asked else set()
    if not old:
        return
    try:
        transactions = open_transactions(cluster, old)
    except KgroupError:
        transactions = {}  # it adds to a finding, and decides nothing
    for each, those in stopped:
        each.held_back = {
            place: HeldBack(at, transactions.get(place, ())) for place, at in those.items() if place in old
        }


def _going(
    cluster: ClusterView, behind: Sequence[tuple[Facts, Behind]], places: Collection[TopicPartition]
) -> None:
    try:
        settings = topic_settings(cluster, sorted({place.topic for place in places}), RETENTION)
    except KgroupError:
        return  # a forecast is no part of the verdict
    kept = {
        place: int(value)
        for place in places
        if isinstance(value := settings.get(place.topic), str) and value.isdigit() and int(value) > 0
    }
    near = _written_before(cluster, {p: int(ms * NEAR) for p, ms in kept.items()}, behind) if kept else set()
    now_ms, left = behind[0][0].now_ms, FETCHED
    for each, those in behind:
        # If records are out of order, a young one before the first unread one says nothing about that.
        first = sorted(kept.keys() & those.keys(), key=lambda place: (place not in near, place))
        looked_at = {place: those[place] for place in first[:left]}
        if not looked_at:
            continue

        left -= len(looked_at)
        times = record_times(cluster, looked_at)
        each.going = {
            place: Going(kept[place], at if isinstance(at, int) else None)
            for place, at in ((place, times.get(place)) for place in first)
            if place in near or (isinstance(at, int) and now_ms - at >= kept[place] * NEAR)
        }


def _written_before(
    cluster: ClusterView, ages_ms: Mapping[TopicPartition, int], behind: Sequence[tuple[Facts, Behind]]
) -> set[TopicPartition]:
    """Return the partitions of which some group's first unread record is older than this."""
    now_ms = behind[0][0].now_ms
    listed = list_offsets(cluster, {place: max(now_ms - age, 0) for place, age in ages_ms.items()})
    found = set()
    for each, those in behind:
        for place in those.keys() & listed.keys():
            at = listed[place]
            if isinstance(at, KgroupError):
                what = f"how long records of {place} have been unread: {at.message}"
                each.unseen.append(Unseen(LAG, code_name(at), what))
            elif not 0 <= at.offset <= those[place]:
                found.add(place)
    return found


def unread(facts: Facts) -> Iterator[Found]:
    """Yield what holds readers back, and what is about to be lost."""
    rows = {p: row for p, row in zip(facts.places, facts.group.offsets, strict=True) if p in facts.held_back}
    if rows:
        evidence = [
            f"{place}: committed {row.committed_offset}, last stable offset "
            f"{facts.held_back[place].stable_offset}, log end {row.log_end_offset}"
            for place, row in islice(sorted(rows.items()), SHOWN)
        ]
        known = {each for place in rows for each in facts.held_back[place].transactions}
        evidence += [
            f"transactional id {each.transactional_id!r}, producer {each.producer_id}, {each.state}"
            + (f" since {utc(each.start_ms)}" if each.start_ms >= 0 else "")
            for each in sorted(known, key=lambda each: each.transactional_id)[:SHOWN]
        ]
        if not known:
            evidence.append(
                "no coordinator lists its transaction: it hangs, or its owner may not be described"
            )
        yield (
            HELD_BACK,
            f"readers of committed records are held back in {some(rows)} by a transaction that does not end",
            "end it: restart its producer, or kafka-transactions.sh find-hanging, then abort",
            evidence,
        )
    yield from _deleted_soon(facts)


def _deleted_soon(facts: Facts) -> Iterator[Found]:
    if not facts.going:
        return
    from kgroup.history.fold.events import duration_text

    dated = {place: each for place, each in facts.going.items() if each.written_ms is not None}
    first = (
        min((each.written_ms or 0) + each.retention_ms - facts.now_ms for each in dated.values())
        if dated
        else None
    )
    when = "soon" if first is None else "from now on"
    if first is not None and first > 0:
        minutes = round(first / 60_000)
        when = f"in about {f'{minutes} min' if 0 < minutes < 120 else duration_text(first)}"
    yield (
        GOING,
        f"unread records of {some(facts.going)} are deleted {when}, by the topic's retention",
        f"read them before, or keep them for longer: {RETENTION} of the topic, by kafka-configs.sh",
        [
            f"{place}: the oldest unread record is of {utc(each.written_ms or 0)}, {RETENTION} is "
            f"{each.retention_ms} ({duration_text(each.retention_ms)})"
            for place, each in sorted(dated.items())
        ],
    )
