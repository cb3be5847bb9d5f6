"""Help and completion of names without the command tree, which takes five times as long to load.

What they say is in `texts/`, made by `make docs` of the tree itself; tests hold the two equal. What depends
on more than names (values, options given already, a terminal of another width) is left to the tree.
"""

import os
import sys
from collections.abc import Mapping, Sequence

FOLDER = os.path.join(os.path.dirname(__file__), "texts")
WIDTHS = (78, 98)
"""Those of help on what is no terminal, or one of 80 columns, and on a wide one."""
NOT_WORDS = frozenset("\"'\\=")


def answer(argv: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """What to print for a command line, or for a shell that completes one; None where the tree has to say."""
    asked = environ.get("_KGROUP_COMPLETE")
    if asked is not None:
        return _completion(environ) if asked == "complete_bash" else None
    if list(argv) in (["--help"], ["-h"]):
        width = max(min(_columns(environ), 100) - 2, 50)
        return _text(f"help-{width}.txt") if width in WIDTHS else None
    return None


def _completion(environ: Mapping[str, str]) -> str | None:
    """The names that begin as the last word typed does: of commands, and of options before any was given."""
    typed, at = environ.get("COMP_WORDS", ""), environ.get("COMP_CWORD", "")
    if not at.isdecimal() or NOT_WORDS.intersection(typed):
        return None
    words = typed.split()
    before, begun = words[1 : int(at)], "".join(words[int(at) : int(at) + 1])
    if any(word.startswith("-") for word in before):
        return None
    known = _names()
    path = list(before)
    while path and " ".join(path) not in known:
        path.pop()
    names, is_group = known.get(" ".join(path), ((), False))
    if is_group and len(path) < len(before) or is_group == begun.startswith("-"):
        return None
    return "\n".join(name for name in names if name.startswith(begun)) or None


def _names() -> dict[str, tuple[tuple[str, ...], bool]]:
    """The commands of each group, and the options of each command; True for a group."""
    found = {}
    for line in (_text("names.txt") or "").splitlines():
        path, kind, names = line.split("\t")
        found[path] = tuple(names.split()), kind == "commands"
    return found


def _columns(environ: Mapping[str, str]) -> int:
    """The width of the terminal, as shutil has it, which takes longer to load than all of this."""
    columns = environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):
        return 80


def _text(name: str) -> str | None:
    """A file that was made of the tree; None where it is missing."""
    try:
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            return file.read().removesuffix("\n")
    except OSError:
        return None
