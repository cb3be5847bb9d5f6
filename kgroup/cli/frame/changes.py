"""The common part of commands that change something: options, asking, the command that undoes it."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from kgroup.admin import shell
from kgroup.cli.declaring import option
from kgroup.cli.env.escaping import clean
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.output.messages import print_error
from kgroup.cli.output.result import Result, print_blocks
from kgroup.domain import first_of
from kgroup.errors import KgroupError, SafetyRefused

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView

Execute = Annotated[
    bool,
    option(
        "--execute",
        "Make the change; a terminal asks before it.",
    ),
]
Yes = Annotated[bool, option("--yes", "Do not ask; scripts need it where there is no undo.")]
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

    def ask(self, env: Env, plan: Result, question: str, *, grave: str | None = None) -> None:
        """Show the plan and ask on a terminal; raise Failure (refused) unless the answer is yes.

        Without a terminal --execute is the consent, unless the change is `grave`, for the reason given: then
        only --yes is. Plan and question go to stderr.
        """
        terminal = sys.stdin.isatty()
        if self.yes or not (terminal or grave):
            return
        if not terminal:
            raise _not_confirmed(
                f"cannot ask: stdin is not a terminal, and {grave}; nothing changed",
                "--yes confirms it; without --execute the plan is shown",
            )
        if not sys.stderr.isatty():
            raise _not_confirmed(
                "cannot ask: stderr is not the terminal; nothing changed",
                "add --yes, or leave stderr on the terminal",
            )
        # stdout may be a file for the document: its columns and colours are not the terminal's.
        output = replace(
            env.output, columns=None, terminal=True, color=env.output.color and env.output.terminal
        )
        with redirect_stdout(sys.stderr):
            print_blocks(replace(env, output=output), [*env.head(), *replace(plan, remark="").shown], None)
        for error in plan.errors:
            print_error(error.message, error.hint)
        print(f"{clean(question)} [y/N] ", end="", file=sys.stderr, flush=True)
        answer = sys.stdin.readline().strip().lower()
        env.limit.begin_again()
        if answer not in ("y", "yes"):
            raise _not_confirmed("not confirmed, nothing changed")


def _not_confirmed(message: str, hint: str | None = None) -> Failure:
    return Failure(ExitCode.REFUSED, "NOT_CONFIRMED", message, hint)


def with_undo(result: Result, *lines: str) -> Result:
    """Return the outcome of a change with how to undo it."""
    return replace(result, ways_back=(*result.ways_back, *lines))


def undo_line(env: Env, verb: str, *names: str, options: Sequence[str] = ()) -> str:
    """Return the command that undoes a change, on the cluster this command was given."""
    return "undo: " + shell.command(verb, *names, options=" ".join([*options, *env.target_words()]))


def undo_of_offsets(env: Env, admin: "ClusterView", entry_id: str) -> str:
    """Return how to undo a journalled change of committed offsets, and when that will work if not now."""
    from kgroup.admin.change.undo import changed_groups, plan_undo

    groups = changed_groups(admin.journal, entry_id)
    if not groups:
        return "undo: none, no committed offset was changed"
    # A name that is a pattern would be read as one; the whole entry is meant anyway.
    named = groups if len(groups) == 1 and not set("*?[") & set(groups[0]) else ()
    line = undo_line(env, "reset-offsets", *named, options=("--undo", entry_id))
    try:
        plan = plan_undo(admin, entry_id)
    except SafetyRefused as error:
        return f"undo: none, {error.message}"
    except KgroupError as error:
        return line.replace("undo:", f"undo, not checked now ({error.message}):", 1)
    failing = [item for item in plan.items if item.error_code]
    if failing:
        why = f"{failing[0].effect or failing[0].error_code}"
        return line.replace("undo:", f"undo, except {first_of([i.tp for i in failing], 3)} ({why}):", 1)
    busy = first_of([group.group_id for group in plan.refused], 3)
    return line.replace("undo:", f"undo, once no member is left in {busy}:", 1) if busy else line


def undo_of_settings(env: Env, group: str, own_before: Mapping[str, str | None]) -> str:
    """Return how to restore a group's own settings; None for the broker's value."""
    pairs = [f"{name}={value}" for name, value in own_before.items() if value is not None]
    unset = [f"--unset {shell.word(name)}" for name, value in own_before.items() if value is None]
    return undo_line(env, "config set", group, *pairs, options=unset)
