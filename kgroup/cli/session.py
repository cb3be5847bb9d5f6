"""The cluster a command works on: its transport opened, and closed when the command ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kgroup.cli.config import LocalTarget
from kgroup.cli.env import Env

if TYPE_CHECKING:
    from kgroup.admin.admin import Admin


@contextmanager
def open_admin(env: Env) -> Iterator["Admin"]:
    """An Admin of the cluster that `env` names; a KgroupError when it cannot be used."""
    target = env.target()
    assert not isinstance(target, LocalTarget)
    from kgroup.admin.admin import Admin
    from kgroup.client.transport import SocketTransport

    with SocketTransport(target.connection) as transport:
        yield Admin(transport, timeout_s=target.connection.request_timeout_s)


def identity(admin: "Admin", env: Env) -> dict[str, Any]:
    """The envelope's `cluster`: its id, and the addresses it was reached by."""
    return {"id": admin.cluster.metadata(()).cluster_id, "bootstrap": env.settings().get("bootstrap.servers")}
