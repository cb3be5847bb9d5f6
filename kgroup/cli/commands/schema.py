"""`kgroup schema`: the JSON Schema of a command's output."""

import json
from typing import Annotated

from kgroup.admin import shell
from kgroup.cli.declaring import argument
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.frame.options import make
from kgroup.cli.output.schema_ids import schema_id
from kgroup.cli.schemas import commands, schema_for


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
    name: Annotated[list[str] | None, argument("[COMMAND]…", "A command.", autocompletion=commands)] = None,
) -> ExitCode:
    """Print the JSON Schema of a command's -o json output."""
    if not name:
        print("\n".join(commands()))
        return ExitCode.OK
    typed, _, version = " ".join(name).removeprefix("kgroup/").partition("@")
    command_path = next((known for known in (typed, typed.replace("-", " ")) if schema_for(known)), None)
    if command_path is None:
        raise Failure(
            ExitCode.NOT_FOUND, "NO_SCHEMA", f"no command {typed!r} prints JSON", "kgroup schema lists them"
        )
    current = schema_id(command_path)
    if version and version != current.partition("@")[2]:
        raise Failure(
            ExitCode.NOT_FOUND,
            "NO_SCHEMA",
            f"this kgroup prints {current}, not version {version}",
            shell.command("schema", *command_path.split()),
        )
    print(json.dumps(schema_for(command_path), indent=2))
    return ExitCode.OK
