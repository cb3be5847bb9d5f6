"""The common part of commands that change something: options, asking, the command that undoes it."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from kgroup.admin import shell
from kgroup.cli.env.escaping import clean
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.frame.declaring import option
from kgroup.cli.output.messages import NOT_YET, print_error
from kgroup.cli.output.result import Result, print_blocks

if TYPE_CHECKING:
    from kgroup.admin.change.journal import Journal

Execute = Annotated[
    bool,
    option(
        "--execute",
        "Make the change; only a terminal asks before it.",
    ),
]
Yes = Annotated[bool, option("--yes", "Do not ask on a terminal.")]
Reason = Annotated[
    str | None,
    option(
        "--reason TEXT",
        "Why; kept in the journal and, shortened, by brokers.",
    ),
]


@dataclass(frozen=True, slots=True)
class Consent:
    """The user's consent to the change, and whether to ask again on a terminal."""

    execute: bool
    yes: bool

    def ask(self, env: Env, plan: Result, question: str) -> None:
        """Show the plan and ask on a terminal; raise Failure (refused) unless the answer is yes.

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
        blocks = [b.replace(NOT_YET, "").rstrip() if isinstance(b, str) else b for b in plan.blocks]
        # stdout may be a file for the document: its columns and colours are not the terminal's.
        output = replace(
            env.output, columns=None, terminal=True, color=env.output.color and env.output.terminal
        )
        with redirect_stdout(sys.stderr):
            print_blocks(replace(env, output=output), [*env.head(), *blocks], None)
        for error in plan.errors:
            print_error(error.message, error.hint)
        print(f"{clean(question)} [y/N] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Failure(ExitCode.REFUSED, "NOT_CONFIRMED", "not confirmed, nothing changed")


def with_undo(result: Result, line: str) -> Result:
    """Return the outcome of a change, and below it how to undo it."""
    return replace(result, blocks=(*result.blocks, line))


def undo_line(env: Env, verb: str, *names: str, options: Sequence[str] = ()) -> str:
    """Return the command that undoes a change, on the cluster this command was given."""
    return "undo: " + shell.command(verb, *names, options=" ".join([*options, *env.target_words()]))


def undo_of_offsets(env: Env, journal: "Journal", entry_id: str) -> str:
    """Return how to undo a journalled change of committed offsets."""
    from kgroup.admin.change.undo import changed_groups

    groups = changed_groups(journal, entry_id)
    if not groups:
        return "undo: none, no committed offset was changed"
    # A name that is a pattern would be read as one; the whole entry is meant anyway.
    named = groups if len(groups) == 1 and not set("*?[") & set(groups[0]) else ()
    return undo_line(env, "reset-offsets", *named, options=("--undo", entry_id))


def undo_of_settings(env: Env, group: str, own_before: Mapping[str, str | None]) -> str:
    """Return how to restore a group's own settings; None for the broker's value."""
    pairs = [f"{name}={value}" for name, value in own_before.items() if value is not None]
    unset = [f"--unset {shell.word(name)}" for name, value in own_before.items() if value is None]
    return undo_line(env, "config set", group, *pairs, options=unset)
