"""`kgroup context`: the named clusters of the config file."""

from typing import Annotated

from kgroup.cli.declaring import argument
from kgroup.cli.env.config import Config, Context, load_config, write_current
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.known_settings import shown
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.frame.options import make, subcommands
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table

_FORM = (
    "contexts:",
    "  prod:",
    "    bootstrap-servers: broker-1:9092,broker-2:9092",
    "    command-config: client.properties",
)
"""A file with one context; `kgroup docs configuration` has the rest."""


@make("context list", examples=(("kgroup context list", "every context, the current one marked"),))
def list_contexts(env: Env) -> ExitCode:
    """List the contexts of the config file."""
    config = load_config()
    rows = [
        {"name": c.name, "current": c.name == config.current, "target": c.summary}
        for c in sorted(config.contexts.values(), key=lambda c: c.name)
    ]
    if not rows:
        env.note(f"no contexts; write them into {config.path}, as")
        for line in _FORM:
            env.note(line)
    table = Table((Column("current"), Column("name"), Column("target")), rows)
    data = {"config_file": str(config.path), "current": config.current, "contexts": rows}
    return show(env, Result(data, (table,), items="contexts", names=[str(r["name"]) for r in rows]))


@make(
    "context use",
    examples=(("kgroup context use prod", "which cluster commands without -b, --local and -C use"),),
)
def use_context(env: Env, name: Annotated[str, argument("", "A context from the config file.")]) -> ExitCode:
    """Make a context the current one."""
    config = load_config()
    _find(config, name)
    write_current(config, name)
    env.note(f"current context is now {name} ({config.contexts[name].summary})")
    data = {"current": name, "previous": config.current}
    return show(env, Result(data, (), names=[name]))


@make(
    "context show",
    examples=(
        ("kgroup context show", "the current context"),
        ("kgroup context show staging -o json", "another one, secrets hidden"),
    ),
)
def show_context(
    env: Env,
    name: Annotated[str | None, argument("", "A context; by default the current one.")] = None,
) -> ExitCode:
    """Show one context, secrets hidden."""
    config = load_config()
    chosen = name or env.flags.get("context") or config.current
    if chosen is None:
        raise Failure(
            ExitCode.NOT_FOUND,
            "NO_CURRENT_CONTEXT",
            f"no context is current in {config.path}",
            "kgroup context use NAME",
        )
    context = _find(config, chosen)
    values = {k: shown(k, v) for k, v in context.values().items()}
    if context.command_config:
        values["command.config"] = str(context.command_config)
    rows = [{"setting": k, "value": v} for k, v in sorted(values.items())]
    data = {"name": chosen, "current": chosen == config.current, "settings": rows}
    table = Table((Column("setting"), Column("value")), rows)
    return show(env, Result(data, (f"{chosen}: {context.summary}", table), items="settings", names=[chosen]))


def _find(config: Config, name: str) -> Context:
    """Return the context named; NOT_FOUND when the file has none of that name."""
    if name not in config.contexts:
        known = ", ".join(sorted(config.contexts)) or "none"
        raise Failure(
            ExitCode.NOT_FOUND,
            "NO_SUCH_CONTEXT",
            f"there is no context {name!r} in {config.path}",
            f"known: {known}",
        )
    return config.contexts[name]


command = subcommands(
    "context", "List, show or switch the named clusters.", list_contexts, use_context, show_context
)
