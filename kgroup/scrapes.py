"""Metrics over HTTP for Prometheus, and one page of another kind, from a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, UnknownMetricFamily
from prometheus_client.registry import Collector

from kgroup.errors import KgroupError

if TYPE_CHECKING:
    from wsgiref.simple_server import WSGIServer
    from wsgiref.types import StartResponse, WSGIEnvironment

LOOPBACK = "127.0.0.1"
Family: TypeAlias = GaugeMetricFamily | CounterMetricFamily | UnknownMetricFamily


class Sample(NamedTuple):
    """One number; those of a name are of one kind, and have the same text and labels. None is no series."""

    name: str
    kind: type[Family]
    text: str
    labels: Mapping[str, str]
    value: float | None


class Page(NamedTuple):
    """An answer to a request for a path other than that of the metrics."""

    status: str
    content_type: str
    body: bytes


class Scrapes:
    """Serves samples, and at one path what `page` returns. Both are called from threads of its own."""

    def __init__(self, samples: Callable[[], Iterable[Sample]], path: str, page: Callable[[], Page]) -> None:
        self._samples, self._path, self._page = samples, path, page
        self._server: WSGIServer | None = None

    def start(self, host: str, port: int) -> str:
        """Listen (0: any free port); return host:port. KgroupError if that is not possible."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Families(self._samples))
        try:
            server, _ = start_http_server(port, host, registry)
        except (OSError, OverflowError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is above 65535"
            hint = "take another with --metrics, or 0 for any free one"
            raise KgroupError(f"metrics port {port} on {host} cannot be used: {why}", hint) from None
        self._server = server
        prometheus = server.get_app()
        assert prometheus is not None

        def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            if environ["PATH_INFO"] != self._path:
                return prometheus(environ, start_response)
            page = self._page()
            start_response(page.status, [("Content-Type", page.content_type)])
            return [page.body]

        server.set_app(app)
        return f"{host}:{server.server_port}"

    def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()


class _Families(Collector):
    def __init__(self, samples: Callable[[], Iterable[Sample]]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Family]:
        families: dict[str, Family] = {}
        for sample in self._samples():
            if sample.value is None:
                continue
            if sample.name not in families:
                families[sample.name] = sample.kind(sample.name, sample.text, labels=[*sample.labels])
            families[sample.name].add_metric([*sample.labels.values()], float(sample.value))
        yield from families.values()
