"""The decorator that makes a function a command, with its own options and those that all have."""

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from typer.core import TyperGroup

from kgroup.cli.click import offer, read_numbers
from kgroup.cli.declaring import Parameter
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.lazy import CONTEXT_SETTINGS, KgroupCommand, OptionsInFront
from kgroup.cli.frame.running import run_command
from kgroup.cli.frame.shared_options import SHARED
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError
from kgroup.numbers import INT64_MAX, whole_number


def make(
    path: str, *, examples: tuple[tuple[str, str], ...], has_json: bool = True
) -> Callable[[Callable[..., ExitCode | None]], KgroupCommand]:
    """Turn `fn(env, …own options…) -> ExitCode | None` into a command with every shared option.

    `path` is the full name ("context use"); the docstring's first line is the help line.
    """

    def decorate(fn: Callable[..., ExitCode | None]) -> KgroupCommand:
        own = list(inspect.signature(fn, eval_str=True).parameters.values())[1:]

        declared = [*own, *SHARED.parameters.values()]
        durations = dict(_durations(declared))
        changes = any(p.name == "execute" for p in own) or path.endswith(" execute")
        parameters = {p.name: Parameter(p) for p in declared}

        def run(**typed: object) -> int:
            values = {name: parameters[name].read(value) for name, value in typed.items()}
            checked = functools.partial(
                _with_units, fn, {option: values[name] for name, option in durations.items()}
            )
            shared = {name: values.pop(name) for name in SHARED.parameters}
            ways = (f"{values[name]} (--{name})" for name in ("zookeeper", "rest") if values.get(name))
            reached = next(ways, None) if path != "serve" else None
            return run_command(
                lambda: Env.of(path, shared, os.environ, changes=changes, reached=reached), checked, values
            )

        result = KgroupCommand(
            path.split()[-1],
            callback=run,
            params=[parameter.parsed for parameter in parameters.values()],
            help=inspect.getdoc(fn),
            context_settings=CONTEXT_SETTINGS,
            rich_markup_mode=None,
        )
        result.path, result.examples, result.has_json = path, examples, has_json
        for parameter in result.params:
            read_numbers(parameter, _whole)
        if "_KGROUP_COMPLETE" in os.environ:
            _offer_by_metavar(result)
        return result

    return decorate


def _offer_by_metavar(command: KgroupCommand) -> None:
    """Give parameters without a completion one by their metavar."""
    from kgroup.cli.frame.completions import complete, offer_for

    for parameter in command.params:
        offered = offer_for(command.path, parameter)
        if offered is not None:
            offer(parameter, complete(offered))


def _with_units(
    fn: Callable[..., ExitCode | None], typed: Mapping[str, object], env: Env, **values: object
) -> ExitCode | None:
    """Call the command once every duration in `typed`, by option, is one; raise ConfigError otherwise."""
    for option, text in typed.items():
        if isinstance(text, str):
            parse_duration(text, option)
    if env.verbose and env.reached:
        env.note(env.cluster_line())
    return fn(env, **values)


def _durations(parameters: Iterable[inspect.Parameter]) -> Iterator[tuple[str, str]]:
    """Yield the parameters that are durations by their metavar, with the option's longest spelling."""
    for parameter in parameters:
        (declared,) = parameter.annotation.__metadata__
        if declared.metavar == "DURATION":
            yield parameter.name, max(declared.names, key=len)


def _whole(text: str | int) -> int:
    """Read ASCII digits only: click's own reading also takes 1_000 and digits of any script."""
    try:
        return text if isinstance(text, int) else whole_number(text, "", least=-INT64_MAX)
    except ConfigError as error:
        raise ValueError from error


def subcommands(name: str, help_line: str, *commands: KgroupCommand | TyperGroup) -> TyperGroup:
    """Return a command with subcommands, e.g. `kgroup context use`, which may have some of their own."""
    return OptionsInFront(
        name=name,
        help=help_line,
        commands={c.name: c for c in commands if c.name},
        rich_markup_mode=None,
        no_args_is_help=True,
        context_settings=CONTEXT_SETTINGS,
    )
