"""Terminals and pipes whose encoding has no `·`: what cannot be written is written another way."""

import codecs
import io
import sys

_SIGNS = {"·": "-", "…": "...", "→": "->", "└": "`", "█": "#", "░": "."}


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """The characters as ASCII: signs of ours by what they look like, others as JSON escapes them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    taken = error.object[error.start : error.end]
    return "".join(_SIGNS.get(c) or _escape(c) for c in taken), error.end


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def widen() -> None:
    """Let no output fail for its encoding, and read stdin as UTF-8, as files are."""
    codecs.register_error("kgroup", _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="kgroup")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8")
