"""When a group last wrote anything: only `__consumer_offsets` shows it, no request does."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kgroup.admin.discovery import ClusterView
from kgroup.admin.models import ItemError
from kgroup.admin.read.broker_clock import SET_RIGHT, clock_of
from kgroup.admin.read.readable import CLOCK_UNSURE
from kgroup.domain import offsets_partition_of


class Stale(NamedTuple):
    """Groups with how long they are silent (ms), why that is unknown of others, and a clock that is off."""

    ages: dict[str, int | None]
    unsure: tuple[ItemError, ...] = ()
    clock_off: str | None = None


def stale(cluster: ClusterView, group_ids: Iterable[str], limit_ms: int) -> Stale:
    """Return the groups silent for `limit_ms`, for how long, and those for which it is unknown.

    By the brokers' time: it is unknown where their newest record does not prove it and this machine's clock
    may be ahead. Raise BrokerRefused when the records cannot be read: that requires READ on the topic.
    """
    written = {name: at for name, at in last_written(cluster, group_ids).items() if at is not None}
    if not written:
        return Stale({})
    clock = clock_of(cluster, cluster.now_ms())
    ages: dict[str, int | None] = {}
    unsure: list[ItemError] = []
    for name, at in written.items():
        age_ms = clock.age_ms(at)
        if age_ms >= limit_ms:
            ages[name] = age_ms
        elif clock.here_ms - at >= limit_ms:
            message = f"{name}: how long it has been silent is not known: {clock.words}"
            unsure.append(ItemError(name, CLOCK_UNSURE.code, message, SET_RIGHT))
    return Stale(ages, tuple(unsure), clock.off)


def last_written(cluster: ClusterView, group_ids: Iterable[str]) -> Mapping[str, int | None]:
    """Return the time in ms of each group's newest record, a commit or a change; None without one.

    Read the partitions of `__consumer_offsets` that hold the groups. Raise BrokerRefused when they cannot be
    read: that requires READ on the topic.
    """
    from kgroup.history.sources.live import LiveLog, LiveTopic
    from kgroup.history.stats import scan

    names = list(dict.fromkeys(group_ids))
    if not names:
        return {}
    topic = LiveTopic(cluster.transport, cluster.retry.timeout_s)
    holding = {offsets_partition_of(group, len(topic.partitions)) for group in names}
    tallies = scan(LiveLog(topic, partition) for partition in sorted(holding)).by_group()
    return {group: tallies[group].last_ms if group in tallies else None for group in names}
