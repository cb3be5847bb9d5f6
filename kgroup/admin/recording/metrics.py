"""The recorder's metrics and health over HTTP: from its last look, so that no scrape waits for Kafka."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from kgroup.admin.diagnose.doctor import VERDICTS
from kgroup.admin.discovery import machine_ms
from kgroup.admin.recording.recorder import State
from kgroup.admin.recording.then import INTERVALS
from kgroup.scrapes import Page, Sample, Scrapes

Number: TypeAlias = tuple[str, tuple[str, ...], float | None]
"""A name in FAMILIES, the values of its labels, and the number."""
_GROUP, _PARTITION = ("group",), ("group", "topic", "partition")
FAMILIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "kgroup_group_verdict": ("1 for the doctor's verdict of the group", ("group", "verdict")),
    "kgroup_group_lag_records": ("Unread records; absent where unknown", _GROUP),
    "kgroup_group_lag_seconds": ("Age of the oldest unread record; absent where unknown", _GROUP),
    "kgroup_group_unknown_partitions": ("Partitions whose lag is unknown", _GROUP),
    "kgroup_group_members": ("Members; absent where unknown", _GROUP),
    "kgroup_group_partitions": ("Partitions by status", ("group", "status")),
    "kgroup_group_rebalances_total": (
        "Rebalances since the recorder began; absent where unknown",
        _GROUP,
    ),
    "kgroup_partition_lag_records": ("Unread records of a partition", _PARTITION),
    "kgroup_partition_lag_seconds": ("Age of the oldest unread record of a partition", _PARTITION),
    "kgroup_partition_committed_offset": ("Committed offset", _PARTITION),
    "kgroup_partition_end_offset": ("End of the log", _PARTITION),
    "kgroup_incidents_open": ("Open incidents by severity", ("severity",)),
    "kgroup_record_look_failed": ("1 if the last look saw nothing", ()),
    "kgroup_record_last_look_timestamp_seconds": ("Time of the last look", ()),
    "kgroup_record_behind_seconds": ("Time since the log was last recorded to its end", ()),
    "kgroup_record_log_unread": ("1 if __consumer_offsets is not recorded", ()),
    "kgroup_record_disk_failed": ("1 if nothing can be stored", ()),
    "kgroup_record_gaps_total": ("Gaps noticed since the recorder began", ()),
    "kgroup_record_batches_total": ("Batches recorded since the recorder began", ()),
    "kgroup_metrics_cut": ("Series that --metrics-limit leaves out", ()),
}


class Metrics(Scrapes):
    """Serves `/metrics` and `/healthz` from a thread of its own. `most` bounds the series of groups."""

    def __init__(self, state: Callable[[], State], most: int, clock: Callable[[], int] = machine_ms) -> None:
        self._state, self._most, self._clock = state, most, clock
        super().__init__(self._families, "/healthz", self._health)

    def unhealthy(self) -> str | None:
        """Return why the recorder does not do its work; None if it does."""
        state = self._state()
        at_ms = state.began_ms if state.looked is None else state.looked.at_ms
        if self._clock() - at_ms > INTERVALS * state.interval_ms:
            return f"the last look was {(self._clock() - at_ms) / 1000:.0f} s ago"
        return state.disk

    def _health(self) -> Page:
        why = self.unhealthy()
        status = "503 Service Unavailable" if why else "200 OK"
        return Page(status, "text/plain", f"{why or 'ok'}\n".encode())

    def _families(self) -> Iterator[Sample]:
        for name, values, number in self.samples():
            text, labels = FAMILIES[name]
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield Sample(name, kind, text, dict(zip(labels, values, strict=True)), number)

    def samples(self) -> Iterator[Number]:
        """Yield every number that is known now; what an old or failed look showed is not."""
        state = self._state()
        fresh = state.looked is not None and state.looked.failed is None and self.unhealthy() is None
        of_groups = list(_of_groups(state)) if fresh else []
        yield from of_groups[: self._most]
        yield "kgroup_metrics_cut", (), max(0, len(of_groups) - self._most)
        open_ = Counter(incident.severity for incident in state.incidents)
        yield from (("kgroup_incidents_open", (severity,), open_[severity]) for severity in ("error", "warn"))
        if (looked := state.looked) is not None:
            yield "kgroup_record_look_failed", (), looked.failed is not None
            yield "kgroup_record_last_look_timestamp_seconds", (), looked.at_ms / 1000
        behind = None if state.read_ms is None else max(0, self._clock() - state.read_ms) / 1000
        yield "kgroup_record_behind_seconds", (), behind
        yield "kgroup_record_log_unread", (), state.unread is not None
        yield "kgroup_record_disk_failed", (), state.disk is not None
        yield "kgroup_record_gaps_total", (), state.gaps
        yield "kgroup_record_batches_total", (), state.batches


def _of_groups(state: State) -> Iterator[Number]:
    """Yield what is known of the groups: first of each group, sick ones before others, then of partitions."""
    assert state.looked is not None
    checkups, lags = state.looked.checkups, state.looked.lags
    names = sorted(checkups, key=lambda name: (checkups[name].healthy is not False, name))
    for name in names:
        checkup, lag = checkups[name], lags.get(name)
        for verdict in VERDICTS:
            yield "kgroup_group_verdict", (name, verdict), checkup.verdict == verdict
        yield "kgroup_group_members", (name,), checkup.group.member_count
        yield "kgroup_group_rebalances_total", (name,), state.rebalances.get(name)
        statuses = Counter[str]()
        for alike in checkup.statuses:
            statuses[alike.status.value] += len(alike.partitions)
        yield from (("kgroup_group_partitions", (name, status), n) for status, n in statuses.items())
        if lag is not None:
            yield "kgroup_group_lag_records", (name,), lag.total_lag
            yield "kgroup_group_unknown_partitions", (name,), lag.unknown_partitions
            yield "kgroup_group_lag_seconds", (name,), _seconds(lag.max_time_lag_ms)
    for row, name in chain.from_iterable(((row, n) for row in lags[n].offsets) for n in names if n in lags):
        labels = (name, row.topic, str(row.partition))
        yield "kgroup_partition_lag_records", labels, row.lag
        yield "kgroup_partition_lag_seconds", labels, _seconds(row.time_lag_ms)
        yield "kgroup_partition_committed_offset", labels, row.committed_offset
        yield "kgroup_partition_end_offset", labels, row.log_end_offset


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000
