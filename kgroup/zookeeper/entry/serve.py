"""The coordinators of a served cluster: each broker takes part in the election, each on its own listener."""

import asyncio
import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kgroup.broker.metrics import Metric
from kgroup.errors import BrokerRefused, ErrorCode, KgroupError
from kgroup.runtime.cluster import Cluster
from kgroup.zookeeper.coordinator.config import LegacyConfig
from kgroup.zookeeper.coordinator.config import read_settings as read_settings
from kgroup.zookeeper.coordinator.election import State
from kgroup.zookeeper.coordinator.registries import Group
from kgroup.zookeeper.hosts.host import LegacyHost
from kgroup.zookeeper.hosts.links import Link, OnEvent, SessionLink, TreeLink
from kgroup.zookeeper.hosts.registrar import Registrar
from kgroup.zookeeper.hosts.tree_listener import TreeListener
from kgroup.zookeeper.store.names import Ensemble
from kgroup.zookeeper.store.operations import Create, Exists, Failure
from kgroup.zookeeper.store.session import Security, Session
from kgroup.zookeeper.store.tree import Tree

HOST = "127.0.0.1"
REACH_S = 15.0


@dataclass(frozen=True, slots=True)
class LegacyOptions:
    """The first port (0: any free ones), and the ensemble; without one the tree is in this process.

    The tree then answers as ZooKeeper does on `tree_port` (0: any free one).
    """

    port: int = 0
    ensemble: Ensemble | None = None
    security: Security = field(default_factory=Security)
    config: LegacyConfig = field(default_factory=LegacyConfig)
    reach_s: float = REACH_S
    tree_port: int = 0


class LegacyBrokers:
    """A coordinator's host for each broker of a cluster; `tree` is the one in this process, if used."""

    def __init__(self, cluster: Cluster, options: LegacyOptions) -> None:
        self._cluster = cluster
        self._options = options
        self.tree = Tree() if options.ensemble is None else None
        self.hosts: list[LegacyHost] = []
        self._registrar: Registrar | None = None
        self._tree_listener: TreeListener | None = None

    async def start(self) -> list[str]:
        """Listen, and start the election; return each broker's host:port.

        KgroupError for a port in use, Unreachable for an ensemble that does not answer.
        """
        if self._options.ensemble is not None:
            await asyncio.to_thread(_prepare, self._options)
        listeners = {}
        for node, address in self._cluster.endpoints.items():
            port = self._options.port
            host = LegacyHost(
                node, self._options.config, self._cluster.clock, self._cluster.complaints, self._link
            )
            self.hosts.append(host)
            own = port + node if port else 0
            with _naming(own, "--legacy-port"):
                listeners[node] = address, host.listen(HOST, own)
        if self.tree is not None:
            port = self._options.tree_port
            with _naming(port, "--tree-port"):
                self._tree_listener = TreeListener(
                    self.tree, self._cluster.clock.now_ms, HOST, port, self._cluster.complaints
                )
        self._registrar = Registrar(self._cluster, listeners, self._link)
        self._registrar.start()
        for host in self.hosts:
            host.start()
        return [f"{host}:{port}" for _, (host, port) in listeners.values()]

    async def stop(self) -> None:
        """Shut every broker down in order, after its last writes."""
        for host in self.hosts:
            host.shut_down()
        for host in self.hosts:
            await host.stop()
        if self._registrar is not None:
            self._registrar.close()
        if self._tree_listener is not None:
            self._tree_listener.close()

    @property
    def tree_at(self) -> str | None:
        """Where the tree in this process answers as ZooKeeper does; None before `start`, and without one."""
        listener = self._tree_listener
        return None if listener is None else "{}:{}".format(*listener.address)

    def metrics(self) -> Iterator[Metric]:
        """Return the coordinators' metrics now."""
        return metrics(self.hosts)

    def _link(self, on_event: OnEvent) -> Link:
        session_ms = self._options.config.zk_session_ms
        if self.tree is not None:
            return TreeLink(self.tree, session_ms, self._cluster.clock.now_ms, on_event)

        assert self._options.ensemble is not None
        return SessionLink(self._options.ensemble, self._options.security, session_ms, on_event)


@contextmanager
def _naming(port: int, option: str) -> Iterator[None]:
    """Raise KgroupError for a port that cannot be used, naming the option it came from."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        hint = f"take another with {option}, or omit it for any free one"
        raise KgroupError(f"port {port} on {HOST} cannot be used: {error.strerror}", hint) from None
    except OverflowError:
        raise KgroupError(f"port {port} is above 65535", f"take a lower one with {option}") from None


def _prepare(options: LegacyOptions) -> None:
    """Create the chroot, as brokers of the era did; Unreachable or BrokerRefused if that fails."""
    assert options.ensemble is not None
    whole = Ensemble(options.ensemble.servers)
    parts = options.ensemble.chroot.split("/")[1:]
    with Session(whole, options.security, timeout_s=options.reach_s) as session:
        for end in range(1, len(parts) + 1):
            path = "/" + "/".join(parts[:end])
            (there,) = session.ask(Exists(path))
            if there is Failure.NO_NODE:
                (made,) = session.ask_all(Create(path, b""))
                if isinstance(made, Failure) and made is not Failure.NODE_EXISTS:
                    what = f"{path} cannot be made in ZooKeeper: {made.value}"
                    raise BrokerRefused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, what)


OWN = "kgroup:type=legacy-coordinator"


def metrics(hosts: Iterable[LegacyHost]) -> Iterator[Metric]:
    """Yield each broker's state; of the elected one also its groups and their members."""
    for host in hosts:
        machine = host.machine
        active = machine.state is State.ACTIVE
        broker = {"broker": str(host.broker_id)}
        yield Metric(OWN, "active", int(active), broker)
        # The coordinator as this broker knows it; unknown while none is elected.
        yield Metric(OWN, "coordinator-id", machine.elector.coordinator_id, broker)
        if not active or machine.term is None:
            continue
        yield Metric(OWN, "coordinator-epoch", machine.term.epoch, broker)
        yield Metric(OWN, "group-count", len(machine.term.groups))
        for group in machine.term.groups.values():
            yield from _of_group(group)


def _of_group(group: Group) -> Iterator[Metric]:
    tags = {"group": group.group_id}
    yield Metric(OWN, "member-count", len(group.members), {**tags, "stage": group.stage.value})
    yield Metric(OWN, "rebalancing", int(group.run is not None or group.rebalance_initiated), tags)
    yield Metric(OWN, "rebalance-failed", int(group.rebalance_failed), tags)
    for member in group.members.values():
        of_member = {**tags, "consumer": member.consumer_id}
        yield Metric(OWN, "session-timeout-ms", member.session_ms, of_member)
        yield Metric(OWN, "failed-pings", member.failed, of_member)
        yield Metric(OWN, "partitions-held", len(member.holds), of_member)
