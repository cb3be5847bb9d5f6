"""Writes the table of docs/json-output.md from the JSON Schemas: `python docs/json_output.py`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kgroup.cli.frame.lazy import walk
from kgroup.cli.schemas import commands, data_of

PAGE = Path(__file__).parent / "json-output.md"
HEADING = "## Commands\n"
INTRO = """
Written by `docs/json_output.py` from the schemas. `name?` may be null, `name[]` is a list.

| command | `data` |
|---|---|
"""
LONG = 200
"""An object that takes more characters than this gets a row of its own."""
NULL = {"type": "null"}


class Rows:
    """The rows of the table; an object that was described once is referred to afterwards."""

    def __init__(self) -> None:
        self._seen: dict[int, str] = {}
        self._apart: list[tuple[str, Any]] = []

    def of(self, command: str, data: Any) -> Iterator[str]:
        """The row of a command, and those of the long objects in it."""
        self._command = command
        kept = self._seen.get(id(data.get("properties")))
        yield f"| `{command}` | " + (f"as `{kept}`" if kept else self._fields(data)) + " |"
        while self._apart:
            name, nested = self._apart.pop(0)
            yield f"| | `{name}`: {self._fields(nested, new=False)} |"

    def _fields(self, schema: Any, *, new: bool = True) -> str:
        if "anyOf" in schema:
            return "; or ".join(self._fields(each) for each in schema["anyOf"])
        if new:
            self._seen.setdefault(id(schema["properties"]), self._command)
        return ", ".join(self._field(*pair) for pair in schema["properties"].items())

    def _field(self, name: str, schema: Any) -> str:
        about = schema.get("description")
        inner, some = _without_null(schema)
        name += "?" if some else ""
        while inner.get("type") == "array":
            inner, _ = _without_null(inner["items"])
            name += "[]"
            about = about or inner.get("description")
        about = about or inner.get("description")
        words = [", ".join(inner["enum"])] if "enum" in inner else []
        words += [about] if about else []
        text = f"`{name}`" + (f" ({'; '.join(words)})" if words else "")
        return text + self._nested(name, inner)

    def _nested(self, name: str, schema: Any) -> str:
        if "properties" not in schema:
            return ""
        kept = self._seen.get(id(schema["properties"]))
        if kept is not None and len(schema["properties"]) > 3:
            return f" {{as in `{kept}`}}" if kept != self._command else " {as above}"
        self._seen[id(schema["properties"])] = self._command
        if len(", ".join(schema["properties"])) > LONG or any(map(_is_large, schema["properties"].values())):
            self._apart.append((name, schema))
            return ""
        return f" {{{self._fields(schema)}}}"


def _is_large(schema: Any) -> bool:
    inner, _ = _without_null(schema)
    inner, _ = _without_null(inner.get("items", inner))
    return len(inner.get("properties", ())) > 3


def _without_null(schema: Any) -> tuple[Any, bool]:
    """The schema of what is not null, and whether null is allowed."""
    some: list[Mapping[str, Any]] = [each for each in schema.get("anyOf", ()) if each != NULL]
    if len(some) == 1:
        return some[0], True
    return schema, False


def document() -> str:
    """The whole page."""
    rows, known = Rows(), set(commands())
    paths = [command.path for command in walk() if command.path in known]
    table = [line for path in paths for line in rows.of(path, data_of(path))]
    return PAGE.read_text(encoding="utf-8").partition(HEADING)[0] + HEADING + INTRO + "\n".join(table) + "\n"


if __name__ == "__main__":
    PAGE.write_text(document(), encoding="utf-8")
