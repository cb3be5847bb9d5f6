"""Options and arguments as help prints them: the spelling with its metavar, then what it does."""

from typing import Any

import typer


def option(spelling: str, help: str, **more: Any) -> Any:
    """Return typer's declaration of an option: "-o --output FORMAT" are its names, then its metavar."""
    words = spelling.split()
    names = [word for word in words if word.startswith("-")]
    return typer.Option(*names, metavar=" ".join(words[len(names) :]) or None, help=help, **more)


STOP_AFTER = "--stop-after DURATION"
"""The one name for the end of a command that runs on; --timeout is for those that end by themselves."""


def argument(metavar: str, help: str, **more: Any) -> Any:
    """Return typer's declaration of an argument."""
    return typer.Argument(metavar=metavar, help=help, **more)
