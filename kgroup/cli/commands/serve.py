"""`kgroup serve`: the embedded cluster on TCP."""

import logging
import os
import secrets
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kgroup.broker.authentication.settings import is_of_listeners, listeners_apart
from kgroup.broker.ready_file import ReadyFile
from kgroup.broker.topics import MAX_PARTITIONS
from kgroup.cli.declaring import option
from kgroup.cli.env.config import LocalTarget
from kgroup.cli.env.invocation import Env, pair
from kgroup.cli.env.properties import parse_properties
from kgroup.cli.env.zookeeper import named
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.options import make
from kgroup.errors import ConfigError
from kgroup.protocol.releases import NEWEST, SERVED, Release
from kgroup.runtime.claim import Claim

if TYPE_CHECKING:
    from kgroup.broker.server import Control
    from kgroup.runtime.cluster import Cluster
    from kgroup.zookeeper.entry.serve import LegacyBrokers

PORTS, MOST_BROKERS = 65_535, 100
_PAIR = "as in server.properties"


@make(
    "serve",
    examples=(
        ("kgroup serve --local ./data --port 9092", "any Kafka client may connect to 127.0.0.1:9092"),
        ("kgroup serve --memory --port 0 --brokers 3", "three brokers on free ports, nothing kept"),
        (
            "kgroup serve --memory --port 0 --ready-file ready.json",
            "a program waits for the file, and reads it",
        ),
        (
            "kgroup serve --memory --port 0 --control 0 --ready-file ready.json",
            "a test of any language moves time, freezes members, sets faults",
        ),
        ("kgroup serve --metrics 9404", "with Kafka's metrics at 127.0.0.1:9404/metrics"),
        ("kgroup serve --memory --brokers 3 --legacy", "with the coordinator of the ZooKeeper era"),
        ("kgroup serve --set group.initial.rebalance.delay.ms=0", "with settings of server.properties"),
        ("kgroup serve --memory --set node.id=1", "as broker 1; a folder keeps its id"),
        ("kgroup serve --memory --kafka 2.8", "with the versions and features of an older broker"),
        ("kgroup serve --config server.properties", "with its listeners: TLS, SASL and users, as Kafka's"),
    ),
    has_json=False,
)
def command(
    env: Env,
    port: Annotated[
        int | None,
        option(
            "--port N", "First port on 127.0.0.1; 0 picks free ones.", min=0, max=PORTS, show_default="9092"
        ),
    ] = None,
    kafka: Annotated[
        str,
        option(
            "--kafka RELEASE",
            f"Serve versions and features of this Kafka, {SERVED[0]} to {NEWEST}; from 4.3 on, behave as it.",
            show_default=str(NEWEST),
        ),
    ] = str(NEWEST),
    brokers: Annotated[
        int, option("--brokers N", "Brokers, each on its own port.", min=1, max=MOST_BROKERS)
    ] = 1,
    partitions: Annotated[
        int | None,
        option(
            "--partitions N",
            "Partitions of __consumer_offsets; then fixed.",
            min=1,
            max=MAX_PARTITIONS,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None, option("--set KEY=VALUE", "A broker setting by Kafka's name; repeatable.")
    ] = None,
    config: Annotated[
        Path | None,
        option("--config FILE", "Broker settings from a server.properties; --set overrides them."),
    ] = None,
    metrics: Annotated[
        int | None,
        option("--metrics PORT", "Serve metrics for Prometheus; 0 picks a free port.", min=0, max=PORTS),
    ] = None,
    ready_file: Annotated[
        Path | None,
        option("--ready-file FILE", "Write the addresses as JSON once clients may connect."),
    ] = None,
    control: Annotated[
        int | None,
        option(
            "--control PORT",
            "Serve a test's verbs over HTTP on loopback; 0 picks a free port.",
            min=0,
            max=PORTS,
        ),
    ] = None,
    memory: Annotated[bool, option("--memory", "Keep everything in memory.")] = False,
    legacy: Annotated[
        bool, option("--legacy", "Also serve the ZooKeeper era's coordinator (for 0.9).")
    ] = False,
    legacy_port: Annotated[
        int | None, option("--legacy-port N", "Its first port; free ones by default.", min=0, max=PORTS)
    ] = None,
    tree_port: Annotated[
        int | None,
        option(
            "--tree-port N",
            "Port at which its in-process tree answers like ZooKeeper; a free one by default.",
            min=0,
            max=PORTS,
        ),
    ] = None,
    legacy_set: Annotated[
        list[str] | None, option("--legacy-set KEY=VALUE", "One of its settings; repeatable.")
    ] = None,
    zookeeper: Annotated[
        str | None,
        option("--zookeeper HOST:PORT,…[/chroot]", "Where it keeps its groups; in this process by default."),
    ] = None,
) -> ExitCode:
    """Serve the embedded cluster on TCP until Ctrl-C or SIGTERM.

    Listens on 127.0.0.1 only, unless the setting `listeners` says otherwise; beyond this machine only with
    SASL_SSL, or SSL and client certificates. Passwords belong in the file of --config, not in --set.
    Commands with --local on the same folder talk to it while it runs.
    """
    from kgroup.broker.server import serve
    from kgroup.runtime.clock import MovableClock
    from kgroup.runtime.cluster import Cluster

    if memory and env.flags.get("local"):
        raise ConfigError("--memory keeps nothing in --local's folder", "give one of them")
    # --memory ignores a remote cluster that was named for other commands.
    named = env.flags.keys() & {"bootstrap_server", "context"}
    target = env.target() if named or not memory else None
    if target is not None and not isinstance(target, LocalTarget):
        origin = env.settings().settings["bootstrap.servers"].origin
        raise ConfigError(
            f"serve runs the embedded cluster, and {origin} names a remote one",
            "--local DIR or --memory says where serve keeps its data",
        )
    if control is not None and not (memory and ready_file):
        missing = "--ready-file" if memory else "--memory"
        why = "the file has its address and token" if memory else "it moves the time of what is stored"
        raise ConfigError(f"--control needs {missing}: {why}", f"add {missing}")
    settings = dict(pair(text, f"--set {text!r}", _PAIR) for text in set_ or ())
    if config is not None:
        settings = {**_of_file(env, config), **settings}
    if "listeners" in settings and port is not None:
        raise ConfigError("--port and the setting listeners both say where to listen", "give one of them")
    given = {
        "--legacy-port": legacy_port,
        "--legacy-set": legacy_set,
        "--tree-port": tree_port,
        "--zookeeper": zookeeper,
    }
    for name, value in given.items():
        if value is not None and not legacy:
            raise ConfigError(f"{name} is for the coordinator of the ZooKeeper era", "give --legacy, too")
    if tree_port is not None and zookeeper is not None:
        raise ConfigError("--tree-port and --zookeeper name two trees", "give one of them")
    if env.verbose:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    listeners, config_of_brokers = listeners_apart(settings)
    ports = (legacy_port or 0, tree_port or 0)
    coordinators = _legacy(env, ports, legacy_set or [], zookeeper) if legacy else None
    ready = None if ready_file is None else ReadyFile(ready_file)
    claim = None if memory or target is None else Claim(target.directory, "kgroup serve")
    release = Release.of(kafka)
    cluster = Cluster(
        claim,
        brokers=brokers,
        config=config_of_brokers,
        offsets_partitions=partitions,
        kafka=release,
        clock=None if control is None else MovableClock(),
    )
    first = 9092 if port is None else port
    controlled = None if control is None else _controlled(control)
    serve(
        cluster,
        listeners,
        port=first,
        metrics_port=metrics,
        legacy=coordinators,
        ready=ready,
        control=controlled,
    )
    return ExitCode.OK


def _controlled(port: int) -> "Control":
    from kgroup.broker.control.dispatcher import ControlledDispatcher
    from kgroup.broker.control.port.endpoint import ControlPort
    from kgroup.broker.server import Control

    token = secrets.token_urlsafe(24)
    return Control(ControlledDispatcher, partial(ControlPort, token, port), token)


def _of_file(env: Env, path: Path) -> dict[str, str]:
    """Return the settings of a server.properties that apply here; name the others on stderr."""
    from kgroup.runtime.settings_in_force import is_setting

    try:
        properties = parse_properties(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"cannot read {path}: {reason}") from None
    idle = sorted(name for name in properties if not (is_setting(name) or is_of_listeners(name)))
    if idle:
        env.note(f"{path}: {', '.join(idle)} {'mean' if len(idle) > 1 else 'means'} nothing here")
    if any("password" in name or "jaas" in name or name.endswith(".key") for name in properties):
        others = stat.S_IMODE(path.stat().st_mode) & 0o077
        if os.name == "posix" and others:
            env.note(f"{path} holds secrets and others may read it: chmod 600 {path}")
    return {name: text for name, text in properties.items() if name not in idle}


def _legacy(
    env: Env, ports: tuple[int, int], pairs: list[str], zookeeper: str | None
) -> "Callable[[Cluster], LegacyBrokers]":
    from kgroup.zookeeper.entry.serve import LegacyBrokers, LegacyOptions, read_settings

    config = read_settings(dict(pair(text, f"--legacy-set {text!r}", _PAIR) for text in pairs))
    port, tree_port = ports
    if zookeeper is None:
        options = LegacyOptions(port, config=config, tree_port=tree_port)
        return lambda cluster: LegacyBrokers(cluster, options)

    ensemble, security, timeout_s = named(env, zookeeper)
    at_ensemble = LegacyOptions(port, ensemble, security, config, timeout_s)
    return lambda cluster: LegacyBrokers(cluster, at_ensemble)
