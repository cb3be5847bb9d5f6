"""The cluster a command works on: its transport opened, and closed when the command ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kgroup.cli.config import LocalTarget
from kgroup.cli.env import Env

if TYPE_CHECKING:
    from kgroup.admin.discovery import Cluster


@contextmanager
def open_cluster(env: Env) -> Iterator["Cluster"]:
    """The cluster that `env` names; Unreachable, BrokerRefused or ConfigError when it cannot be used."""
    target = env.target()
    assert not isinstance(target, LocalTarget)
    from kgroup.admin.discovery import Cluster
    from kgroup.client.transport import SocketTransport

    with SocketTransport(target.connection) as transport:
        yield Cluster(transport)


def identity(cluster: "Cluster", env: Env) -> dict[str, Any]:
    """The envelope's `cluster`: its id, and the addresses it was reached by."""
    return {"id": cluster.metadata(()).cluster_id, "bootstrap": env.settings().get("bootstrap.servers")}
