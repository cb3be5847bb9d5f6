"""Text files and plans that commands read and write."""

import io
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from kgroup.domain import Document
from kgroup.errors import ConfigError

Plan = TypeVar("Plan")


def read_text(name: str) -> str:
    """Return the text of a file, or of stdin for `-`; raise ConfigError when it cannot be read."""
    try:
        if name == "-":
            return sys.stdin.read().removeprefix("\ufeff")
        # utf-8-sig: some editors write a byte order mark first, which belongs to no name.
        return Path(name).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"cannot read {name}: {reason}") from None


def read_log(name: str, most: int) -> str:
    """Return a log in a file (`-`: stdin), with other bytes than UTF-8 escaped; raise ConfigError if long."""
    try:
        if name == "-":
            if isinstance(sys.stdin, io.TextIOWrapper):
                sys.stdin.reconfigure(errors="backslashreplace")
            text = sys.stdin.read(most + 1)
        else:
            with Path(name).expanduser().open(encoding="utf-8", errors="backslashreplace") as file:
                text = file.read(most + 1)
    except OSError as error:
        raise ConfigError(f"cannot read {name}: {error.strerror}") from None
    if len(text) > most:
        raise ConfigError(f"{name} is longer than {most} characters", "pass the part in question: tail, grep")
    return text


def write_text(name: str, text: str, *, new: bool = False) -> None:
    """Write a file that only its owner may read; raise ConfigError if impossible or it must be `new`.

    Plans and exports name groups and hosts; the journal is protected alike.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if new else os.O_TRUNC)
    try:
        descriptor = os.open(Path(name).expanduser(), flags, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(
            f"{name} exists, and may be the only copy of other offsets", "name another file"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot write {name}: {error.strerror}") from None


def write_plan(name: str, document: Mapping[str, object]) -> None:
    """Write a plan's document, which `read_plan` reads back, on another machine too."""
    write_text(name, json.dumps(document, indent=2) + "\n")


def read_plan(name: str, plan_from: Callable[[Document], Plan]) -> Plan:
    """Return the plan in a file (`-`: stdin) as `plan_from` makes it; raise ConfigError if it is not one."""
    try:
        document = json.loads(read_text(name))
    except ValueError:
        raise ConfigError(f"{name} is not a plan: it is not JSON", "write one with --plan-out") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{name} is not a plan", "write one with --plan-out")
    return plan_from(document)
