"""`kgroup schema`: the JSON Schema of a command's output."""

import json
from typing import Annotated

import typer

from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.options import command as make
from kgroup.cli.schemas import commands, schema_for


def _complete(incomplete: str) -> list[str]:
    return [name for name in commands() if name.startswith(incomplete)]


@make(
    "schema",
    examples=(
        ("kgroup schema describe > describe.schema.json", "what `kgroup describe -o json` prints"),
        ("kgroup schema context list", "a subcommand"),
        ("kgroup schema", "the commands that have one"),
    ),
    has_json=False,
)
def command(
    env: Env,
    name: Annotated[
        list[str] | None,
        typer.Argument(help="A command.", metavar="[COMMAND]…", autocompletion=_complete),
    ] = None,
) -> ExitCode:
    """Print the JSON Schema of a command's -o json output."""
    if not name:
        print("\n".join(commands()))
        return ExitCode.OK
    wanted = " ".join(name).removeprefix("kgroup/").removesuffix("@1")
    schema = schema_for(wanted) or schema_for(wanted.replace("-", " "))
    if schema is None:
        raise Failure(
            ExitCode.NOT_FOUND, "NO_SCHEMA", f"no command {wanted!r} prints JSON", "kgroup schema lists them"
        )
    print(json.dumps(schema, indent=2))
    return ExitCode.OK
