"""Pages of HTML that need no network: a template with the data in it."""

import json
from pathlib import Path

from kgroup.domain import Document
from kgroup.errors import StorageError


def filled(template: Path, data: Document) -> str:
    """Return the template with `data` as JSON in the place of @DATA@."""
    # Inside a script element "</script" and "<!--" mean something, in any string.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return template.read_text(encoding="utf-8").replace("@DATA@", text)


def write_page(path: Path, page: str) -> None:
    """Write a page; raise StorageError where that is not possible."""
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from None
