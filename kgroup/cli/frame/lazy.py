"""The command tree: groups that import a command on use, and help without rich."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from typer.core import TyperCommand, TyperGroup

from kgroup.cli.click import CompletionItem
from kgroup.cli.frame.registry import COMMANDS, PANELS, CommandEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kgroup.cli.click import Command, Context, HelpFormatter

# Context settings of every command: help options a terminal user expects, and wide enough help.
CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
SCREEN = 40
"""Lines of a command's help, at most."""
OF_EVERY_COMMAND = "Every command also takes -b, -C, -X, -o, -q, -v, -h, --timeout, …: kgroup options"
_PANEL_ORDER = ("Arguments", "Members", "Where to", "Options")


class KgroupCommand(TyperCommand):
    """A command that prints its options by panel and its examples below them.

    `path` is its full name ("context use"); `examples` are command lines with a comment each; with `has_json`
    it prints a JSON envelope, so needs a schema.
    """

    path: str = ""
    examples: tuple[tuple[str, str], ...] = ()
    has_json: bool = True

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        # A command that is being completed is typed in kgroup's own words.
        if args and not ctx.resilient_parsing:
            from kgroup.cli.frame.accepted import accepted

            args = accepted(self, args)
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write at most a screen: as many examples as fit, at least one; the man page has all."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        self.format_options(ctx, formatter)
        if self.examples:
            left = SCREEN - "".join(formatter.buffer).count("\n") - 3
            shown = max(1, min(len(self.examples), left // 2))
            with formatter.section(_title(shown, len(self.examples), self.path)):
                for line, comment in self.examples[:shown]:
                    formatter.write(f"{'':>{formatter.current_indent}}# {comment}\n")
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def format_options(self, ctx: Context, formatter: HelpFormatter) -> None:
        from kgroup.cli.frame.shared_options import shared_names

        panels: dict[str, list[tuple[str, str]]] = {}
        elsewhere = {*shared_names(), "help"}
        for param in self.get_params(ctx):
            record = None if param.name in elsewhere else param.get_help_record(ctx)
            if record is not None:
                default = "Arguments" if param.param_type_name == "argument" else "Options"
                panel = getattr(param, "rich_help_panel", None) or default
                panels.setdefault(panel, []).append(record)
        names = [name for name in _PANEL_ORDER if name in panels]
        names += [name for name in panels if name not in _PANEL_ORDER]
        for name in names:
            with formatter.section(name):
                formatter.write_dl(panels[name], col_max=_least_lines(formatter, panels[name]))
        formatter.write(f"\n{OF_EVERY_COMMAND}\n")


def _title(shown: int, count: int, path: str) -> str:
    rest = f" ({count - shown} more: man kgroup-{path.replace(' ', '-')})" if shown < count else ""
    return f"Examples{rest}"


def _least_lines(formatter: HelpFormatter, rows: list[tuple[str, str]]) -> int:
    """Return the width of the first column that makes the list shortest."""

    def lines(width: int) -> int:
        trial = type(formatter)(width=formatter.width)
        trial.current_indent = formatter.current_indent
        trial.write_dl(rows, col_max=width)
        return "".join(trial.buffer).count("\n")

    return min((30, 26, 22, 18), key=lines)


class OptionsInFront(TyperGroup):
    """A group of commands that takes the shared options before a command's name as well as after it."""

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the summaries whole; the parent class cuts them to a line."""
        rows = [(name, (sub.help or "").partition("\n")[0]) for name, sub in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        # A single word (`--help`) has no command after it.
        if len(args) > 1 and args[0].startswith("-"):
            from kgroup.cli.frame.shared_options import behind_the_command

            args = behind_the_command(args)
        rest: list[str] = super().parse_args(ctx, args)
        return rest


class RootGroup(OptionsInFront):
    """`kgroup` itself: knows every command by name, imports the one that is used."""

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        entry = COMMANDS.get(cmd_name)
        return load(entry) if entry else None

    def list_commands(self, ctx: Context) -> list[str]:
        return list(COMMANDS)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        width = max(len(name) for name in COMMANDS)
        for panel in PANELS:
            rows = [(e.name.ljust(width), e.help) for e in COMMANDS.values() if e.panel == panel]
            if rows:
                with formatter.section(panel):
                    formatter.write_dl(rows)

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        # The parent class would import every command to read its help.
        matches = [e for e in COMMANDS.values() if e.name.startswith(incomplete)]
        return [CompletionItem(e.name, help=e.help) for e in matches]

    def resolve_command(self, ctx: Context, args: list[str]) -> tuple[str | None, Command | None, list[str]]:
        # The parent class suggests from loaded commands; ours are known by name only.
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"no command {args[0]!r}")
        return super().resolve_command(ctx, args)


def load(entry: CommandEntry) -> KgroupCommand | TyperGroup:
    """Import a command's module and return the command object it defines as `command`."""
    module = importlib.import_module(entry.module)
    command: KgroupCommand | TyperGroup = module.command
    return command


def command_at(words: Sequence[str]) -> tuple[KgroupCommand | None, int]:
    """Return the runnable command that the first words name, and how many of them; None, 0 for no command."""
    entry = COMMANDS.get(words[0]) if words else None
    command: Command | None = load(entry) if entry else None
    count = 1
    while isinstance(command, TyperGroup) and count < len(words):
        command = command.commands.get(words[count])
        count += 1
    return (command, count) if isinstance(command, KgroupCommand) else (None, 0)


def walk() -> list[KgroupCommand]:
    """Return every runnable command, subcommands included, in the registry's order (imports them all)."""
    return [command for entry in COMMANDS.values() for command in _leaves(load(entry))]


def _leaves(command: Command) -> list[KgroupCommand]:
    if isinstance(command, TyperGroup):
        return [leaf for sub in command.commands.values() for leaf in _leaves(sub)]
    return [command] if isinstance(command, KgroupCommand) else []
