"""Arguments of the functions that programs call, held to the annotations of those functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, wraps
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from kgroup.errors import BrokerRefused, ConfigError

P = ParamSpec("P")
R = TypeVar("R")
_WORDS = {
    str: "a text",
    bytes: "bytes",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    NoneType: "None",
}
_LONGEST = 60
_SURROGATES = re.compile("[\ud800-\udfff]")


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that raises ConfigError for an argument of another type than is annotated.

    What Python raises somewhere within names neither the argument nor what would be right. A broker's refusal
    without a hint gets one.
    """
    known = inspect.signature(function)
    several = {name for name, p in known.parameters.items() if p.kind is p.VAR_POSITIONAL}

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        hints = _hints(function)
        for name, value in known.bind(*args, **kwargs).arguments.items():
            for argument in value if name in several else (value,):
                if name in hints and not fits(argument, hints[name]):
                    raise ConfigError(
                        f"{name} is {_shown(argument)}", f"it is {_right(hints[name], argument)}"
                    )
        try:
            return function(*args, **kwargs)
        except BrokerRefused as refused:
            refused.hint = refused.hint or f"`kgroup explain {refused.name}` says what it means"
            raise

    return call


def fits(value: object, hint: Any) -> bool:
    """Return whether a value is of an annotated type.

    A bool is no number, a text no list, and what has no bytes in UTF-8 no text.
    """
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in inside)
    if origin is Literal:
        return value in inside
    if origin is not None:
        return _holds(value, origin, inside)
    if hint is str:
        return isinstance(value, str) and (value.isascii() or not _SURROGATES.search(value))
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return isinstance(hint, TypeVar) or isinstance(value, hint)


def _holds(value: object, origin: Any, inside: tuple[Any, ...]) -> bool:
    if origin is tuple:
        return isinstance(value, tuple) and len(value) == len(inside) and all(map(fits, value, inside))
    if issubclass(origin, Mapping):
        key, item = inside
        return isinstance(value, Mapping) and all(fits(k, key) and fits(v, item) for k, v in value.items())
    if issubclass(origin, Iterable):
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            return False
        return not isinstance(value, Collection) or all(fits(element, inside[0]) for element in value)
    return isinstance(value, origin)


@cache
def _hints(function: Callable[..., object]) -> dict[str, Any]:
    """Return the annotations of the parameters; what is returned may be imported for types alone."""
    named = inspect.signature(function).parameters.values()
    kept = {
        parameter.name: parameter.annotation
        for parameter in named
        if parameter.kind is not parameter.VAR_KEYWORD and parameter.annotation is not parameter.empty
    }
    return get_type_hints(SimpleNamespace(__annotations__=kept), function.__globals__)


def _right(hint: Any, value: object) -> str:
    """Return what would be right, in words; with an example made of what was given, if there is one."""
    words = _worded(hint)
    if fits(str(value), hint) and isinstance(value, int | float) and not isinstance(value, bool):
        return f"{words}, as {str(value)!r}"
    return f"{words}, as [{value!r}]" if fits([value], hint) else words


def _worded(hint: Any) -> str:
    origin, inside = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(map(_worded, inside)))
    if origin is Literal:
        return " or ".join(map(repr, inside))
    if origin is tuple:
        return f"a pair of {' and '.join(map(_worded, inside))}"
    if origin is None:
        return _WORDS.get(hint, f"a {hint.__name__}" if hasattr(hint, "__name__") else str(hint))
    if issubclass(origin, Mapping):
        return f"a mapping from {_worded(inside[0])} to {_worded(inside[1])}"
    return f"a list, each {_worded(inside[0])}" if issubclass(origin, Iterable) else "a function"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
