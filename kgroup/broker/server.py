"""The brokers on TCP: one event loop, one listener per broker, one timer for every deadline."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kgroup.broker.authentication.described import Open, described
from kgroup.broker.authentication.listeners import secured_listeners
from kgroup.broker.authentication.settings import LOCAL_HOST as HOST
from kgroup.broker.authentication.settings import ListenerSettings, is_loopback
from kgroup.broker.connection import Connection
from kgroup.broker.dispatch import AnyApi, Dispatcher
from kgroup.broker.handlers import ALL
from kgroup.broker.listener import Listener
from kgroup.broker.newcomers import Newcomers
from kgroup.broker.prepared import import_all
from kgroup.broker.ready_file import ReadyFile
from kgroup.broker.rights import guarded
from kgroup.broker.routes import Routes
from kgroup.broker.turns import Turns
from kgroup.errors import KgroupError
from kgroup.extras import require_extra
from kgroup.portable import MOST_CONNECTIONS, raise_file_limit
from kgroup.runtime.cleaning import compact_one
from kgroup.runtime.cluster import Cluster

if TYPE_CHECKING:
    from kgroup.broker.authentication.listeners import SecuredListener
    from kgroup.broker.metrics import Metric

log = logging.getLogger(__name__)

PLAIN = "PLAINTEXT"


class EraCoordinators(Protocol):
    """The coordinators of the ZooKeeper era of a cluster's brokers (`kgroup.zookeeper.entry.serve`)."""

    @property
    def tree_at(self) -> str | None: ...

    async def start(self) -> list[str]: ...

    async def stop(self) -> None: ...

    def metrics(self) -> Iterable[Metric]: ...


class Controls(Protocol):
    """A control port (`kgroup.broker.control.port`)."""

    url: str

    async def stop(self) -> None: ...


class Control(NamedTuple):
    """How a cluster is put under control: its entry, and the port for clients that have the token."""

    dispatcher: Callable[[Cluster, Iterable[AnyApi]], Dispatcher]
    port: Callable[[Server], Controls]
    token: str


