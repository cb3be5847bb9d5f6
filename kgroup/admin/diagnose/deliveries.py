"""Whether members of share groups finish records, from several polls: no broker reports deliveries."""

from collections.abc import Iterator, Mapping
from itertools import islice

from kgroup.admin.diagnose.facts import INTERVAL_S, LAG, SECOND_LOOK, Facts, Grown, Still, missed, seen_once
from kgroup.admin.diagnose.wording import SHOWN
from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import SHARE
from kgroup.admin.read.findings import some
from kgroup.admin.read.offsets import LATEST, ListedOffset, list_offsets
from kgroup.admin.read.share_offsets import ShareOffsets, share_offsets
from kgroup.domain import TopicPartition, count_of
from kgroup.errors import KgroupError

Ends = Mapping[TopicPartition, ListedOffset | KgroupError]


def undelivered(facts: Facts) -> bool:
    """Return whether a share group has members and records that wait for them."""
    group = facts.group
    waits = group.type == SHARE and bool(group.known_members) and bool(group.lag_at_least)
    return waits and LAG not in facts.left_out


def look_at_deliveries(cluster: ClusterView, facts: list[Facts], patience_s: float) -> list[Facts]:
    """Poll share groups until each has finished a record without a larger lag, for `patience_s` at most."""
    names = [f.group.group_id for f in facts if undelivered(f)]
    if not names:
        return facts
    if patience_s <= 0:
        unknown = seen_once("records wait: seen once, whether its members finish any is unknown")
        return [f.also(unknown) if undelivered(f) else f for f in facts]
    partitions = {partition for f in facts if undelivered(f) for partition, _ in f.rows}
    # Ends are read before the first lags and after the later ones: no more records can have arrived.
    before = list_offsets(cluster, dict.fromkeys(partitions, LATEST))
    first = share_offsets(cluster, names)
    looks: dict[str, dict[str, object]] = {}
    start, waiting = cluster.retry.clock(), names
    for _ in islice(cluster.retry.looks(INTERVAL_S, patience_s), 1, None):
        now = share_offsets(cluster, waiting)
        after = list_offsets(cluster, dict.fromkeys(partitions, LATEST))
        seconds = cluster.retry.clock() - start
        for name in waiting:
            still = _still(first[name], now[name], before, after, seconds)
            grown = _grown(first[name], now[name], seconds) if still is None else None
            looks[name] = {"still": still, "grown": grown}
        waiting = [name for name in waiting if any(looks[name].values())]
        if not waiting:
            break
    return [_with(f, first.get(f.group.group_id), looks.get(f.group.group_id, {})) for f in facts]


def _with(facts: Facts, first: ShareOffsets | KgroupError | None, looks: Mapping[str, object]) -> Facts:
    failed = [missed(SECOND_LOOK, first)] if isinstance(first, KgroupError) else []
    return facts.also(*failed, **looks)


def _still(
    first: ShareOffsets | KgroupError,
    now: ShareOffsets | KgroupError,
    before: Ends,
    after: Ends,
    seconds: float,
) -> Still | None:
    """Return the partitions without progress between two polls; None if a record was, or may be, finished."""
    if isinstance(first, KgroupError) or isinstance(now, KgroupError) or first.starts != now.starts:
        return None
    waiting = {}
    for partition, lag in now.lags.items():
        begin, end, had = before.get(partition), after.get(partition), first.lags.get(partition)
        if not isinstance(begin, ListedOffset) or not isinstance(end, ListedOffset) or had is None:
            return None
        if lag - had < end.offset - begin.offset:
            return None
        if lag:
            waiting[partition] = had, lag
    return Still(seconds, waiting) if waiting else None


def _grown(
    first: ShareOffsets | KgroupError, now: ShareOffsets | KgroupError, seconds: float
) -> Grown | None:
    """Return how the lag grew between two polls; None if it did not, or is unknown for a partition."""
    if isinstance(first, KgroupError) or isinstance(now, KgroupError) or first.lags.keys() != now.lags.keys():
        return None
    had, has = sum(first.lags.values()), sum(now.lags.values())
    return Grown(seconds, had, has) if has > had else None


def falling_behind(facts: Facts) -> Iterator[tuple[str, str, list[str]]]:
    """Yield that the members finish fewer records than arrive."""
    grown = facts.grown
    if grown is not None:
        members = count_of(len(facts.group.known_members), "member")
        span = f"in {grown.seconds:.0f} s the lag grew from {grown.first} to {grown.last}"
        yield (
            f"{span}, although {members} finished records",
            "start more members, as several may read one partition; a short peak looks the same",
            [],
        )


def standing_still(facts: Facts) -> Iterator[tuple[str, str, list[str]]]:
    """Yield that nothing was finished, what to do about it, and its evidence."""
    still = facts.still
    if still is None:
        return
    came = sum(lag - had for had, lag in still.lags.values())
    more = f" while {came} came" if came else ""
    yield (
        f"in {still.seconds:.0f} s the members finished no record of {some(still.lags)}{more}",
        "look at what they process; records that are not acknowledged come back when their lock times out",
        [
            f"{partition}: lag {had} at first, {lag} at last, the start offset stayed where it is"
            for partition, (had, lag) in sorted(still.lags.items())[:SHOWN]
        ],
    )
