"""What every command that changes something does alike: its options, asking, keeping plans in files."""

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from kgroup import shell
from kgroup.cli.env.invocation import Env
from kgroup.cli.escaping import clean
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.domain import Document
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.admin.change.journal import Journal
    from kgroup.cli.output.result import Result

Execute = Annotated[
    bool,
    typer.Option(
        "--execute",
        help="Make the change; without this nothing changes. A terminal shows the plan and asks first; "
        "without a terminal this is the consent.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask on a terminal.")]
Reason = Annotated[
    str | None,
    typer.Option(
        "--reason",
        metavar="TEXT",
        help="Why; kept in the journal and, shortened, in what brokers store (commits, LeaveGroup).",
    ),
]
NOT_YET = "Nothing changed. Add --execute."
"""How the text of a plan ends when it was only asked for."""
Plan = TypeVar("Plan")


@dataclass(frozen=True, slots=True)
class Consent:
    """Whether the user wants the change made, and whether to ask once more on a terminal."""

    execute: bool
    yes: bool

    def ask(self, env: Env, plan: "Result", question: str) -> None:
        """Show the plan and ask on a terminal; Failure (refused) unless the answer is yes.

        Without a terminal --execute is the consent. Plan and question go to stderr.
        """
        if self.yes or not sys.stdin.isatty():
            return
        if not sys.stderr.isatty():
            hint = "add --yes, or leave stderr on the terminal"
            raise Failure(
                ExitCode.REFUSED,
                "NOT_CONFIRMED",
                "cannot ask: stderr is not the terminal; nothing changed",
                hint,
            )
        _show_plan(env, plan)
        print(f"{clean(question)} [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Failure(ExitCode.REFUSED, "NOT_CONFIRMED", "not confirmed, nothing changed")


def _show_plan(env: Env, plan: "Result") -> None:
    from contextlib import redirect_stdout
    from dataclasses import replace

    from kgroup.cli.output.messages import print_error
    from kgroup.cli.output.result import print_blocks

    blocks = [b.replace(NOT_YET, "").rstrip() if isinstance(b, str) else b for b in plan.blocks]
    # stdout may be a file that takes the document: its columns and colours are not the terminal's.
    output = replace(env.output, columns=None, terminal=True, color=env.output.color and env.output.terminal)
    with redirect_stdout(sys.stderr):
        print_blocks(replace(env, output=output), blocks, None)
    for error in plan.errors:
        print_error(error.message, error.hint)


def with_undo(result: "Result", line: str) -> "Result":
    """The outcome of a change, and below it how to take it back."""
    from dataclasses import replace

    return replace(result, blocks=(*result.blocks, line))


def undo_line(env: Env, verb: str, *names: str, options: Sequence[str] = ()) -> str:
    """The command that takes a change back, on the cluster this command was given."""
    return "undo: " + shell.command(verb, *names, options=" ".join([*options, *env.target_words()]))


def undo_of_offsets(env: Env, journal: "Journal", entry_id: str) -> str:
    """How to take back a journalled change of committed offsets."""
    from kgroup.admin.change.undo import changed_groups

    groups = changed_groups(journal, entry_id)
    if not groups:
        return "undo: nothing to take back, no committed offset was changed"
    # A name that is a pattern would be taken for one; the whole entry is meant anyway.
    named = groups if len(groups) == 1 and not set("*?[") & set(groups[0]) else ()
    return undo_line(env, "reset-offsets", *named, options=("--undo", entry_id))


def undo_of_settings(env: Env, group: str, own_before: Mapping[str, str | None]) -> str:
    """How to give settings of a group back what it had of its own; None for the broker's value."""
    pairs = [f"{name}={value}" for name, value in own_before.items() if value is not None]
    unset = [f"--unset {shell.word(name)}" for name, value in own_before.items() if value is None]
    return undo_line(env, "config set", group, *pairs, options=unset)


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


def write_text(name: str, text: str, *, new: bool = False) -> None:
    """Write a file for its owner's eyes only; ConfigError when it cannot be, or is there and must be `new`.

    Plans and exports name groups and hosts, which are nobody else's business; the journal is kept alike.
    """
    flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if new else os.O_TRUNC)
    try:
        descriptor = os.open(Path(name).expanduser(), flags, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ConfigError(
            f"{name} exists, and may be all that is left of other offsets", "name another file"
        ) from None
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
