"""JAAS lines as they stand in Java properties: one login module, its control flag and its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<mark>[=;])
      | (?P<word>[^\s"'=;]+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A module by the last part of its class's name, and its options."""

    name: str
    options: Mapping[str, str] = field(repr=False)


def parse_jaas(text: str) -> LoginModule:
    """The one module of a JAAS line; ValueError says what is wrong without quoting any of it."""
    tokens = _tokens(text)
    if len(tokens) < 2 or tokens[-1] != (";", False):
        raise ValueError("it does not end with a semicolon")
    (module, _), (flag, _), rest = tokens[0], tokens[1], tokens[2:-1]
    if flag.lower() not in _FLAGS:
        raise ValueError("behind the module's class there is no control flag, such as required")
    options: dict[str, str] = {}
    for at in range(0, len(rest), 3):
        part = rest[at : at + 3]
        if len(part) < 3 or part[1] != ("=", False):
            raise ValueError('its options are not of the form name="value"')
        options[part[0][0]] = part[2][0]
    return LoginModule(module.rpartition(".")[2], options)


def _tokens(text: str) -> list[tuple[str, bool]]:
    """Each token, and whether it was quoted."""
    found: list[tuple[str, bool]] = []
    pos, text = 0, text.rstrip()
    while pos < len(text):
        match = _TOKEN.match(text, pos)
        if match is None:
            raise ValueError("a quote is not closed")
        pos = match.end()
        if match["quoted"]:
            found.append((re.sub(r"\\(.)", r"\1", match["quoted"][1:-1], flags=re.DOTALL), True))
        else:
            found.append((match["mark"] or match["word"], False))
    return found
