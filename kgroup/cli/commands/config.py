"""`kgroup config`: the settings in force."""

from typing import Annotated

import typer

from kgroup.cli.env import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.options import command as make
from kgroup.cli.options import group
from kgroup.cli.output import Result, show
from kgroup.cli.tables import Column, Table


@make(
    "config show",
    examples=(
        ("kgroup config show --origin", "which value is in force, and who said so"),
        ("kgroup config show -C prod -o json", "the settings of one context, secrets hidden"),
    ),
)
def show_config(
    env: Env,
    origin: Annotated[bool, typer.Option("--origin", help="Also tell where each value came from.")] = False,
) -> ExitCode:
    """Show the settings in force, and with --origin where each came from.

    Precedence: flag, -X, environment, context, default. Secrets are never printed.
    """
    from kgroup.cli.config import LocalTarget, config_path, target_of

    resolved = env.settings()
    target = target_of(resolved)
    if isinstance(target, LocalTarget):
        where = f"embedded cluster in {target.directory}"
    else:
        where = "remote cluster " + resolved.settings["bootstrap.servers"].value
    rows = [
        {"setting": s.name, "value": s.shown, "origin": s.origin}
        for s in sorted(resolved.settings.values(), key=lambda s: s.name)
    ]
    columns = (Column("setting"), Column("value"), Column("origin", wide=not origin))
    data = {"config_file": str(config_path()), "target": where, "settings": rows}
    blocks = (where, Table(columns, rows))
    return show(env, Result(data, blocks, items="settings", names=[r["setting"] for r in rows]))


command = group("config", "Show the settings in force and where each comes from.", show_config)
