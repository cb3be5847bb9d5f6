"""`sasl.jaas.config`: the name of a login module and its options, read as Kafka's JaasConfig does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kgroup.errors import ConfigError

_TOKEN = re.compile(
    r"""\s+|//[^\r\n]*|/\*.*?\*/
    |(?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<sign>[=;])
    |(?P<word>[^\s=;"']+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b", "v": "\v", "a": "\a"}
_CLASS = re.compile(r"[a-z]\w*(?:\.[a-z]\w*)*\.[A-Z]\w*LoginModule")
_FLAGS = ("required", "requisite", "sufficient", "optional")
_AS_JAVA = 'write it as Java does: org.apache…LoginModule required name="value" …;'


@dataclass(frozen=True, slots=True)
class Jaas:
    """A login module, by the last part of its class name, and its options."""

    module: str
    options: Mapping[str, str] = field(repr=False)


def parse(text: str, where: str) -> Jaas:
    """The one login module of the text; ConfigError in words that show no part of the text but a class."""
    tokens = _tokens(text, where)
    if not tokens:
        raise ConfigError(f"{where} names no login module", _AS_JAVA)
    module = tokens[0][1]
    if not _CLASS.fullmatch(module):
        # Anything but the name of a class may be a part of the secret.
        raise ConfigError(f"{where} begins with no login module", _AS_JAVA)
    if len(tokens) < 2 or tokens[1][1].lower() not in _FLAGS:
        raise ConfigError(f"{where} has no `required` behind {module}", _AS_JAVA)
    return Jaas(module.rpartition(".")[2], _options(tokens[2:], where))


def _tokens(text: str, where: str) -> list[tuple[str, str]]:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise ConfigError(f"{where} has a quote that is not closed", _AS_JAVA)
        at = found.end()
        if found.lastgroup is not None:
            value = found[found.lastgroup]
            tokens.append((found.lastgroup, _unquoted(value) if found.lastgroup == "quoted" else value))
    return tokens


def _unquoted(quoted: str) -> str:
    def plain(match: re.Match[str]) -> str:
        token = match[1]
        return chr(int(token, 8)) if token.isdigit() and token < "8" else _ESCAPES.get(token, token)

    return _ESCAPED.sub(plain, quoted[1:-1])


def _options(tokens: list[tuple[str, str]], where: str) -> dict[str, str]:
    options: dict[str, str] = {}
    at = 0
    while at < len(tokens) and tokens[at] != ("sign", ";"):
        three = tokens[at : at + 3]
        if len(three) < 3 or [three[0][0], three[1]] != ["word", ("sign", "=")] or three[2][0] == "sign":
            number = len(options) + 1
            raise ConfigError(f'{where}: option {number} of the login module is not name="value"', _AS_JAVA)
        options[three[0][1]] = three[2][1]
        at += 3
    if len(tokens) > at + 1:
        raise ConfigError(
            f"{where} has more behind its login module", "one login module, ended by a semicolon"
        )
    return options
