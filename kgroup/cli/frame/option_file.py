"""Options from a YAML file: names and values are those of the command line, which comes first."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kgroup.cli.declaring import option
from kgroup.cli.frame.described import own_options
from kgroup.cli.frame.lazy import KgroupCommand
from kgroup.domain import Document
from kgroup.errors import ConfigError
from kgroup.text_files import load_yaml, read_text

if TYPE_CHECKING:
    from typer import Context

NAME = "--config"


def schema(command: KgroupCommand) -> Document:
    """Return the JSON Schema of such a file for a command."""
    text: Document = {"type": ["string", "number"]}
    properties = {
        name: ({"type": "array", "items": text} if option["repeatable"] else text)
        | {"description": option["help"]}
        for name, option in _options(command).items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Options of kgroup {command.path}",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def config_option() -> Any:
    """Return the option that names such a file; what it holds are defaults of the other options."""
    return option(
        f"{NAME} FILE", "YAML with these options by name, e.g. keep: 30d.", is_eager=True, callback=_take
    )


def _take(ctx: "Context", parameter: object, path: str | None) -> str | None:
    if path is not None:
        assert isinstance(ctx.command, KgroupCommand)
        try:
            ctx.default_map = _values(ctx.command, Path(path))
        except ConfigError as error:
            # Only now: it imports all of typer.
            from typer import BadParameter

            raise BadParameter(error.message) from None
    return path


def _values(command: KgroupCommand, path: Path) -> dict[str, object]:
    """Return the values of a file by parameter; ConfigError for one that the command line would not take."""
    # Numbers are the text that was written, as on the command line.
    given = load_yaml(read_text(path, str(path), regular=True), str(path), scalars=False) or {}
    known = _options(command)
    if not isinstance(given, dict):
        raise ConfigError(f"{path} is not a mapping of options")
    values: dict[str, object] = {}
    for name, value in given.items():
        if name not in known:
            raise ConfigError(f"{path} has {name!r}, which is none of {', '.join(known)}")
        many = known[name]["repeatable"]
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts) or isinstance(value, list) != many:
            raise ConfigError(
                f"{name} in {path} is not {'a list of texts' if many else 'one text or number'}"
            )
        values[str(known[name]["parameter"])] = value
    return values


def _options(command: KgroupCommand) -> dict[str, Document]:
    named = {str(option["name"]): option for option in own_options(command)}
    return {name.removeprefix("--"): option for name, option in named.items() if name != NAME}
