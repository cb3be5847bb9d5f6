"""The parser that typer vendors: the names and attributes that typer keeps private (decision 77).

No other module names them, so another release of typer breaks this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from typer._click import Command, Context, HelpFormatter, Parameter
from typer._click.exceptions import NoArgsIsHelpError, NoSuchOption, UsageError
from typer._click.globals import get_current_context
from typer._click.shell_completion import CompletionItem, _resolve_context, _resolve_incomplete
from typer._click.termui import style
from typer._click.types import IntParamType, IntRange

__all__ = [
    "Command",
    "CompletionItem",
    "Context",
    "HelpFormatter",
    "IntParamType",
    "IntRange",
    "NoArgsIsHelpError",
    "NoSuchOption",
    "Parameter",
    "UsageError",
    "completed",
    "get_current_context",
    "offer",
    "read_numbers",
    "style",
]


def offer(parameter: Parameter, words: Callable[[Context, Parameter, str], list[str]]) -> None:
    """Let a shell complete a parameter by these words, unless it declares its own."""
    if parameter._custom_shell_complete is None:
        parameter._custom_shell_complete = words


def completed(root: Command, args: Sequence[str], last: str) -> tuple[str, str, list[CompletionItem]]:
    """Return what the word after `args` is (command, option or argument), its begun part, and the offers.

    The begun part is all of `last`, or of --option=VALUE the value.
    """
    before = list(args)
    ctx = _resolve_context(root, {}, "kgroup", before)
    # Appends the option's name to the words where the last is --option=value.
    target, incomplete = _resolve_incomplete(ctx, before, last)
    kind = getattr(target, "param_type_name", "command")
    if kind == "option":
        # At an option without its value the parser keeps none of the words.
        ctx = _resolve_context(root, {}, "kgroup", before[:-1])
    return kind, incomplete, target.shell_complete(ctx, incomplete)


def read_numbers(parameter: Parameter, read: Callable[[str | int], int]) -> None:
    """Let a parameter that is a whole number be read by `read`, which raises ValueError."""
    kind = parameter.type
    if isinstance(kind, IntParamType):
        # Without a range it is one object for all.
        own = kind if isinstance(kind, IntRange) else IntParamType()
        own._number_class = read  # type: ignore[misc, assignment]
        own.name = "whole number"
        parameter.type = own
