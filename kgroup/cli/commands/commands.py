"""`kgroup commands`: every command with its arguments and options, for wrappers and agents."""

from typing import Annotated

from kgroup.cli.declaring import argument
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.frame.described import described
from kgroup.cli.frame.lazy import walk
from kgroup.cli.frame.options import make
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table


@make(
    "commands",
    examples=(
        ("kgroup commands", "every command in one line"),
        ("kgroup commands offsets", "those that begin so"),
        ("kgroup commands -o json", "with arguments, options, examples; also COMMAND --help-json"),
    ),
)
def command(
    env: Env,
    name: Annotated[
        list[str] | None, argument("[COMMAND]…", "A command, or the first word of several.")
    ] = None,
) -> ExitCode:
    """List the commands; in JSON with their arguments, options, examples and schema."""
    path = " ".join(name or ())
    matching = [command for command in walk() if f"{command.path} ".startswith(f"{path} ".lstrip())]
    if not matching:
        raise Failure(
            ExitCode.NOT_FOUND, "UNKNOWN_COMMAND", f"there is no command {path}", "kgroup commands", path
        )
    rows = [described(command) for command in matching]
    table = Table((Column("command"), Column("summary")), rows)
    return show(env, Result({"commands": rows}, (table,), "commands", [command.path for command in matching]))
