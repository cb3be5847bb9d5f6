"""Pages of HTML that need no network, a template with the data in it; files that name groups and hosts."""

import json
import os
from pathlib import Path

from kgroup.cli.env.escaping import clean
from kgroup.domain import Document
from kgroup.errors import StorageError


def filled(template: Path, data: Document) -> str:
    """Return the template with `data` as JSON in the place of @DATA@."""
    # Inside a script element "</script" and "<!--" mean something, in any string.
    text = json.dumps(_cleaned(data), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return template.read_text(encoding="utf-8").replace("@DATA@", text)


def _cleaned(data: object) -> object:
    """Return the data with the control characters of its texts escaped, as a terminal shows them."""
    if isinstance(data, str):
        return clean(data)
    if isinstance(data, dict):
        return {_cleaned(key): _cleaned(value) for key, value in data.items()}
    return [_cleaned(item) for item in data] if isinstance(data, list | tuple) else data


def write_page(path: Path, page: str) -> None:
    """Write a page without control characters; raise StorageError where that is not possible."""
    write_file(path, "\n".join(clean(line) for line in page.split("\n")))


def write_file(path: Path, text: str, *, new: bool = False) -> None:
    """Write a file that only its owner may read, as it names groups and hosts.

    Raise StorageError where that is not possible, and if it must be `new` for a file that exists.
    """
    guard = os.O_EXCL if new and (path.is_file() or not path.exists()) else os.O_TRUNC
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | guard, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise StorageError(f"{path} is there already", "name another file, or remove it") from None
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}") from None
