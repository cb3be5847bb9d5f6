"""`kgroup reset-offsets`: move a group's committed offsets by plan, with an undo."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.journal import LAST
from kgroup.admin.models import ChangeStatus
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.frame.changes import Consent, Execute, Reason, Yes
from kgroup.cli.frame.offset_changes import (
    Create,
    Share,
    Topics,
    WaitEmpty,
    run,
    unseen_of,
    wait_until_empty,
)
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.files import read_plan, read_text, write_plan
from kgroup.cli.inputs.group_names import Named, expand, matches
from kgroup.cli.inputs.offset_files import parse_csv
from kgroup.cli.inputs.reset_specs import only_one, scope_of, time_ago_ms
from kgroup.cli.output.times import parse_time
from kgroup.domain import count_of
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.admin.change.offset_plans import OffsetsPlan
    from kgroup.admin.change.reset import Spec
    from kgroup.admin.discovery import ClusterView

_AGO, _UNDO, _PLAN = "--by-duration", "--undo", "--plan"
"""The options that no kind of a reset (admin/change/reset.py) is named like."""
_where_to = partial(option, rich_help_panel="Where to")


@make(
    "reset-offsets",
    examples=(
        ("kgroup reset-offsets orders --topic orders --to-earliest", "show the plan, change nothing"),
        ("kgroup reset-offsets orders --all-topics --by-duration PT2H --execute", "two hours back"),
        ("kgroup reset-offsets 'pay*' --topic pay:0 --shift-by -9 -o csv --no-headers", "as Kafka's CSV"),
        (
            "kgroup reset-offsets pay --from-file p.csv --wait-empty --timeout 5m --execute",
            "once its members stop",
        ),
        ("kgroup reset-offsets new --topic orders --to-latest --create --execute", "before a group begins"),
        ("kgroup reset-offsets --undo LAST --execute", "back to what was before the last change"),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str] | None, argument("[GROUP]…", "Group ids or globs.")] = None,
    to_earliest: Annotated[bool, _where_to("--to-earliest", "The start of the log.")] = False,
    to_latest: Annotated[bool, _where_to("--to-latest", "The end of the log.")] = False,
    to_current: Annotated[
        bool, _where_to("--to-current", "Where it is now; its retention restarts.")
    ] = False,
    to_offset: Annotated[int | None, _where_to("--to-offset N", "This offset, within the log.")] = None,
    shift_by: Annotated[
        int | None, _where_to("--shift-by N", "This many records forward, or back if negative.")
    ] = None,
    by_duration: Annotated[
        str | None,
        _where_to("--by-duration DURATION", "The first record of this long ago."),
    ] = None,
    to_datetime: Annotated[
        str | None,
        _where_to("--to-datetime TIME", "The first record from this time on; UTC by default."),
    ] = None,
    from_file: Annotated[
        str | None, _where_to("--from-file FILE", "CSV of [group,]topic,partition,offset; - is stdin.")
    ] = None,
    to_group: Annotated[str | None, _where_to("--to-group GROUP", "Where this other group is.")] = None,
    undo: Annotated[
        str | None, _where_to("--undo LAST|ID", "What was there before this journal entry.")
    ] = None,
    topic: Topics = None,
    all_topics: Annotated[bool, option("--all-topics", "Every partition the group has committed.")] = False,
    execute: Execute = False,
    yes: Yes = False,
    reason: Reason = None,
    wait_empty: WaitEmpty = False,
    remove_static: Annotated[
        bool, option("--remove-static", "With --execute, first remove the static members.")
    ] = False,
    plan_out: Annotated[str | None, option("--plan-out FILE", "Write the plan to a file.")] = None,
    plan_in: Annotated[
        str | None, option("--plan FILE", "Execute this plan; refused if offsets moved.")
    ] = None,
    share: Share = False,
    create: Create = False,
    groups: Annotated[list[str] | None, option("--group", "As GROUP.", hidden=True)] = None,
    dry_run: Annotated[bool, option("--dry-run", "The default.", hidden=True)] = False,
) -> ExitCode:
    """Move the committed offsets of groups; without --execute only the plan.

    Refused (exit code 4) while a group has members; one that does not exist needs --create. --undo restores
    what was there before.
    """
    from kgroup.admin.change.offset_plans import plan_document
    from kgroup.admin.change.reset import plan_reset

    if dry_run and execute:
        raise ConfigError("--dry-run and --execute exclude each other")
    options = {
        "--to-earliest": to_earliest,
        "--to-latest": to_latest,
        "--to-current": to_current,
        "--to-offset": to_offset,
        "--shift-by": shift_by,
        _AGO: by_duration,
        "--to-datetime": to_datetime,
        "--from-file": from_file,
        "--to-group": to_group,
        _UNDO: undo,
        _PLAN: plan_in,
    }
    kind = only_one(options)
    scope = scope_of(topic, all_topics)
    with open_admin(env) as admin:
        typed = [*(group or ()), *(groups or ())]
        matched = expand(admin, typed, change=True) if kind != _UNDO else _of_entry(admin, str(undo), typed)
        named = list(matched.groups)
        unseen = list(matched.unseen)
        if kind in (_UNDO, _PLAN):
            if scope.topics or scope.all_topics or reason is not None:
                raise ConfigError(f"{kind} says which offsets and why", "leave the other options out")
            plan = _stored(admin, kind, str(options[kind]), named)
            affected = [planned.group_id for planned in plan().groups]
        else:
            spec = _spec(kind, options[kind], named)
            affected = named or list(spec.rows)
            _check_scope(spec, affected, bool(scope.topics or scope.all_topics))
            shared = affected if share else ()
            plan = partial(plan_reset, admin, affected, spec, scope, reason, shared, create)
            if scope.all_topics or (spec.group and not scope.topics):
                unseen += unseen_of(admin, [spec.group] if spec.group else affected)

        def before() -> Sequence[str]:
            notes = _remove_static(env, admin, affected, reason, consent) if remove_static else ()
            if wait_empty or remove_static:
                wait_until_empty(env, admin, affected)
            return notes

        def kept() -> "OffsetsPlan":
            """Return the plan, written to a file where one is named."""
            made = plan()
            if (undo or "").upper() == LAST:
                env.note(f"LAST: {made.spec}")
            if plan_out:
                write_plan(plan_out, plan_document(made))
            return made

        consent = Consent(execute, yes)
        return run(env, admin, kept, consent, before=before, unseen=unseen)


def _stored(admin: "ClusterView", kind: str, value: str, groups: list[str]) -> "Callable[[], OffsetsPlan]":
    """Return an existing plan, from a file or as the before-image of a journal entry."""
    from kgroup.admin.change.offset_plans import plan_from
    from kgroup.admin.change.undo import plan_undo

    if kind == _UNDO:
        return lambda: plan_undo(admin, value, groups)
    plan = read_plan(value, plan_from)
    if groups and set(groups) != {known.group_id for known in plan.groups}:
        raise ConfigError("the plan is for other groups", "leave GROUP out")
    return lambda: plan


def _of_entry(admin: "ClusterView", entry_id: str, typed: Sequence[str]) -> Named:
    """Return the groups of a journal entry that are meant; they need not exist any more."""
    from kgroup.admin.change.undo import groups_of

    entry = admin.journal.find(entry_id)
    if entry is None and entry_id.upper() != LAST:
        hint = "kgroup journal list shows the entries"
        raise Failure(ExitCode.NOT_FOUND, "NOT_IN_JOURNAL", f"the journal has no entry {entry_id!r}", hint)
    known = sorted(groups_of(entry)) if entry else []
    # A name that none of them has stays, for the refusal to name it.
    meant = [[group for group in known if matches(name, group)] or [name] for name in typed]
    return Named(tuple(dict.fromkeys(group for groups in meant for group in groups)))


def _spec(option: str, value: object, groups: Sequence[str]) -> "Spec":
    from kgroup.admin.change import reset

    text, to = str(value), option.removeprefix("--")
    if option == _AGO:
        return reset.Spec(reset.TO_TIME, time_ago_ms(text, option))
    if to == reset.TO_TIME:
        return reset.Spec(to, parse_time(text))
    if to == reset.FROM_FILE:
        return reset.Spec(to, rows=parse_csv(read_text(text), groups, text))
    if to == reset.TO_GROUP:
        return reset.Spec(to, group=text)
    return reset.Spec(to, value if type(value) is int else 0)


def _check_scope(spec: "Spec", groups: Sequence[str], scoped: bool) -> None:
    from kgroup.admin.change.reset import FROM_FILE, TO_GROUP

    if not groups:
        raise ConfigError("no group is named", "kgroup reset-offsets GROUP --topic T --to-earliest")
    if not scoped and spec.kind not in (FROM_FILE, TO_GROUP):
        raise ConfigError(
            "no option says which partitions are meant",
            "--all-topics for all committed, or --topic T[:0,2-5]",
        )


def _remove_static(
    env: Env, admin: "ClusterView", groups: Sequence[str], reason: str | None, consent: Consent
) -> Sequence[str]:
    """Remove every static member; one that still runs rejoins, and then the reset is refused."""
    from kgroup.admin.change.remove_members import Selection, execute_removal, plan_removal
    from kgroup.admin.read.describe import describe
    from kgroup.cli.commands.remove_members import GRAVE, planned

    said = []
    where = identity(admin, env)
    for described in describe(admin, groups, offsets=False).groups:
        static = tuple(member.instance_id for member in described.known_members if member.instance_id)
        if static:
            plan = plan_removal(admin, described.group_id, Selection(instance_ids=static), reason)
            question = f"remove {count_of(len(static), 'static member')} of {described.group_id}?"
            consent.ask(env, planned(plan, where), question, grave=GRAVE)
            done = execute_removal(admin, plan)
            removed = [str(item.instance_id) for item in done.items if item.result == ChangeStatus.REMOVED]
            said.append(f"{described.group_id}: removed {', '.join(removed)}   journal {done.journal_id}")
    return said
