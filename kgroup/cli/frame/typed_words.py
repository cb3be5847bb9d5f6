"""Shell text in both directions: the words of a line typed so far, and a name as bash reads it back.

A name comes from a cluster, so anybody who may create a group chooses it.
"""

import re
from collections.abc import Mapping

from kgroup.domain import value

_DIGITS = "x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}"
_ESCAPE = rf"\\(?P<escape>{_DIGITS}|.?)"
_BLANK = r"(?P<blank>[ \t\n]+)"
_LETTERS = {"a": 7, "b": 8, "e": 27, "E": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
Grammar = Mapping[str, re.Pattern[str]]
POSIX: Grammar = {
    "": re.compile(
        rf"""{_BLANK}|\$?(?P<quote>")|(?P<quoted>\$?')|\\(?P<kept>.?)|(?P<plain>[^\\$'" \t\n]+|\$)""", re.S
    ),
    "'": re.compile(r"(?P<end>')|(?P<plain>[^']+)"),
    '"': re.compile(r"""(?P<end>")|\\(?P<kept>[$`"\\])|(?P<plain>[^"\\]+|\\)"""),
    "$'": re.compile(rf"(?P<end>')|{_ESCAPE}|(?P<plain>[^'\\]+)", re.S),
}
"""How bash and zsh read a line, by the quote that is open."""
FISH: Grammar = {
    "": re.compile(rf"""{_BLANK}|(?P<quote>['"])|{_ESCAPE}|(?P<plain>[^\\'" \t\n]+)""", re.S),
    "'": re.compile(r"""(?P<end>')|\\(?P<kept>[\\'])|(?P<plain>[^'\\]+|\\)"""),
    '"': re.compile(r"""(?P<end>")|\\(?P<kept>[$"\\])|(?P<plain>[^"\\]+|\\)"""),
}


@value
class Word:
    """A word of the line: as typed, as the program would get it, and the quote still open at its end."""

    raw: str = ""
    text: str = ""
    quote: str = ""


def words(line: str, grammar: Grammar) -> list[Word]:
    """Return the words of a line; the last is the one being typed, empty after a blank."""
    typed: list[Word] = []
    raw, text, quote, at = "", b"", "", 0
    while at < len(line):
        part = grammar[quote].match(line, at)
        assert part is not None and part.lastgroup is not None
        kind, got, at = part.lastgroup, part[part.lastgroup], part.end()
        if kind == "blank":
            typed += [Word(raw, text.decode("utf-8", "surrogateescape"))] if raw else []
            raw, text = "", b""
            continue
        raw += part[0]
        if kind in ("quote", "quoted"):
            quote = got
        elif kind == "end":
            quote = ""
        else:
            text += _unescaped(got) if kind == "escape" else got.encode("utf-8", "surrogateescape")
    return [*typed, Word(raw, text.decode("utf-8", "surrogateescape"), quote)]


def _unescaped(escape: str) -> bytes:
    """Return what an escape without its backslash means in $'…', and outside of quotes in fish."""
    if escape[:1] in ("u", "U") and len(escape) > 1:
        return chr(min(int(escape[1:], 16), 0x10FFFF)).encode("utf-8", "surrogatepass")
    if escape[:1] == "x" and len(escape) > 1:
        return bytes([int(escape[1:], 16)])
    if escape.isdecimal():
        return bytes([int(escape, 8) & 0xFF])
    return bytes([_LETTERS[escape]]) if escape in _LETTERS else escape.encode("utf-8", "surrogateescape")


_SPECIAL = {
    "": re.compile(r"[^\w.,/+%@:=-]"),
    "'": re.compile("'"),
    '"': re.compile(r'[$"\\!]'),
    "$'": re.compile(r"['\\!]"),
}
"""What does not stand for itself, by the open quote. The ! is history's, even in double quotes."""


def inserted(text: str, quote: str) -> str:
    """Return `text` as bash reads it back where this quote is open, and closed at its end if one is."""
    body = "".join(_quoted(character, quote, text[at + 1 :]) for at, character in enumerate(text))
    return body + quote[-1:]


def _quoted(character: str, quote: str, rest: str) -> str:
    """Return one character where this quote is open."""
    # Behind a backtick, and a word that ends in a separator, bash completes nothing more, quoted or not.
    if not character.isprintable() or character == "`" or (not rest and character in ";|&({"):
        encoded = "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
        return encoded if quote == "$'" else f"{quote}$'{encoded}'{quote}"
    if not _SPECIAL[quote].match(character):
        return character
    if quote == "'":
        return "'\\''"
    if character == "!" and quote:
        return "\\x21" if quote == "$'" else "\"'!'\""
    return "\\" + character