class Server:
    """All brokers of a cluster, each on its own ports; `metrics_at` is announced with them.

    Without `listeners` they listen on loopback, open to all clients there. `make` makes the dispatcher of the
    cluster. ConfigError for a listener whose security cannot be set up.
    """

    def __init__(
        self,
        cluster: Cluster,
        metrics_at: str = "",
        listeners: Sequence[ListenerSettings] = (),
        make: Callable[[Cluster, Iterable[AnyApi]], Dispatcher] = Dispatcher,
    ) -> None:
        self.cluster = cluster
        self.metrics_at = metrics_at
        self.dispatcher = make(cluster, guarded(cluster, ALL))
        self.routes = Routes(self.dispatcher)
        self.connections: set[Connection] = set()
        self.complaints = cluster.complaints
        self.turns = Turns()
        self.newcomers = Newcomers(cluster.settings.setup_timeout_ms / 1000, cluster.complaints)
        self._listeners: list[Listener] = []
        self._of_nodes: dict[int, list[Listener]] = {}
        self._settings = tuple(listeners)
        self._secured = _secured(self._settings, cluster)
        self._keeping: list[asyncio.Task[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._cleaner_timer: asyncio.TimerHandle | None = None
        self._reading_on = False  # what is due waits until all that has come is read

    async def start(self, port: int = 0) -> list[int]:
        """Listen where the listeners say, else on `port` of loopback and the next ones (0: any free).

        Return the ports of the first listener, by node id. KgroupError if one is in use.
        """
        import_all()
        self._loop = asyncio.get_running_loop()
        listeners = self._settings or (ListenerSettings(PLAIN, PLAIN, HOST, port),)
        opened = [self._open(listener) for listener in listeners]
        self.dispatcher.of_listeners = partial(described, opened)
        bound = {listener.settings.name: listener.advertised for listener in opened}
        self.dispatcher.addresses = bound
        plain = (
            listener for listener in listeners if listener.protocol == PLAIN and is_loopback(listener.host)
        )
        first = next(plain, listeners[0])
        scheme = "" if first.protocol == PLAIN else f"{first.protocol}://"
        self.cluster.announce(bound[first.name], self.metrics_at, scheme)
        self._keeping = [asyncio.create_task(d.keys.keep_fresh()) for d in self._secured.values() if d.keys]
        self.dispatcher.later = self.cluster.later = self.turns.add
        self.dispatcher.wakeups.on_earlier = self._arm
        self.dispatcher.wakeups.next_ms()
        self._arm()
        self._look_for_idle()
        self._keep_logs_short()
        return [number for _, number in bound[listeners[0].name].values()]

    def addresses(self) -> list[str]:
        """Return the listeners' addresses by broker, "HOST:PORT", and the protocol if secured."""
        protocols = {
            listener.name: "" if listener.protocol == PLAIN else f"{listener.protocol}://"
            for listener in self._settings
        }
        return [
            f"{protocols.get(name, '')}{host}:{port}"
            for name, of_brokers in self.dispatcher.addresses.items()
            for host, port in of_brokers.values()
        ]

    async def stop(self) -> None:
        """Answer parked calls, close every connection and listener. The cluster stays open."""
        self.dispatcher.wakeups.on_earlier = None
        for timer in (self._timer, self._idle_timer, self._cleaner_timer):
            if timer is not None:
                timer.cancel()
        for keeping in self._keeping:
            keeping.cancel()
        for listener in self._listeners:
            listener.close()
        for listener in self._listeners:
            await listener.ended()
        self.dispatcher.tickets.abandon()
        for connection in tuple(self.connections):
            connection.close()
        await asyncio.sleep(0)  # lets transports send what they hold before they are cut off
        for connection in tuple(self.connections):
            connection.abort()
        self.turns.clear()
        self.dispatcher.later = self.cluster.later = None
        self._listeners.clear()
        self._of_nodes.clear()

    def close_broker(self, node: int) -> None:
        """Refuse connections to one broker, and end existing ones without sending the rest."""
        for listener in self._of_nodes[node]:
            listener.refuse()
        for connection in tuple(self.connections):
            if connection.node == node:
                connection.abort()

    def open_broker(self, node: int) -> None:
        """Accept connections to that broker again, at its addresses."""
        for listener in self._of_nodes[node]:
            listener.accept_again()

    def opened(self, connection: Connection) -> None:
        """Take in a connection; one too many (max.connections) is closed at once."""
        self.connections.add(connection)
        if len(self.connections) > min(self.cluster.settings.connections_max, MOST_CONNECTIONS):
            connection.abort()

    def closed(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.dispatcher.disconnected(connection)

    def close_idle(self) -> int:
        """Close connections that sent nothing since the last call and wait for nothing; return how many."""
        idle = [c for c in self.connections if not c.active and not c.parked]
        for connection in self.connections:
            connection.active = False
        for connection in idle:
            connection.abort()
        return len(idle)

    def _open(self, settings: ListenerSettings) -> Open:
        """Listen for every broker."""
        bound: dict[int, tuple[str, int]] = {}
        addresses: dict[int, tuple[str, int]] = {}
        for index, node in enumerate(self.cluster.nodes):
            listener = self._listen(settings, node, settings.port + index if settings.port else 0)
            self._listeners.append(listener)
            self._of_nodes.setdefault(node, []).append(listener)
            host, port = bound[node] = listener.address
            if settings.advertised is not None:
                host, first = settings.advertised
                port = first + index if first else port
            addresses[node] = host, port
        return Open(settings, bound, addresses)

    def _listen(self, settings: ListenerSettings, node: int, port: int) -> Listener:
        secured = self._secured.get(settings.name)
        try:
            if secured is None:
                name = settings.name if self._settings else ""
                return Listener(settings.host, port, lambda: Connection(self, node, name), self.complaints)
            from kgroup.broker.authentication.connection import SecuredConnection

            return Listener(
                settings.host,
                port,
                lambda: SecuredConnection(self, node, secured, self.newcomers),
                self.complaints,
                None if secured.tls is None else (secured.tls, self.newcomers),
            )
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL):
                raise
            hint = "take another with --port, or 0 for any free one"
            if self._settings:
                hint = "listeners names another, or 0 for any free one; each broker takes the next port"
            where = f"port {port} on {settings.host or 'all addresses'}"
            raise KgroupError(f"{where} cannot be used: {error.strerror}", hint) from None
        except OverflowError:
            raise KgroupError(f"port {port} is above 65535", "take a lower one with --port") from None

    def _arm(self) -> None:
        """Set the one timer to the earliest deadline."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._reading_on:
            return
        wakeups = self.dispatcher.wakeups
        delay_ms = wakeups.due_ms - self.cluster.clock.now_ms()
        if self._loop is not None and delay_ms < 1 << 40:
            self._timer = self._loop.call_later(max(delay_ms, 0) / 1000, self._wake)

    def _wake(self) -> None:
        """Do what is due now, but after the requests that came by now.

        A loop or machine that was held up finds deadlines and unread heartbeats at once: one that came in
        time must not lose because we were late. In Kafka, too, a timer that fires only puts its work into the
        queue of its partition, behind all requests read so far, and a heartbeat among those cancels it
        (CoordinatorTimerImpl); there, other threads read on meanwhile. One round, however long it takes: a
        client that sends without end cannot keep the members of others alive.
        """
        self._timer = None
        self._reading_on = True
        self.turns.after_unread(partial(self._keep_deadlines, self.cluster.clock.now_ms()))

    def _keep_deadlines(self, due_ms: int) -> None:
        self._reading_on = False
        wakeups = self.dispatcher.wakeups
        if wakeups.on_earlier is None:
            return  # stopped meanwhile
        try:
            wakeups.run(due_ms, self.cluster.clock.now_ms())
        finally:
            if self._timer is None:
                self._arm()

    def _look_for_idle(self) -> None:
        assert self._loop is not None
        self.close_idle()
        seconds = self.cluster.settings.connections_max_idle_ms / 1000
        self._idle_timer = self._loop.call_later(seconds, self._look_for_idle)

    def _keep_logs_short(self) -> None:
        """Compact at most one log of state, then return to the loop's requests; errors do not end it."""
        assert self._loop is not None
        seconds = self.cluster.settings.cleaner_backoff_ms / 1000
        self._cleaner_timer = self._loop.call_later(seconds, self._keep_logs_short)
        compact_one(self.cluster)


def serve(
    cluster: Cluster,
    listeners: Sequence[ListenerSettings] = (),
    *,
    port: int = 0,
    metrics_port: int | None = None,
    legacy: Callable[[Cluster], EraCoordinators] | None = None,
    say: Callable[[str], None] | None = None,
    ready: ReadyFile | None = None,
    control: Control | None = None,
) -> None:
    """Serve a cluster until SIGTERM or SIGINT, then end it cleanly; it is closed in any case.

    `listeners` say where to listen; without any it is 127.0.0.1, from `port` on. `legacy` makes the
    coordinators of the ZooKeeper era that run with it. `say` gets the lines that say where the metrics and
    those coordinators are and, last, that clients may connect; `ready` exists meanwhile, with the address
    and token of `control`. KgroupError for a port in use. The soft limit on open files is raised to the
    hard one.
    """
    raise_file_limit()
    try:
        way_in = Dispatcher if control is None else control.dispatcher
        server = partial(Server, cluster, listeners=listeners, make=way_in)
        # Windows' default kind of loop has no readers, which listeners need.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(_serve(cluster, server, port, metrics_port, legacy, say or _print, ready, control))
    finally:
        cluster.close()


async def _serve(
    cluster: Cluster,
    make: Callable[[str], Server],
    port: int,
    metrics_port: int | None,
    legacy: Callable[[Cluster], EraCoordinators] | None,
    say: Callable[[str], None],
    ready: ReadyFile | None,
    control: Control | None,
) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, ended.set)
        except NotImplementedError:  # on Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(ended.set))
    async with AsyncExitStack() as stack:
        metrics_at = ""
        coordinators = None if legacy is None else legacy(cluster)
        if metrics_port is not None:
            require_extra("serve", "kgroup serve --metrics", "prometheus_client")
            from kgroup.broker.metrics_endpoint import MetricsEndpoint

            endpoint = MetricsEndpoint(cluster, *([] if coordinators is None else [coordinators.metrics]))
            stack.push_async_callback(endpoint.stop)
            metrics_at = endpoint.start(metrics_port)
            say(f"kgroup: metrics on http://{metrics_at}/metrics")
        server = make(metrics_at)
        stack.push_async_callback(server.stop)
        await server.start(port)
        if coordinators is not None:
            stack.push_async_callback(coordinators.stop)
            say("kgroup: legacy coordinators on " + ",".join(await coordinators.start()))
            if coordinators.tree_at is not None:
                say(f"kgroup: legacy groups are seen with --zookeeper {coordinators.tree_at}")
                say("kgroup: they end with this process, offsets included; serve --zookeeper keeps them")
        more = {}
        if control is not None:
            controls = control.port(server)
            stack.push_async_callback(controls.stop)
            more = {"control": controls.url, "token": control.token}
            say(f"kgroup: control on {controls.url}")
        if ready is not None:
            stack.callback(ready.remove)
            ready.write(server.addresses(), more)
        say("kgroup: serving on " + ",".join(server.addresses()))
        await ended.wait()


def _secured(listeners: Sequence[ListenerSettings], cluster: Cluster) -> dict[str, SecuredListener]:
    """Return the secured listeners, made ready, by name."""
    locked = [listener for listener in listeners if listener.protocol != PLAIN]
    if not locked:
        return {}

    return {secured.name: secured for secured in secured_listeners(locked, cluster.credentials)}


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
