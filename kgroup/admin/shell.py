"""Commands to paste into a shell: any name stays one word and nothing of it is run."""

from collections.abc import Iterable

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")


def word(text: str) -> str:
    """Return `text` as one word of bash or zsh: unchanged, in single quotes, or as $'…' if unprintable."""
    if text and _PLAIN.issuperset(text):
        return text
    if text.isprintable():
        return "'" + text.replace("'", "'\"'\"'") + "'"
    escaped = ""
    for character in text:
        if character in "'\\":
            escaped += "\\" + character
        elif character.isprintable():
            escaped += character
        else:
            escaped += "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))
    return f"$'{escaped}'"


def list_item(text: str) -> str:
    """Return `text` as one value of an option that takes comma lists (`items` reads it back)."""
    return word(text.replace(",", "\\,"))


def items(text: str) -> list[str]:
    """Return the values of a comma list without blank ones; `\\,` is a comma within a value."""
    parts = text.replace("\\,", "\0").split(",")
    return [value for part in parts if (value := part.replace("\0", ",").strip())]


def all_items(texts: Iterable[str] | None) -> tuple[str, ...]:
    """Return the values of several comma lists, each once."""
    return tuple(dict.fromkeys(value for text in texts or () for value in items(text)))


def command(verb: str, *names: str, options: str = "") -> str:
    """Return `kgroup VERB NAME… OPTIONS`, names quoted; after `--` when one begins with a dash.

    `options` are used unchanged: quote values in them with `word`.
    """
    words = [word(name) for name in names]
    if any(name.startswith("-") for name in names):
        return " ".join(["kgroup", verb, *([options] if options else []), "--", *words])
    return " ".join(["kgroup", verb, *words, *([options] if options else [])])
