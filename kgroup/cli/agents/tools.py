"""The tools of `kgroup mcp`: commands that only read, with the arguments that they declare."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from kgroup.cli.agents.bounds import Cut
from kgroup.cli.frame.lazy import command_at
from kgroup.cli.schemas.parts import INTEGER, OBJECT, STRING, Schema, array, note, one_of
from kgroup.domain import Document
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.cli.click import Context, Parameter

OFFERED: Mapping[str, str] = {
    "list": "glob regex state type_ protocol_type topic static_only sort members",
    "describe": "group all_groups",
    "lag": "group rate time fail_above at files",
    "doctor": "group all_groups window without patience kafka rights for_ topic principal at files",
    "blame": "group files since until",
    "replay-log": "group files since until at events instance verify collapse_commits",
    "explain": "term",
}
"""The tools, and the parameters of each that an agent may give.

A parameter that is not here is not offered: it would write, run on without an end, read any file, connect to
any address, or change nothing in JSON. A test decides each.
"""
LONGEST = 32_767
"""Characters of an argument: the bytes of the longest group id that a broker takes."""
CONTEXT, FILES, ROWS, SKIP = "context", "files", "rows", "skip"


@dataclass(frozen=True, slots=True)
class Given:
    """What the operator gave at the start; `size` bounds an answer in bytes, `rows` each of its lists."""

    contexts: Sequence[str]
    files: Sequence[str]
    storage: Sequence[str]
    size: int
    rows: int


class Tool:
    """A command as a tool: the arguments that it takes, the answer that it gives, its command line."""

    def __init__(self, name: str, given: Given) -> None:
        command, _ = command_at([name])
        assert command is not None
        self._name, self.text = name, (command.help or "").strip()
        self.opens_storage = any(p.name == "storage_option" for p in command.params)
        chosen = {*OFFERED[name].split()} - (set() if given.files else {FILES})
        offered = [p for p in command.params if p.name in chosen]
        self._parameters = {(p.name or "").rstrip("_"): p for p in offered}
        context = command.make_context(name, [], resilient_parsing=True)
        own = {name: _argument(p, context) for name, p in self._parameters.items()}
        if FILES in own:
            own[FILES]["items"] = one_of(*given.files)
        if given.contexts:
            own[CONTEXT] = note(one_of(*given.contexts), "The cluster, by its name in the config file.")
        rows = {**INTEGER, "minimum": 1, "maximum": given.rows}
        own[ROWS] = note(rows, "At most this many rows of each list in the answer.")
        skipped = {**OBJECT, "additionalProperties": {**INTEGER, "minimum": 0}}
        own[SKIP] = note(skipped, "Rows to leave out at the start of a list, by its place, as `cut` says.")
        required = [name for name, p in self._parameters.items() if p.required]
        takes = {**OBJECT, "properties": own, "additionalProperties": False}
        self.takes: Document = {**takes, "required": required}

    @cached_property
    def gives(self) -> Document:
        """The schema of its answer: of what the command prints, with what the server adds."""
        from kgroup.cli.schemas import schema_for
        from kgroup.cli.schemas.derive import schema_of

        schema = schema_for(self._name) or {}
        properties, required = schema["properties"], schema["required"]
        assert isinstance(properties, dict) and isinstance(required, list)
        added: dict[str, Schema] = {
            "meaning": note(STRING, "of the exit code"),
            "notes": note(array(STRING), "what the command says besides"),
            "cut": note(array(schema_of(Cut)), "what is left out of this answer, and how to ask for it"),
        }
        return {**schema, "properties": {**properties, **added}, "required": [*required, *added]}

    def line(self, arguments: Mapping[str, object]) -> list[str]:
        """Return the words of the command for these arguments; raise ConfigError for wrong ones."""
        self._check(arguments)
        words, last = [self._name], list[str]()
        for name in self._parameters.keys() & arguments.keys():
            parameter, value = self._parameters[name], arguments[name]
            values = list(map(str, value)) if isinstance(value, list) else [str(value)]
            if parameter.param_type_name == "argument":
                last += values
            elif isinstance(value, bool):
                words += (parameter.opts if value else parameter.secondary_opts)[:1]
            else:
                words += [f"{max(parameter.opts, key=len)}={value}" for value in values]
        return [*words, "-o", "json", "--", *last]

    def _check(self, arguments: Mapping[str, object]) -> None:
        from jsonschema import Draft202012Validator

        wrong = next(Draft202012Validator(self.takes).iter_errors(arguments), None)
        if wrong is not None:
            text = wrong.message if len(wrong.message) < _LONGEST_SHOWN else f"it breaks {wrong.validator}"
            raise ConfigError(f"{wrong.json_path}: {text}", "the tool's input schema has what it takes")
        names = arguments.get("group")
        if FILES in arguments and isinstance(names, list):
            from kgroup.history.sources.logs import looks_like_segments

            # The command would read them: which recordings are read is the operator's choice.
            path = next(filter(looks_like_segments, names), None)
            if path is not None:
                raise ConfigError(f"{path} is a recording, not a group", "recordings are named in files")


_LONGEST_SHOWN = 300


def _argument(parameter: "Parameter", context: "Context") -> Schema:
    """Return the schema of one parameter, with what help says of it."""
    usage, text = parameter.get_help_record(context) or ("", "")
    flag = bool(getattr(parameter, "is_flag", False))
    kind: Schema = {"type": "boolean"} if flag else {**STRING, "maxLength": LONGEST}
    if parameter.multiple or parameter.nargs == -1:
        kind = {**array(kind), "minItems": 1}
    return note(kind, f"{usage}: {text}")
