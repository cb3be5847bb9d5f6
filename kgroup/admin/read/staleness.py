"""When a group last wrote anything: only `__consumer_offsets` shows it, no request does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kgroup.admin.discovery import Answers, ClusterView
from kgroup.admin.models import ItemError
from kgroup.admin.read.broker_clock import SET_RIGHT, clock_of
from kgroup.admin.read.readable import CLOCK_UNSURE
from kgroup.admin.refusals import code_name
from kgroup.errors import KgroupError

if TYPE_CHECKING:
    from kgroup.history.sources.live import LiveLog


class Stale(NamedTuple):
    """Groups with how long they are silent (ms), why that is unknown of others, and a clock that is off."""

    ages: dict[str, int | None]
    unsure: tuple[ItemError, ...] = ()
    clock_off: str | None = None


def stale(cluster: ClusterView, group_ids: Iterable[str], limit_ms: int) -> Stale:
    """Return the groups silent for `limit_ms`, for how long, and those for which it is unknown.

    By the brokers' time: it is unknown where their newest record does not prove it and this machine's clock
    may be ahead, and where their records could not be read. Raise BrokerRefused for the topic as a whole: it
    requires READ.
    """
    written = last_written(cluster, group_ids)
    unsure = [
        _unsure(name, code_name(at), at.message, at.hint)
        for name, at in written.items()
        if isinstance(at, KgroupError)
    ]
    times = {name: at for name, at in written.items() if isinstance(at, int)}
    if not times:
        return Stale({}, tuple(unsure))
    clock = clock_of(cluster, cluster.now_ms())
    ages: dict[str, int | None] = {}
    for name, at in times.items():
        age_ms, here_ms = clock.age_ms(at), clock.here_ms - at
        # What is stamped later than now may come from one broker alone whose clock is ahead.
        least_ms = min(age_ms, here_ms) if clock.is_behind else age_ms
        if least_ms >= limit_ms:
            ages[name] = least_ms
        elif max(age_ms, here_ms) >= limit_ms:
            unsure.append(_unsure(name, CLOCK_UNSURE.code, clock.words or "", SET_RIGHT))
    return Stale(ages, tuple(unsure), clock.off)


def _unsure(name: str, code: str, why: str, hint: str | None) -> ItemError:
    return ItemError(name, code, f"{name}: how long it has been silent is not known: {why}", hint)


def last_written(cluster: ClusterView, group_ids: Iterable[str]) -> Answers[int | None]:
    """Return the time in ms of each group's newest record, a commit or a change; None without one.

    Read the partitions of `__consumer_offsets` that hold the groups: the failure to read one, or a part of
    it, is the answer for its groups. Raise BrokerRefused for the topic as a whole: it requires READ.
    """
    from kgroup.admin.read.history import check_whole, read_each
    from kgroup.history.sources.live import LiveTopic
    from kgroup.history.stats import scan

    def newest(log: LiveLog, names: list[str]) -> Mapping[str, int | None]:
        counted = scan([log])
        check_whole(log, counted.bad)
        tallies = counted.by_group()
        return {name: tallies[name].last_ms if name in tallies else None for name in names}

    names = list(dict.fromkeys(group_ids))
    return read_each(LiveTopic(cluster.transport, cluster.retry.timeout_s), names, newest) if names else {}
