"""The common part of commands that change committed offsets: options, asking, executing, showing."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.models import SHARE, ChangeStatus, ItemError
from kgroup.cli.declaring import option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import begin_waiting, identity
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.frame.changes import Consent, undo_of_offsets, with_undo
from kgroup.cli.output.bars import bar
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.wording import of_seen
from kgroup.domain import TopicPartition, count_of, first_of

if TYPE_CHECKING:
    from kgroup.admin.change.offset_plans import CommittedOffset, OffsetsPlan
    from kgroup.admin.discovery import ClusterView

WaitEmpty = Annotated[bool, option("--wait-empty", "Before --execute, wait until the groups are empty.")]
Topics = Annotated[
    list[str] | None, option("--topic T[:0,2-5]", "Only this topic, or these partitions; repeatable.")
]

Share = Annotated[bool, option("--share", "A group that does not exist becomes a share group.")]
Create = Annotated[bool, option("--create", "Make a group that does not exist, by giving it offsets.")]


MANY = 20
"""Groups from which their change takes long enough for a bar."""


def run(
    env: Env,
    admin: "ClusterView",
    make_plan: Callable[[], "OffsetsPlan"],
    consent: Consent,
    *,
    before: Callable[[], Sequence[str]] = tuple,
    unseen: Sequence[ItemError] = (),
) -> ExitCode:
    """Show the plan, or with consent execute it and show the outcome per committed offset.

    `unseen` says what the plan may lack, groups or offsets. `before` prepares an execution and reports what
    it did; the plan is made after it, because members commit when they close.
    """
    from kgroup.admin.change.offset_changes import execute_offsets
    from kgroup.cli.views.offsets import executed, planned

    csv = env.output.format == "csv"
    where = identity(admin, env)
    notes = before() if consent.execute else ()
    plan = make_plan()
    count = sum(item.planned for item in plan.items)
    shown = _with_unseen(planned(plan, where, csv=csv), unseen)
    if not consent.execute or not any(i.planned or i.result == ChangeStatus.UNCHANGED for i in plan.items):
        return show(env, shown)
    names = ", ".join(dict.fromkeys(item.group_id for item in plan.items))
    if count:
        question = f"{plan.spec}: change {count_of(count, 'committed offset')} of {names}?"
        consent.ask(env, shown, question, grave=_grave(plan))
    with bar(env, "groups", len(plan.groups), least=MANY) as progress:
        done = execute_offsets(admin, plan, progress)
    result = _with_unseen(executed(done, where, csv=csv, notes=notes), unseen)
    if done.journal_id:
        result = with_undo(result, undo_of_offsets(env, admin, done.journal_id))
    return show(env, result)


def _grave(plan: "OffsetsPlan") -> str | None:
    """Return why no undo restores what a plan changes, if so."""
    from kgroup.admin.change.offset_plans import ABSENT

    forgotten = [
        group.group_id
        for group in plan.groups
        if group.type == SHARE and group.state != ABSENT and group.caution and group.done_beyond != 0
    ]
    if forgotten:
        return f"no undo restores which records {first_of(forgotten, 3)} acknowledged"
    lasting = [str(item.tp) for item in plan.items if item.planned and item.lasting]
    return f"the change of {first_of(lasting, 3)} cannot be undone" if lasting else None


def unseen_of(admin: "ClusterView", groups: Iterable[str]) -> Sequence[ItemError]:
    """Return why groups may have more offsets than visible: rights, or unreadable start offsets."""
    from kgroup.admin.change.offset_plans import look

    return [sight.unseen for sight in look(admin, groups).values() if sight.unseen]


def _with_unseen(result: Result, unseen: Sequence[ItemError]) -> Result:
    errors = [*result.errors, *unseen]
    return replace(result, errors=errors, exit_code=of_seen(result.exit_code, unseen))


def import_plan(
    admin: "ClusterView",
    offsets: "Mapping[str, Mapping[TopicPartition, CommittedOffset]]",
    spec: str,
    reason: str | None,
    share: Collection[str] = (),
    typed: Collection[str] = (),
    cluster_id: str | None = None,
) -> "OffsetsPlan":
    """Return the plan that sets exactly these offsets of groups and keeps their others.

    Offsets of partitions that do not exist are failed items of it; absent groups in `share` become share
    groups, and absent ones in `typed` stay absent. `cluster_id` is that of the cluster they are from.
    """
    from kgroup.admin.change.offset_plans import Purpose, hints_for_absent, imported, look, make_plan

    now = look(admin, offsets, share)
    hints = hints_for_absent(admin, now, typed)
    drafts = {**imported(admin, offsets, cluster_id), **{name: {} for name in hints}}
    return make_plan(Purpose("offsets import", spec, reason), now, drafts, hints)


def once_empty(env: Env, admin: "ClusterView", groups: Sequence[str]) -> Callable[[], Sequence[str]]:
    """Return a function that waits until none of these groups has members; it reports nothing."""

    def wait() -> Sequence[str]:
        if groups:
            wait_until_empty(env, admin, groups)
        return ()

    return wait


def wait_until_empty(env: Env, admin: "ClusterView", groups: Sequence[str]) -> None:
    """Wait until no group has members; raise Failure (timed out) that names those that have."""
    from kgroup.admin.read.conditions import Condition, raised, wait_for

    timeout_s = begin_waiting(env)
    env.note(f"waiting up to {timeout_s:g} s for {', '.join(groups)} to be empty")
    ended, _ = wait_for(admin, groups, Condition("empty"), timeout_s, note=env.note)
    for waited in ended:
        if waited.unseen:
            raise raised(waited.unseen)
        if not waited.held:
            count = "members unknown" if waited.members is None else count_of(waited.members, "member")
            raise Failure(
                ExitCode.UNREACHABLE,
                "TIMED_OUT",
                f"{waited.group_id} is still {waited.state} ({count}) after {timeout_s:g} s",
                "stop its members, or give them longer with --timeout",
                waited.group_id,
            )
    env.limit.begin_again()
