"""The fate of unread records: held back by a transaction that does not end, or about to be deleted."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from operator import add

from kgroup.admin.diagnose.facts import Facts, Going
from kgroup.admin.diagnose.wording import END_IT, Found, transaction_text
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import SHARE
from kgroup.admin.read.broker_clock import clock_of
from kgroup.admin.read.findings import SHOWN, some
from kgroup.admin.read.offsets import EARLIEST, ListedOffset, list_offsets
from kgroup.admin.read.open_transactions import seen_transactions
from kgroup.admin.read.record_times import times_at
from kgroup.admin.refusals import code_name
from kgroup.admin.settings import topic_settings
from kgroup.admin.statuses import ERROR, LAG, TRANSACTIONS, PartitionStatus, Unseen
from kgroup.domain import TopicPartition, grouped
from kgroup.durations import utc
from kgroup.errors import KgroupError
from kgroup.history.fold.events import duration_text

NEAR = 0.75
"""The part of the retention after which an unread record counts as about to be deleted."""
FETCHED = 20
"""Partitions per round, over all groups, in which the first unread record is read for its time."""
DOUBTFUL = 200
"""The same for those in which it alone decides."""
RETENTION, POLICY = "retention.ms", "cleanup.policy"
_CUT = (PartitionStatus.PURGED, PartitionStatus.RECREATED, PartitionStatus.UNKNOWN)
"""The statuses of partitions whose log may begin after what is committed."""
Listed = Mapping[TopicPartition, ListedOffset | KgroupError]
Behind = Mapping[TopicPartition, int]
"""Partitions with unread records, and their committed offsets."""


def look_at_the_unread(cluster: ClusterView, facts: list[Facts]) -> list[Facts]:
    """Find what happens to unread records: a few requests per leader, for all groups."""
    least = _least(facts)
    known = _going(cluster, facts, least) if least else facts
    held = {f.group.group_id: those for f in known if (those := _held_back(f))}
    if not held or TRANSACTIONS in facts[0].left_out:
        return known
    # Who holds them back adds to a finding, and decides nothing.
    transactions = seen_transactions(cluster, {p for those in held.values() for p in those})
    return [
        f.also(holding={p: transactions.get(p, ()) for p in held[f.group.group_id]})
        if f.group.group_id in held
        else f
        for f in known
    ]


def _held_back(facts: Facts) -> list[TopicPartition]:
    held = facts.with_status(PartitionStatus.HELD_BACK)
    return [partition for partition, _, status in held if status.weight == ERROR]


def _least(facts: Sequence[Facts]) -> dict[TopicPartition, int]:
    """Return the partitions with unread records, and the lowest offset that any group has committed there."""
    least: dict[TopicPartition, int] = {}
    to_make = [rows for f in facts if (rows := f.group.to_make) is not None]
    for alike in grouped((id(rows.places), rows) for rows in to_make).values():
        lowest = map(min, zip(*[rows.offsets for rows in alike], strict=True))
        # All were measured by the same ends.
        ends = map(add, alike[0].offsets, alike[0].lags)
        for partition, at, end in zip(alike[0].places, lowest, ends, strict=True):
            if at < end:
                least[partition] = min(at, least.get(partition, at))
    for made in facts:
        for partition, at in _behind(made).items() if made.group.to_make is None else ():
            least[partition] = min(at, least.get(partition, at))
    return least


def _behind(facts: Facts) -> dict[TopicPartition, int]:
    if facts.group.to_make is not None:
        return facts.group.to_make.behind
    unread = {}
    for partition, row in facts.rows:
        if row.committed_offset is None or not row.lag or row.lag == row.unreadable:
            continue
        # A share group has finished, or may have, the record at its start offset.
        if facts.group.type != SHARE or row.lag == (row.log_end_offset or 0) - row.committed_offset:
            unread[partition] = row.committed_offset
    return unread


def _going(cluster: ClusterView, facts: list[Facts], least: Behind) -> list[Facts]:
    """Return the facts with the partitions whose unread records are about to be deleted."""
    names = sorted({partition.topic for partition in least})
    try:
        settings, policies = (topic_settings(cluster, names, name) for name in (RETENTION, POLICY))
    except KgroupError:
        return facts  # a forecast is no part of the verdict
    kept = {
        partition: int(value)
        for partition in least
        if isinstance(value := settings.get(partition.topic), str)
        and value.isdigit()
        and int(value) > 0
        # Compaction alone deletes nothing by age.
        and (not isinstance(policy := policies.get(partition.topic), str) or "delete" in policy)
    }
    if not kept:
        return facts
    near, now_ms = {partition: int(ms * NEAR) for partition, ms in kept.items()}, facts[0].now_ms
    few, listed = len(facts) <= FETCHED, _listed(cluster, near, now_ms)
    young = _young(listed, now_ms)
    if not few and all(at >= young.get(partition, 0) for partition, at in least.items()):
        return facts
    behind = [(f, _behind(f)) for f in facts]
    aged = [*_written_before(cluster, listed, behind, now_ms)]
    if any(old or unsure for old, unsure, _ in aged):
        here_ms, now_ms = now_ms, clock_of(cluster, now_ms).least_ms
        if now_ms != here_ms:
            aged = [*_written_before(cluster, _listed(cluster, near, now_ms), behind, now_ms)]
    left, doubtful = FETCHED, DOUBTFUL
    chosen: list[tuple[Facts, Behind, set[TopicPartition]]] = []
    for (group_facts, those), (old, unsure, unseen) in zip(behind, aged, strict=True):
        # If records are out of order, a young one before the first unread one says nothing about that. Of
        # many groups few partitions could be looked at, and it costs a fifth of the check-up.
        rest = kept.keys() & those.keys() - old - unsure if few and left else ()
        ours, decided = [*sorted(old), *sorted(rest)][:left], sorted(unsure)[:doubtful]
        left, doubtful = left - len(ours), doubtful - len(decided)
        group_facts = group_facts.also(*unseen)
        chosen.append(
            (group_facts, {partition: those[partition] for partition in sorted({*ours, *decided})}, old)
        )
    times = times_at(cluster, [at for _, looked_at, _ in chosen for at in looked_at.items()])
    known = []
    for group_facts, looked_at, old in chosen:
        going = {
            partition: Going(kept[partition], at if isinstance(at, int) else None)
            for partition in sorted(old | looked_at.keys())
            for at in (times.get((partition, looked_at.get(partition, -1))),)
            if (now_ms - at >= kept[partition] * NEAR if isinstance(at, int) else partition in old)
        }
        known.append(group_facts.also(going=going) if going else group_facts)
    return known


def _listed(cluster: ClusterView, ages_ms: Mapping[TopicPartition, int], now_ms: int) -> Listed:
    """Return the first record of each partition that is younger than this."""
    return list_offsets(cluster, {partition: max(now_ms - age, 0) for partition, age in ages_ms.items()})


def _young(listed: Listed, now_ms: int) -> Mapping[TopicPartition, float]:
    """Return the offset from which on all is younger; infinity where that is not known."""
    return {
        partition: at.offset
        if isinstance(at, ListedOffset) and at.offset >= 0 and at.timestamp_ms <= now_ms
        else inf
        for partition, at in listed.items()
    }


def _written_before(
    cluster: ClusterView,
    listed: Listed,
    behind: Sequence[tuple[Facts, Behind]],
    now_ms: int,
) -> Iterator[tuple[set[TopicPartition], set[TopicPartition], list[Unseen]]]:
    """Yield of each group the partitions whose first unread record is older than this, by their offsets.

    And those where only the record itself can tell, and why others are not known. `listed` are the first
    records that are younger.
    """
    cut = {partition: row for f, _ in behind for partition, row, _ in f.with_status(*_CUT)}
    asked = cut.keys() & listed.keys()
    starts = list_offsets(cluster, dict.fromkeys(asked, EARLIEST))
    begins = {partition: at.offset for partition, at in starts.items() if isinstance(at, ListedOffset)}
    young = _young(listed, now_ms)
    for _, those in behind:
        old, unsure, unseen = set(), set(), list[Unseen]()
        for partition, first in [(p, at) for p, at in those.items() if at < young.get(p, 0)]:
            at = listed[partition]
            if isinstance(at, KgroupError):
                what = f"how long records of {partition} have been unread: {at.message}"
                unseen.append(Unseen(LAG, code_name(at), what))
                continue
            if partition in begins:
                first = max(first, begins[partition])
                if first == cut[partition].log_end_offset:
                    continue  # nothing is left there
            if at.offset < 0 or at.offset > first + 1:
                old.add(partition)
            elif at.offset > first or at.timestamp_ms > now_ms:
                # The one offset before the first young record may be a marker's; one to come says nothing.
                unsure.add(partition)
        yield old, unsure, unseen


def held_back(facts: Facts) -> Iterator[Found]:
    """Yield the transactions that hold readers back."""
    if facts.holding:
        rows = {partition: row for partition, row in facts.rows if partition in facts.holding}
        evidence = [
            f"{partition}: committed {row.committed_offset}, last stable offset "
            f"{row.last_stable_offset}, log end {row.log_end_offset}"
            for partition, row in islice(sorted(rows.items()), SHOWN)
        ]
        known = {transaction for those in facts.holding.values() for transaction in those}
        evidence += [
            transaction_text(transaction)
            for transaction in sorted(known, key=lambda transaction: transaction.transactional_id)[:SHOWN]
        ]
        if not known:
            evidence.append(
                "no coordinator lists its transaction: it hangs, or its owner may not be described"
            )
        yield (
            f"readers of committed records are held back in {some(rows)} by a transaction that does not end",
            END_IT,
            evidence,
        )


def deleted_soon(facts: Facts) -> Iterator[Found]:
    """Yield the unread records that the topic's retention is about to delete."""
    if not facts.going:
        return

    dated = {partition: going for partition, going in facts.going.items() if going.written_ms is not None}
    first = (
        min((going.written_ms or 0) + going.retention_ms - facts.now_ms for going in dated.values())
        if dated
        else None
    )
    when = "soon" if first is None else "from now on"
    if first is not None and first > 0:
        minutes = round(first / 60_000)
        when = f"in about {f'{minutes} min' if 0 < minutes < 120 else duration_text(first)}"
    yield (
        f"unread records of {some(facts.going)} are deleted {when}, by the topic's retention",
        f"read them before, or keep them for longer: {RETENTION} of the topic, by kafka-configs.sh",
        [
            f"{partition}: the oldest unread record is of {utc(going.written_ms or 0)}, {RETENTION} is "
            f"{going.retention_ms} ({duration_text(going.retention_ms)})"
            for partition, going in sorted(dated.items())[:SHOWN]
        ]
        + [
            f"{partition}: what waits could not be read; it may be markers and aborted records"
            for partition in sorted(facts.going.keys() - dated.keys())[:SHOWN]
        ],
    )
