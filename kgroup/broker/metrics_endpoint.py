"""The cluster's metrics over HTTP on loopback: `/metrics` for Prometheus, `/metrics.json` for kgroup."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import GaugeMetricFamily, UnknownMetricFamily
from prometheus_client.registry import Collector

from kgroup.broker.metrics import MANAGER, WINDOW_MS, Activity, Metric, snapshot
from kgroup.errors import KgroupError
from kgroup.runtime.cluster import Cluster

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

HOST = "127.0.0.1"
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
        self._server: WSGIServer | None = None
        self._thread: threading.Thread | None = None

    def start(self, port: int) -> str:
        """Listen on `port` of loopback (0: any free one); return host:port. KgroupError if it is in use."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(self))
        prometheus: WSGIApplication = make_wsgi_app(registry)

        def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            if environ["PATH_INFO"] != "/metrics.json":
                return prometheus(environ, start_response)
            start_response("200 OK", [("Content-Type", "application/json")])
            return [json.dumps([asdict(metric) for metric in self.now()]).encode()]

        try:
            self._server = make_server(HOST, port, app, _Threading, _Quiet)
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is above 65535"
            hint = "take another with --metrics, or 0 for any free one"
            raise KgroupError(f"metrics port {port} on {HOST} cannot be used: {why}", hint) from None
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()
        return f"{HOST}:{self._server.server_port}"

    async def stop(self) -> None:
        """Stop listening; end scrapes under way."""
        self._timer.cancel()
        if self._server is not None and self._thread is not None:
            await asyncio.to_thread(self._server.shutdown)
            self._thread.join()
            self._server.server_close()

    def now(self) -> list[Metric]:
        """Return the metrics as they are, for any thread except the loop's own."""
        return asyncio.run_coroutine_threadsafe(self._take(), self._loop).result(ANSWER_S)

    async def _take(self) -> list[Metric]:
        metrics = snapshot(self._cluster, self._activity, time.thread_time())
        return [*metrics, *(metric for source in self._more for metric in source())]

    def _mark(self) -> None:
        self._activity.mark(self._cluster.clock.now_ms(), self._cluster.counters, time.thread_time())
        self._timer = self._loop.call_later(WINDOW_MS / 1000, self._mark)


class _Families(Collector):
    """The metrics in Prometheus' form, by the names that the JMX exporter gives to Kafka's.

    Totals are untyped, because a Prometheus counter would have to be called `..._total`.
    """

    def __init__(self, endpoint: MetricsEndpoint) -> None:
        self._endpoint = endpoint

    def collect(self) -> Iterator[GaugeMetricFamily | UnknownMetricFamily]:
        families: dict[str, GaugeMetricFamily | UnknownMetricFamily] = {}
        for metric in self._endpoint.now():
            if metric.value is None:
                continue
            name = prometheus_name(metric)
            if name not in families:
                kind = UnknownMetricFamily if metric.total else GaugeMetricFamily
                families[name] = kind(name, f"{metric.mbean} {metric.name}", labels=list(metric.tags))
            families[name].add_metric(list(metric.tags.values()), metric.value)
        yield from families.values()


def prometheus_name(metric: Metric) -> str:
    """Return `kafka_server_group_coordinator_metrics_group_count` for group-count, and so on."""
    name = f"{metric.mbean.replace('type=', '')}_{metric.name}"
    if metric.mbean == MANAGER:
        name = name.lower()
    return re.sub(r"[^a-zA-Z0-9]", "_", name)


class _Threading(ThreadingMixIn, WSGIServer):
    """A scrape that hangs delays no other one, nor the end of the process."""

    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Do not log scrapes."""
