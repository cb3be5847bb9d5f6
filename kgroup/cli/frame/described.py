"""Commands and their options as data: for `kgroup commands`, `kgroup options` and COMMAND --help-json."""

from collections.abc import Iterator

from kgroup.cli.frame.lazy import KgroupCommand, command_at
from kgroup.cli.frame.shared_options import shared_names
from kgroup.cli.output.schema_ids import schema_id
from kgroup.domain import Document


def described(command: KgroupCommand) -> Document:
    """Return a command's own words: usage, summary, arguments, options, examples, schema."""
    ctx = command.make_context(f"kgroup {command.path}", [], resilient_parsing=True)
    text = (command.help or "").strip()
    return {
        "command": command.path,
        "summary": text.partition("\n")[0],
        "description": text.partition("\n")[2].strip() or None,
        "usage": f"kgroup {command.path} {' '.join(command.collect_usage_pieces(ctx))}",
        "arguments": list(_parameters(command, "argument")),
        "options": list(_parameters(command, "option")),
        "examples": [{"line": line, "comment": comment} for line, comment in command.examples],
        "schema": schema_id(command.path) if command.has_json else None,
    }


def shared_options() -> list[Document]:
    """Return the options that every command has, in the order of their panels."""
    command, _ = command_at(["options"])
    assert command is not None
    return list(_parameters(command, "option", shared=True))


def own_options(command: KgroupCommand) -> Iterator[Document]:
    """Yield the options of a command that not all have, with the name of each `parameter`."""
    names = {max(parameter.opts, key=len): parameter.name for parameter in command.params}
    for option in _parameters(command, "option"):
        yield option | {"parameter": names[str(option["name"])]}


def _parameters(command: KgroupCommand, kind: str, *, shared: bool = False) -> Iterator[Document]:
    ctx = command.make_context(command.path, [], resilient_parsing=True)
    others = {*shared_names(), "help"}
    for parameter in command.get_params(ctx):
        record = parameter.get_help_record(ctx)
        own = parameter.name not in others
        if parameter.param_type_name != kind or record is None or own is shared or parameter.name == "help":
            continue
        usage, text = record
        document: Document = {
            "name": usage if kind == "argument" else max(parameter.opts, key=len),
            "usage": usage,
            "help": text,
            "required": parameter.required,
            "repeatable": parameter.multiple if kind == "option" else parameter.nargs == -1,
        }
        if kind == "option":
            flag = bool(getattr(parameter, "is_flag", False))
            document |= {"spellings": [*parameter.opts, *parameter.secondary_opts], "takes_value": not flag}
        yield document | ({"panel": getattr(parameter, "rich_help_panel", None)} if shared else {})
