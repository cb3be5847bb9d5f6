"""`kgroup serve`: the embedded cluster on TCP, for any Kafka client."""

from typing import Annotated

import typer

from kgroup.cli.config import LocalTarget
from kgroup.cli.env import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.options import command as make
from kgroup.errors import ConfigError


@make(
    "serve",
    has_json=False,
    examples=(
        ("kgroup serve --local ./data --port 9092", "one broker, its groups and topics kept in ./data"),
        ("kgroup serve --brokers 3", "three brokers on free ports, in the default data folder"),
        ("kgroup serve --set group.initial.rebalance.delay.ms=0", "with a setting under Kafka's name"),
    ),
)
def command(
    env: Env,
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, metavar="N", help="Port of the first broker; 0 takes free ones."
        ),
    ] = 0,
    brokers: Annotated[int, typer.Option("--brokers", min=1, max=100, metavar="N", help="How many.")] = 1,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            min=1,
            max=10_000,
            metavar="N",
            help="Partitions of __consumer_offsets in a new folder; default 50.",
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A broker setting under Kafka's name; repeatable."),
    ] = None,
) -> ExitCode:
    """Serve the embedded cluster on 127.0.0.1 until Ctrl-C or SIGTERM.

    Prints the addresses once clients may connect. There is no encryption and no authentication.
    """
    target = env.target()
    if not isinstance(target, LocalTarget):
        raise ConfigError("serve runs the embedded cluster, not a remote one", "name its folder: --local DIR")
    import logging

    from kgroup.broker.server import serve

    logging.basicConfig(level=logging.INFO if env.verbose else logging.WARNING, format="%(message)s")
    serve(
        target.directory, port=port, brokers=brokers, partitions=partitions, settings=_settings(setting or [])
    )
    return ExitCode.OK


def _settings(words: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        key, separator, value = word.partition("=")
        if not separator or not key.strip():
            raise ConfigError(f"--set {word!r} is not KEY=VALUE", "for example --set group.max.size=100")
        found[key.strip()] = value.strip()
    return found
