"""The cluster a command works on: its transport opened, and closed when the command ends."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgroup.cli.config import LocalTarget
from kgroup.cli.env import Env

if TYPE_CHECKING:
    from kgroup.admin.admin import Admin
    from kgroup.admin.transport import Transport
    from kgroup.client.settings import ConnectionSettings


@contextmanager
def open_admin(env: Env) -> Iterator["Admin"]:
    """An Admin of the cluster that `env` names; a KgroupError when it cannot be used."""
    from kgroup.admin.admin import Admin

    with closing(_transport(env)) as transport:
        yield Admin(transport, timeout_s=env.settings().timeout_s())


def identity(admin: "Admin", env: Env) -> dict[str, Any]:
    """The envelope's `cluster`: its id, and the addresses it was reached by, null when in process."""
    target = env.target()
    if isinstance(target, LocalTarget):
        bootstrap = _served_at(target.directory)
    else:
        bootstrap = env.settings().get("bootstrap.servers")
    return {"id": admin.cluster.metadata(()).cluster_id, "bootstrap": bootstrap}


def connection_of(env: Env) -> "ConnectionSettings | Path":
    """How to reach the cluster over the network; the folder of an embedded one that nobody serves."""
    target = env.target()
    if not isinstance(target, LocalTarget):
        return target.connection
    served = _served_at(target.directory)
    if served is None:
        return target.directory
    from kgroup.client.settings import ConnectionSettings, parse_bootstrap

    return ConnectionSettings(parse_bootstrap(served), request_timeout_s=env.settings().timeout_s())


def _transport(env: Env) -> "Transport":
    connection = connection_of(env)
    if isinstance(connection, Path):
        return _embedded(connection)
    from kgroup.client.transport import SocketTransport

    return SocketTransport(connection)


def _served_at(directory: Path) -> str | None:
    """Where the process that holds the data folder listens, if one does."""
    from kgroup.log.directory import owner_of

    owner = owner_of(directory)
    return owner.bootstrap or None if owner else None


def _embedded(directory: Path) -> "Transport":
    from kgroup.broker.embedded import EmbeddedTransport
    from kgroup.runtime.cluster import Cluster

    return EmbeddedTransport(Cluster(directory))
