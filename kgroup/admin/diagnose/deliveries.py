"""Whether members of share groups finish records, from several polls where their log is not read."""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from kgroup.admin.diagnose.facts import INTERVAL_S, SECOND_LOOK, Facts, missed, seen_once
from kgroup.admin.diagnose.reading import undecided, with_statuses
from kgroup.admin.diagnose.wording import Found
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import SHARE
from kgroup.admin.read.findings import SHOWN, some
from kgroup.admin.read.offsets import LATEST, ListedOffset, list_offsets
from kgroup.admin.read.share_offsets import ShareOffsets, share_offsets
from kgroup.admin.statuses import HISTORY, LAG, READING, PartitionStatus, Unseen, Weight, unknown
from kgroup.domain import SHARE_STATE_TOPIC, TopicPartition
from kgroup.errors import KgroupError

Ends = Mapping[TopicPartition, ListedOffset | KgroupError]


def waits(facts: Facts) -> bool:
    """Return whether a share group has members and records that wait for them."""
    group = facts.group
    waits = group.type == SHARE and bool(group.known_members) and bool(group.lag_at_least)
    return waits and LAG not in facts.left_out


def is_recorded(facts: Facts) -> bool:
    """Return whether the log shows when a share group has had members, and finished records."""
    return facts.history is not None and facts.delivered is not None


def undelivered(facts: Facts) -> bool:
    """Return whether only several polls show whether its members finish what waits."""
    return waits(facts) and not is_recorded(facts)


def look_at_deliveries(cluster: ClusterView, facts: list[Facts], patience_s: float) -> list[Facts]:
    """Poll share groups until a record was finished of each partition, for `patience_s` at most."""
    waiting = {f.group.group_id: {p for p, _ in undecided(f)} for f in facts if undelivered(f)}
    waiting = {name: those for name, those in waiting.items() if those}
    if not waiting:
        return facts
    if patience_s <= 0:
        once = seen_once("records wait: seen once, whether its members finish any is unknown")
        return [f.also(once) if f.group.group_id in waiting else f for f in facts]
    partitions = set[TopicPartition]().union(*waiting.values())
    # Ends are read before the first lags and after the later ones: no more records can have arrived.
    before = list_offsets(cluster, dict.fromkeys(partitions, LATEST))
    first = share_offsets(cluster, waiting)
    left = dict(waiting)
    start, seconds = cluster.retry.clock(), 0.0
    for _ in islice(cluster.retry.looks(INTERVAL_S, patience_s), 1, None):
        now = share_offsets(cluster, left)
        after = list_offsets(cluster, dict.fromkeys(partitions, LATEST))
        seconds = cluster.retry.clock() - start
        left = {
            name: still
            for name, those in left.items()
            if (still := {p for p in those if not _finished(p, first[name], now[name], before, after)})
        }
        if not left:
            break
    return [
        _with(f, waiting[f.group.group_id], left.get(f.group.group_id, ()), first[f.group.group_id], seconds)
        if f.group.group_id in waiting
        else f
        for f in facts
    ]


def _finished(
    partition: TopicPartition,
    first: ShareOffsets | KgroupError,
    now: ShareOffsets | KgroupError,
    before: Ends,
    after: Ends,
) -> bool:
    """Return whether a record was surely finished between two polls."""
    if isinstance(first, KgroupError) or isinstance(now, KgroupError):
        return False
    begin, end = before.get(partition), after.get(partition)
    had, has = first.lags.get(partition), now.lags.get(partition)
    if had is None or has is None:  # brokers before 4.2; the start offset also moves late, by what comes back
        return partition in first.starts and first.starts[partition] != now.starts.get(partition)
    if not isinstance(begin, ListedOffset) or not isinstance(end, ListedOffset):
        return False
    return has - had < end.offset - begin.offset


def _with(
    facts: Facts,
    waiting: set[TopicPartition],
    left: Collection[TopicPartition],
    first: ShareOffsets | KgroupError,
    seconds: float,
) -> Facts:
    """Return the facts by what was finished of what waits; of what is `left` nothing was seen finished."""
    failed = [missed(SECOND_LOOK, first)] if isinstance(first, KgroupError) else []
    why = next((unseen.message for unseen in facts.unseen if unseen.look == HISTORY), "it was left out")
    what = (
        f"no record of it was seen finished in {seconds:.0f} s, and {SHARE_STATE_TOPIC} was not read: {why}"
    )
    still = unknown(Unseen(SECOND_LOOK, "NOT_SEEN", what))
    statuses = {partition: still if partition in left else READING for partition in waiting}
    return with_statuses(facts, statuses).also(*failed)


def standing_still(facts: Facts, weight: Weight) -> Iterator[Found]:
    """Yield that nothing is finished of what waits, what to do about it, and its evidence."""
    stalled = [
        (p, status)
        for p, _, status in facts.with_status(PartitionStatus.STALLED)
        if status.weight == weight and facts.group.type == SHARE
    ]
    if stalled:
        yield (
            f"{some(partition for partition, _ in stalled)}: records wait, and the members finish none",
            "look at what they process: what is not acknowledged comes back when its lock times out",
            [f"{partition}: {status.why}" for partition, status in stalled[:SHOWN]],
        )
