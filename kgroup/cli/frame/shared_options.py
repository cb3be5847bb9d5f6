"""The options that every command has, declared once."""

import functools
import inspect
from collections.abc import Collection
from typing import Annotated

from kgroup.cli.declaring import option
from kgroup.cli.env.invocation import COLORS, FORMATS

_WHERE, _HOW, _OUTPUT = "Cluster", "Connection", "Output"


def _shared(
    bootstrap_server: Annotated[
        str | None,
        option("-b --bootstrap-server HOST:PORT,…", "Brokers of a remote cluster.", rich_help_panel=_WHERE),
    ] = None,
    local: Annotated[
        str | None,
        option(
            "--local [DIR]",
            "The embedded cluster in DIR (with a slash, or --local=DIR); the data folder by default.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    context: Annotated[
        str | None,
        option(
            "-C --context NAME",
            "A cluster from the config file.",
            rich_help_panel=_WHERE,
        ),
    ] = None,
    command_config: Annotated[
        str | None,
        option(
            "--command-config FILE", "A Java properties file, as Kafka's own tools use.", rich_help_panel=_HOW
        ),
    ] = None,
    property_: Annotated[
        list[str] | None,
        option(
            "-X KEY=VALUE",
            "A client setting under its Java or librdkafka name; repeatable.",
            rich_help_panel=_HOW,
        ),
    ] = None,
    timeout: Annotated[
        str | None,
        option(
            "--timeout DURATION",
            "End the command after this long: 30s, 5m.  [default: 30s]",
            rich_help_panel=_HOW,
        ),
    ] = None,
    output: Annotated[
        str | None,
        option(
            "-o --output FORMAT",
            "|".join(FORMATS) + ".",
            rich_help_panel=_OUTPUT,
            autocompletion=lambda: FORMATS,
        ),
    ] = None,
    columns: Annotated[
        str | None, option("--columns A,B,…", "Only these columns, in this order.", rich_help_panel=_OUTPUT)
    ] = None,
    no_headers: Annotated[
        bool, option("--no-headers", "Leave out the header line of tables.", rich_help_panel=_OUTPUT)
    ] = False,
    color: Annotated[
        str | None, option("--color WHEN", "|".join(COLORS) + ".  [default: auto]", rich_help_panel=_OUTPUT)
    ] = None,
    quiet: Annotated[
        bool, option("-q --quiet", "Print only data and errors.", rich_help_panel=_OUTPUT)
    ] = False,
    verbose: Annotated[
        bool, option("-v --verbose", "Print more detail to stderr.", rich_help_panel=_OUTPUT)
    ] = False,
    debug: Annotated[
        bool, option("--debug", "Show the traceback of a failure.", rich_help_panel=_OUTPUT)
    ] = False,
) -> None:
    """Carrier of the shared declarations; never called."""


SHARED = inspect.signature(_shared, eval_str=True)


def shared_names() -> tuple[str, ...]:
    """Return the parameters that every command has, as `Env.of` takes them."""
    return tuple(SHARED.parameters)


@functools.cache
def _takes_value() -> dict[str, bool]:
    """Return every shared option by its spellings, and whether a value follows it."""
    by_name = {}
    for parameter in SHARED.parameters.values():
        (declared,) = parameter.annotation.__metadata__
        by_name.update(dict.fromkeys(declared.names, parameter.annotation.__origin__ is not bool))
    return by_name


def shared_spellings() -> Collection[str]:
    """Return the shared options as they are typed."""
    return _takes_value().keys()


def behind_the_command(args: list[str]) -> list[str]:
    """Return the words with shared options before a command's name moved right after it.

    Where anything else stands before it (--help, --version, a typing error), all stays unchanged.
    """
    takes_value, end = _takes_value(), 0
    while end < len(args) and args[end].startswith("-"):
        word = args[end]
        name = word.partition("=")[0] if word.startswith("--") else word[:2]
        if name not in takes_value and word not in ("-h", "--help"):
            return args
        attached = word != name
        end += 1 if attached or not takes_value.get(name) else 2
    return [*args[end : end + 1], *args[:end], *args[end + 1 :]] if end < len(args) else args
