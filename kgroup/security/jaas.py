"""`sasl.jaas.config`: a login module, its flag and its options, read as Kafka's JaasConfig does."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""\s+|//[^\r\n]*|/\*.*?\*/
    |(?P<quoted>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    |(?P<sign>[=;])
    |(?P<word>[^\s=;"']+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\([0-3][0-7]{2}|[0-7]{1,2}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "b": "\b", "v": "\v", "a": "\a"}
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_END = ("sign", ";")


@dataclass(frozen=True, slots=True)
class LoginModule:
    """A login module by the name of its class, and its options."""

    class_name: str
    options: Mapping[str, str] = field(repr=False)

    @property
    def name(self) -> str:
        """The last part of the class's name."""
        return self.class_name.rpartition(".")[2]


def parse_jaas(text: str) -> LoginModule:
    """Return the one login module of a text, which a semicolon has to end.

    ValueError says what is wrong without quoting any of the text: it may be a part of a secret.
    """
    tokens = _tokens(text)
    if not tokens:
        raise ValueError("it names no login module")
    if len(tokens) < 2 or tokens[1][1].lower() not in _FLAGS:
        raise ValueError("it has no `required` behind the login module")
    options: dict[str, str] = {}
    at = 2
    while at < len(tokens) and tokens[at] != _END:
        three = tokens[at : at + 3]
        if len(three) < 3 or [three[0][0], three[1]] != ["word", ("sign", "=")] or three[2][0] == "sign":
            raise ValueError(f'option {len(options) + 1} of the login module is not name="value"')
        options[three[0][1]] = three[2][1]
        at += 3
    if at == len(tokens):
        raise ValueError("it does not end with a semicolon")
    if len(tokens) > at + 1:
        raise ValueError("it has more behind its login module, which a semicolon ends")
    return LoginModule(tokens[0][1], options)


def _tokens(text: str) -> list[tuple[str, str]]:
    """Each token with its kind: quoted, sign or word."""

    def plain(match: re.Match[str]) -> str:
        token = match[1]
        return chr(int(token, 8)) if token.isdigit() and token < "8" else _ESCAPES.get(token, token)

    tokens, at = [], 0
    while at < len(text):
        lexeme = _TOKEN.match(text, at)
        if lexeme is None:
            raise ValueError("it has a quote that is not closed")
        at = lexeme.end()
        if lexeme.lastgroup is not None:
            value = lexeme[lexeme.lastgroup]
            quoted = lexeme.lastgroup == "quoted"
            tokens.append((lexeme.lastgroup, _ESCAPED.sub(plain, value[1:-1]) if quoted else value))
    return tokens
