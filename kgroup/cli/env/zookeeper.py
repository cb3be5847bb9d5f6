"""`--zookeeper`: the groups of a ZooKeeper tree instead of a cluster's, for commands that support it."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from kgroup.cli.declaring import option
from kgroup.cli.env.config import connection_to
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import LEAST_S
from kgroup.cli.env.setting_names import Resolved
from kgroup.domain import Document, value
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.zookeeper.entry.tree import Broker, Ensemble, Groups, OldCluster, Security, Session

ZooKeeper = Annotated[
    str | None,
    option(
        "--zookeeper HOST:PORT,…[/chroot]",
        "The groups that Kafka 0.8 to 1.1 keeps in ZooKeeper.",
        rich_help_panel="Cluster",
    ),
]


@value
class Opened:
    """An open tree, and its address."""

    groups: "Groups"
    session: "Session"
    ensemble: "Ensemble"

    def identity(self) -> Document:
        """Return the envelope's `cluster`: reached by its ZooKeeper, not by an address of a broker."""
        return {"id": self.groups.cluster_id(), "bootstrap": None, "zookeeper": str(self.ensemble)}


@contextmanager
def open_groups(env: Env, where: str, *, longer_s: float = 0.0) -> Iterator[Opened]:
    """Open the groups of the tree at `where`; raise KgroupError if it is unusable.

    Each request ends within --timeout (and `longer_s`), answered or not.
    """
    from kgroup.zookeeper.entry.tree import Groups, Session, describe_groups, parse_ensemble

    for flag, name in (("bootstrap_server", "-b"), ("local", "--local")):
        if flag in env.flags:
            raise ConfigError(f"--zookeeper and {name} both name a cluster", "give one of them")
    ensemble = parse_ensemble(where)
    settings = replace(env, flags={**env.flags, "zookeeper": where}).settings()
    timeout_s = settings.timeout_s() + longer_s
    until = time.monotonic() + timeout_s
    with ExitStack() as closing:
        session = closing.enter_context(Session(ensemble, _security(settings), timeout_s=timeout_s))
        groups = Groups(
            session.ask,
            lambda alive: _brokers(settings, alive, until, closing),
            lambda address, names: describe_groups(address, names, _left_s(until)),
        )
        yield Opened(groups, session, ensemble)


def named(env: Env, where: str) -> "tuple[Ensemble, Security, float]":
    """Return the ensemble at `where`, how to authenticate there, and how long to try."""
    from kgroup.zookeeper.entry.tree import parse_ensemble

    ensemble, settings = parse_ensemble(where), env.settings()
    return ensemble, _security(settings), settings.timeout_s()


def refuse(where: str | None, **given: tuple[object, str]) -> None:
    """Raise ConfigError for a given option that does not apply to groups in ZooKeeper, with the reason."""
    for name, (typed, why) in given.items():
        if where is not None and typed:
            raise ConfigError(f"--{name.replace('_', '-')} cannot be combined with --zookeeper", why)


def _security(settings: "Resolved") -> "Security":
    from kgroup.cli.env.secrets import secret
    from kgroup.zookeeper.entry.tree import Security

    def get(name: str) -> str | None:
        return secret(settings, f"zookeeper.{name}")

    user, password = get("sasl.username"), get("sasl.password")
    if (user is None) != (password is None):
        raise ConfigError(
            "ZooKeeper's SASL needs a user name and a password",
            "set zookeeper.sasl.username and zookeeper.sasl.password",
        )
    security = Security(
        username=user,
        password=password,
        tls=(get("ssl.client.enable") or "").lower() == "true",
        ssl_ca=get("ssl.ca.location"),
        ssl_certificate=get("ssl.certificate.location"),
        ssl_key=get("ssl.key.location"),
        ssl_key_password=get("ssl.key.password"),
        check_hostname=get("ssl.endpoint.identification.algorithm") not in ("", "none"),
    )
    if security.tls:
        # Raise ConfigError for files unusable for TLS: kazoo would only retry them endlessly.
        from kgroup.client.properties.given import Given
        from kgroup.client.properties.tls import tls_of
        from kgroup.client.tls.context import client_context

        named = {
            "ssl.ca.location": security.ssl_ca,
            "ssl.certificate.location": security.ssl_certificate,
            "ssl.key.location": security.ssl_key,
            "ssl.key.password": security.ssl_key_password,
        }
        client_context(tls_of(Given({name: value for name, value in named.items() if value is not None})))
    return security


def _brokers(
    settings: "Resolved", alive: "Sequence[Broker]", until: float, closing: ExitStack
) -> "OldCluster":
    """Yield the brokers that the tree names, reached as the settings say, until the command's time is up."""
    from kgroup.client.retry import Limit, Retry
    from kgroup.client.transport import SocketTransport
    from kgroup.zookeeper.entry.tree import OWN_LISTENER, OldCluster

    protocol = (settings.get("security.protocol") or "PLAINTEXT").upper()
    addresses = tuple(
        broker.listeners.get(protocol) or next(iter(broker.listeners.values())) for broker in alive
    )
    # kgroup's brokers serve what Kafka of today does, and none of the versions 0.8 needs without asking.
    of_today = all(OWN_LISTENER in broker.listeners for broker in alive)
    left_s = _left_s(until)
    limit = Limit(left_s)
    transport = closing.enter_context(
        SocketTransport(replace(connection_to(addresses, settings), asks_versions=of_today), limit=limit)
    )
    return OldCluster(transport, Retry(timeout_s=left_s, limit=limit))


def _left_s(until: float) -> float:
    return max(until - time.monotonic(), LEAST_S)
