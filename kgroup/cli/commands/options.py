"""`kgroup options`: the options that every command has."""

from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.described import shared_options
from kgroup.cli.frame.options import make
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table


@make(
    "options",
    examples=(
        ("kgroup options", "what may stand before or after every command's name"),
        ("kgroup options -o json", "for a program"),
    ),
)
def command(env: Env) -> ExitCode:
    """Show the options that every command has: which cluster, how to connect, what to print.

    They may stand before a command's name too. `kgroup COMMAND --help` shows the command's own.
    """
    rows = [option | {"option": option["usage"]} for option in shared_options()]
    blocks: list[str | Table] = []
    for panel in dict.fromkeys(row["panel"] for row in rows):
        lines = [row for row in rows if row["panel"] == panel]
        blocks += [
            *([""] if blocks else []),
            Table((Column("option", str(panel)), Column("help", "")), lines),
        ]
    data = {"options": [{k: v for k, v in row.items() if k != "option"} for row in rows]}
    main = Table((Column("option"), Column("panel"), Column("help")), rows)
    names = [str(row["name"]) for row in rows]
    return show(env, Result(data, blocks, items="options", names=names, main=main))
