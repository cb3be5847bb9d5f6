"""The cluster's metrics over HTTP on loopback: `/metrics` for Prometheus, `/metrics.json` for kgroup."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict

from prometheus_client.core import GaugeMetricFamily, UnknownMetricFamily

from kgroup.broker.metrics import MANAGER, WINDOW_MS, Activity, Metric, snapshot
from kgroup.runtime.cluster import Cluster
from kgroup.scrapes import LOOPBACK, Page, Sample, Scrapes

ANSWER_S = 10.0


class MetricsEndpoint:
    """Serves a cluster's metrics from a thread of its own; the numbers are read on the event loop.

    Made, started and stopped on the loop that serves the cluster's requests; `more` are called there, too.
    """

    def __init__(self, cluster: Cluster, *more: Callable[[], Iterable[Metric]]) -> None:
        self._cluster = cluster
        self._more = more
        self._loop = asyncio.get_running_loop()
        self._activity = Activity(cluster.clock.now_ms(), cluster.counters, time.thread_time())
        self._timer = self._loop.call_later(WINDOW_MS / 1000, self._mark)
        self._scrapes = Scrapes(self._samples, "/metrics.json", self._json)

    def start(self, port: int) -> str:
        """Listen on `port` of loopback (0: any free one); return host:port. KgroupError if it is in use."""
        return self._scrapes.start(LOOPBACK, port)

    async def stop(self) -> None:
        """Stop listening; end scrapes under way."""
        self._timer.cancel()
        await asyncio.to_thread(self._scrapes.stop)

    def now(self) -> list[Metric]:
        """Return the metrics as they are, for any thread except the loop's own."""
        return asyncio.run_coroutine_threadsafe(self._take(), self._loop).result(ANSWER_S)

    def _json(self) -> Page:
        body = json.dumps([asdict(metric) for metric in self.now()]).encode()
        return Page("200 OK", "application/json", body)

    def _samples(self) -> Iterator[Sample]:
        """Yield the metrics by the names that the JMX exporter gives to Kafka's.

        Totals are untyped, because a Prometheus counter would have to be called `..._total`.
        """
        for metric in self.now():
            kind = UnknownMetricFamily if metric.total else GaugeMetricFamily
            text = f"{metric.mbean} {metric.name}"
            yield Sample(prometheus_name(metric), kind, text, metric.tags, metric.value)

    async def _take(self) -> list[Metric]:
        metrics = snapshot(self._cluster, self._activity, time.thread_time())
        return [*metrics, *(metric for source in self._more for metric in source())]

    def _mark(self) -> None:
        self._activity.mark(self._cluster.clock.now_ms(), self._cluster.counters, time.thread_time())
        self._timer = self._loop.call_later(WINDOW_MS / 1000, self._mark)


def prometheus_name(metric: Metric) -> str:
    """Return `kafka_server_group_coordinator_metrics_group_count` for group-count, and so on."""
    name = f"{metric.mbean.replace('type=', '')}_{metric.name}"
    if metric.mbean == MANAGER:
        name = name.lower()
    return re.sub(r"[^a-zA-Z0-9]", "_", name)
