"""Java properties files as Kafka's own tools read them."""

import re
from pathlib import Path

from kgroup.text_files import read_text

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE = re.compile(r"(?P<key>(?:\\.|[^\\\s=:])*)[ \t\f]*[=:]?[ \t\f]*(?P<value>.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


def parse_properties(text: str) -> dict[str, str]:
    """Return the pairs of a text by java.util.Properties' rules (comments, escapes, continuation)."""
    result: dict[str, str] = {}
    for line in _logical_lines(text):
        match = _LINE.fullmatch(line)
        assert match is not None
        result[_unescape(match["key"])] = _unescape(match["value"])
    return result


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending = ""
    for raw in re.split(r"\r\n|\r|\n", text):
        line = raw.lstrip(" \t\f")
        if not pending and (not line or line[0] in "#!"):
            continue
        line = pending + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending = line[:-1]
            continue
        lines.append(line)
        pending = ""
    return [*lines, pending] if pending else lines


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        token = match[1]
        return chr(int(token[1:], 16)) if len(token) == 5 else _ESCAPES.get(token, token)

    return _ESCAPED.sub(replace, text)


def read_command_config(path: Path) -> dict[str, str]:
    """Return a `--command-config` file's settings by name; raise ConfigError when it is unreadable."""
    return parse_properties(read_text(path, f"the command config {path}"))
