"""The cluster of a command: its transport is opened, and closed when the command ends."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from kgroup.cli.click import get_current_context
from kgroup.cli.env.config import LocalTarget, default_local_directory
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.known_settings import misspelt
from kgroup.cli.env.setting_names import DEFAULT, KAFKAS_OWN, TIMEOUT
from kgroup.domain import Document
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView
    from kgroup.client.settings import ConnectionSettings
    from kgroup.protocol.transport import Transport


LEAST_S = 1.0
"""The last poll of a command begins when its time is up, and still gets this long."""


def stop_after_s(text: str | None) -> float:
    """Return the value of --stop-after in seconds; without it a command that runs on has no end."""
    return parse_duration(text) if text else float("inf")


def limit_of_many(env: Env) -> float | None:
    """Return `open_admin`'s limit for a command about many groups or long logs: none unless one was set."""
    return float("inf") if env.settings().settings[TIMEOUT].origin == DEFAULT else None


def begin_waiting(env: Env) -> float:
    """Begin the time of --timeout again, for a wait that the user asked for; return its seconds."""
    seconds = env.settings().timeout_s()
    env.limit.set(seconds + LEAST_S)
    env.limit.begin_again()
    return seconds


@contextmanager
def open_admin(
    env: Env, *, stop_after_s: float | None = None, makes: bool = False
) -> Iterator["ClusterView"]:
    """Open a session with the cluster that `env` names; raise KgroupError if it is unusable.

    An embedded cluster must exist, unless the command `makes` one. The command ends within --timeout, which
    all requests share. One that runs on ends after `stop_after_s` and `LEAST_S`, and refuses a --timeout that
    would not end it.
    """
    from kgroup.admin.discovery import ClusterView
    from kgroup.client.retry import Retry

    timeout_s = env.settings().timeout_s()
    if stop_after_s is not None and "timeout" in env.flags and stop_after_s != timeout_s:
        raise ConfigError(
            f"--timeout does not end kgroup {env.command}",
            f"--stop-after {env.flags['timeout']} does; -X request.timeout.ms=MS limits each answer",
        )
    env.limit.set(timeout_s if stop_after_s is None else stop_after_s + LEAST_S)
    with closing(_transport(env, makes)) as transport:
        yield ClusterView(transport, retry=Retry(timeout_s, limit=env.limit))


def identity(admin: "ClusterView", env: Env, *, ask: bool = True) -> Document:
    """Return the envelope's `cluster`: its id, and the addresses it was reached by, null when in process.

    Without `ask` the id is null until an answer has reported it.
    """
    target = env.target()
    if isinstance(target, LocalTarget):
        bootstrap = _served_at(target.directory)
    else:
        bootstrap = env.settings().get("bootstrap.servers")
    return {"id": admin.cluster_id(ask=ask), "bootstrap": bootstrap}


def connection_of(env: Env, *, makes: bool = False) -> "ConnectionSettings | Path":
    """Return how to reach the cluster over the network, or the folder of an embedded one not served.

    Raise ConfigError for a folder without a cluster, unless the command `makes` one.
    """
    _note_settings(env)
    target = env.target()
    if not isinstance(target, LocalTarget):
        if target.connection.security.protocol != "PLAINTEXT":
            from kgroup.cli.env.exposure import warnings

            for line in warnings(env.settings()):
                env.note(line)
        return target.connection
    if not env.settings().names_cluster:
        # No cluster was named: say which one answers; raise ConfigError where no data exists to answer from.
        how = "name one with -b HOST:PORT, KGROUP_BOOTSTRAP_SERVER or a context"
        if not target.directory.is_dir():
            raise ConfigError(
                "no cluster is named, and there is no embedded one yet",
                f"{how}; kgroup serve makes an embedded one",
            )
        env.note(
            f"no cluster is named: the embedded one in {target.directory} answers, no Kafka is asked ({how})"
        )
    if not makes:
        _refuse_without_cluster(target.directory)
    served = _served_at(target.directory)
    if served is None:
        return target.directory
    if "://" in served:
        raise ConfigError(
            f"the embedded cluster in {target.directory} is served behind a lock, at {served}",
            "reach it as its clients do: -b HOST:PORT --command-config FILE; or give it a PLAINTEXT listener"
            " on loopback, too",
        )
    from kgroup.client.settings import ConnectionSettings, parse_bootstrap

    return ConnectionSettings(parse_bootstrap(served), request_timeout_s=env.settings().timeout_s())


def _note_settings(env: Env) -> None:
    """Report which cluster is used where that is asked for or not obvious, and settings that are misspelt."""
    settings = env.settings()
    for name, meant in misspelt(settings.settings):
        origin = settings.settings[name].origin
        env.note(f"warning: {origin}: no setting is called {name}; did you mean {meant}?")
    named = settings.cluster()
    if env.verbose or (named is not None and named.origin == KAFKAS_OWN):
        env.note(settings.cluster_line())


def _transport(env: Env, makes: bool) -> "Transport":
    connection = connection_of(env, makes=makes)
    if isinstance(connection, Path):
        from kgroup.broker.embedded import EmbeddedTransport
        from kgroup.log.files import ACLS
        from kgroup.runtime.cluster import Cluster
        from kgroup.runtime.settings import STANDARD_AUTHORIZER

        # access rules can be read and changed; the folder's owner is bound by none
        settings = {"authorizer.class.name": STANDARD_AUTHORIZER} if (connection / ACLS).exists() else None
        return EmbeddedTransport(Cluster(connection, config=settings))
    from kgroup.client.transport import SocketTransport

    return SocketTransport(connection, limit=env.limit)


def _refuse_without_cluster(directory: Path) -> None:
    """Raise ConfigError where there is no embedded cluster: a read must not create one by mistake."""
    from kgroup.log.directory import holds_cluster

    try:
        if holds_cluster(directory):
            return
        why = f"there is no embedded cluster in {directory}"
    except FileNotFoundError:
        why = f"there is no folder {directory}, so no embedded cluster"
    except OSError as error:
        why = f"{directory} is no folder of an embedded cluster: {error.strerror}"
    how = "kgroup serve and kgroup cluster create-topic make one"
    near = _meant(directory)
    raise ConfigError(why, f"did you mean --local {near}? {how}" if near else how)


def _meant(directory: Path) -> str | None:
    """Return the likely intended folder, as it is typed, or None."""
    from kgroup.admin.shell import word
    from kgroup.log.directory import holds_cluster

    if directory == default_local_directory():
        # The first argument of the running command is perhaps a folder typed without its slash.
        context = get_current_context(silent=True)
        for parameter in context.command.params if context else ():
            typed = context.params.get(parameter.name or "") if context else None
            if typed and parameter.param_type_name == "argument":
                return word(f"./{typed[0] if isinstance(typed, list | tuple) else typed}")
        return None
    names = []
    with suppress(OSError):
        names = [path.name for path in directory.parent.iterdir() if path.is_dir() and holds_cluster(path)]
    near = get_close_matches(directory.name, names, n=1)
    return word(f"{directory.parent}/{near[0]}") if near else None


def _served_at(directory: Path) -> str | None:
    """Return where the process that holds the data folder listens, if one does."""
    from kgroup.log.directory import owner_of

    owner = owner_of(directory)
    return owner.bootstrap or None if owner else None
