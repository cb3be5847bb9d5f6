"""Options and arguments: as commands declare them, and as typer's parser takes them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin

from typer.core import TyperArgument, TyperOption

from kgroup.cli.click import IntRange
from kgroup.domain import value

STOP_AFTER = "--stop-after DURATION"
"""The one name for the end of a command that runs on; --timeout is for those that end by themselves."""


@value
class Declared:
    """An option or argument; `names` are the spellings of an option that is not named as its parameter."""

    made: type[TyperOption] | type[TyperArgument]
    names: tuple[str, ...]
    metavar: str | None
    more: Mapping[str, object]


def option(spelling: str, help: str, **more: object) -> Any:
    """Return the declaration of an option: "-o --output FORMAT" are its names, then its metavar."""
    words = spelling.split()
    names = tuple(word for word in words if word.startswith("-"))
    return Declared(TyperOption, names, " ".join(words[len(names) :]) or None, {"help": help, **more})


def argument(metavar: str, help: str, **more: object) -> Any:
    """Return the declaration of an argument; without a metavar its parameter's name stands for it."""
    return Declared(TyperArgument, (), metavar or None, {"help": help, **more})


class Parameter:
    """A parameter of a command, `Annotated[str | int | bool | Path | list[str], Declared]`, or None."""

    def __init__(self, parameter: inspect.Parameter) -> None:
        (declared,) = parameter.annotation.__metadata__
        kind, self._default = parameter.annotation.__origin__, parameter.default
        if get_origin(kind) is UnionType:
            kind = next(arg for arg in get_args(kind) if arg is not type(None))
        self._is_list = get_origin(kind) is list
        self._kind = get_args(kind)[0] if self._is_list else kind
        required = self._default is parameter.empty
        more: dict[str, Any] = {"show_default": True, **declared.more}
        least, most = more.pop("min", None), more.pop("max", None)
        if complete := more.pop("autocompletion", None):
            more["autocompletion"] = lambda ctx, args, incomplete: complete()
        if declared.made is TyperOption:
            more |= {"multiple": self._is_list, "is_flag": True if self._kind is bool else None}
        elif self._is_list:
            more["nargs"] = -1
        self.name = parameter.name
        self.parsed = declared.made(
            param_decls=[self.name, *(declared.names or _spelling(declared, self.name, self._kind))],
            metavar=declared.metavar,
            type=None if self._kind is bool else _type(self._kind, least, most),
            required=required,
            default=None if required else self._default,
            **more,
        )

    def read(self, typed: object) -> object:
        """Return what the command takes for what was parsed; a list of nothing is its default."""
        if self._is_list and not typed and self._default is None:
            return None
        if isinstance(typed, tuple):
            return list(typed)
        return Path(typed) if self._kind is Path and isinstance(typed, str) else typed


def _spelling(declared: Declared, name: str, kind: type) -> tuple[str, ...]:
    if declared.made is TyperArgument:
        return ()
    option = name.replace("_", "-")
    return (f"--{option}/--no-{option}" if kind is bool else f"--{option}",)


def _type(kind: type, least: int | None, most: int | None) -> object:
    """Return the type as typer takes one."""
    if kind is int:
        return int if least is most is None else IntRange(least, most)
    if kind is Path:
        from typer.models import TyperPath

        return TyperPath()
    assert kind is str, kind
    return str
