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
    wanted, _, version = " ".join(name).removeprefix("kgroup/").partition("@")
    found = next((known for known in (wanted, wanted.replace("-", " ")) if schema_for(known)), None)
    if found is None:
        raise Failure(
            ExitCode.NOT_FOUND, "NO_SCHEMA", f"no command {wanted!r} prints JSON", "kgroup schema lists them"
        )
    current = schema_id(found)
    if version and version != current.partition("@")[2]:
        raise Failure(
            ExitCode.NOT_FOUND,
            "NO_SCHEMA",
            f"this kgroup prints {current}, not version {version}",
            shell.command("schema", *found.split()),
        )
    print(json.dumps(schema_for(found), indent=2))
    return ExitCode.OK
