"""What every command that changes something does alike: its options, asking, keeping plans in files."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from kgroup.cli.escaping import clean
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.domain import Document
from kgroup.errors import ConfigError

Execute = Annotated[bool, typer.Option("--execute", help="Make the change; without this nothing changes.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")]
Reason = Annotated[
    str | None,
    typer.Option(
        "--reason",
        metavar="TEXT",
        help="Why; kept in the journal and, shortened, in what brokers store (commits, LeaveGroup).",
    ),
]
Plan = TypeVar("Plan")


@dataclass(frozen=True, slots=True)
class Consent:
    """Whether the user wants the change made, and whether to ask once more on a terminal."""

    execute: bool
    yes: bool

    def ask(self, question: str) -> None:
        """Ask on a terminal; Failure (refused) unless the answer is yes. Never asks where nobody answers."""
        if self.yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
            return
        print(f"{clean(question)} [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Failure(ExitCode.REFUSED, "NOT_CONFIRMED", "not confirmed, nothing changed")


def read_text(name: str) -> str:
    """The text of a file, or of stdin for `-`; ConfigError when it cannot be read."""
    if name == "-":
        return sys.stdin.read().removeprefix("\ufeff")
    try:
        # utf-8-sig: some editors put a byte order mark in front, which belongs to no name.
        return Path(name).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"cannot read {name}: {reason}") from None


def write_text(name: str, text: str) -> None:
    """Write a file, a new one for its owner's eyes only; ConfigError when it cannot be written.

    Plans and exports name groups and hosts, which are nobody else's business; the journal is kept alike.
    """
    try:
        descriptor = os.open(Path(name).expanduser(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigError(f"cannot write {name}: {error.strerror}") from None


def write_plan(name: str, document: Mapping[str, object]) -> None:
    """Write a plan's document, which `read_plan` reads back, on another machine too."""
    write_text(name, json.dumps(document, indent=2) + "\n")


def read_plan(name: str, plan_from: Callable[[Document], Plan]) -> Plan:
    """The plan in a file, `-` for stdin, as `plan_from` makes it; ConfigError when it is not one."""
    try:
        document = json.loads(read_text(name))
    except ValueError:
        raise ConfigError(f"{name} is not a plan: it is not JSON", "write one with --plan-out") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{name} is not a plan", "write one with --plan-out")
    return plan_from(document)
