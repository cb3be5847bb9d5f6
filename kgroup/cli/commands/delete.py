"""`kgroup delete`: groups with their committed offsets, exported first."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kgroup.admin import shell
from kgroup.admin.journal import Journal
from kgroup.admin.models import EMPTY, GroupResult
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.env.zookeeper import ZooKeeper, open_groups, refuse
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.frame.changes import Consent, Execute, Reason, Yes, undo_of_offsets, with_undo
from kgroup.cli.frame.offset_changes import WaitEmpty, import_plan, once_empty, run, wait_until_empty
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.files import read_text
from kgroup.cli.inputs.group_names import Named, every, expand
from kgroup.cli.inputs.offset_files import cluster_of, parse_offsets, share_groups
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.wording import of_code_name
from kgroup.domain import Document, count_of
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError, SafetyRefused

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView

_GRAVE = "groups would be deleted"


@make(
    "delete",
    examples=(
        ("kgroup delete old-group", "show what would go"),
        (
            "kgroup delete old-group --export old-group.json --execute --yes",
            "export its offsets, then delete it",
        ),
        (
            "kgroup delete 'test-*' --stale-for 7d --execute --yes",
            "groups that have written nothing for a week",
        ),
        ("kgroup delete --restore old-group.json --execute", "restore its offsets from the export"),
        (
            "kgroup delete old-group --zookeeper zk:2181/kafka --execute --yes",
            "from ZooKeeper, exported first",
        ),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str] | None, argument("[GROUP]…", "Group ids or globs.")] = None,
    stale_for: Annotated[
        str | None,
        option(
            "--stale-for DURATION", "Only empty groups that have committed nothing for at least this long."
        ),
    ] = None,
    export: Annotated[
        str | None, option("--export FILE", "New file for the offsets (default: in the state folder).")
    ] = None,
    incomplete: Annotated[
        bool,
        option("--incomplete-export", "Delete even if rights are missing and the export may lack offsets."),
    ] = False,
    restore: Annotated[str | None, option("--restore FILE", "Restore the groups of an export.")] = None,
    execute: Execute = False,
    yes: Yes = False,
    reason: Reason = None,
    wait_empty: WaitEmpty = False,
    zookeeper: ZooKeeper = None,
) -> ExitCode:
    """Delete empty groups and their committed offsets, group by group; changes nothing without --execute.

    The offsets are exported to a file first and kept in the journal, so `reset-offsets --undo` works too. For
    a share group these are its start offsets; the plan says what Kafka forgets beyond them.
    Refused if the export may lack offsets of topics that this principal may not see. A name with * ? [
    is a pattern; '[*]' is the group called *.
    """
    from kgroup.admin.change.delete import delete_groups, plan_deletion
    from kgroup.cli.views.deletion import deletion

    stale_s = parse_duration(stale_for) if stale_for is not None else None
    if restore is not None:
        if stale_for or export:
            raise ConfigError("--restore cannot be combined with --stale-for or --export")
        refuse(zookeeper, restore=(restore, "committed offsets go back into Kafka: leave --zookeeper out"))
        return _restore(env, restore, group or [], Consent(execute, yes), reason, wait_empty)
    refuse(zookeeper, wait_empty=(wait_empty, "retry once its consumers are stopped"))
    if not group and stale_s is None:
        raise ConfigError("no group is named", "kgroup delete GROUP, or --stale-for 7d")
    if export is not None and Path(export).expanduser().exists():
        raise ConfigError(
            f"{export} exists, and a deletion overwrites no export", "name another file with --export"
        )
    if zookeeper is not None:
        wanted_there = Deleting(group, stale_s, export, incomplete, Consent(execute, yes), reason)
        return show(env, delete(env, zookeeper, wanted_there))
    with open_admin(env) as admin:
        named = expand(admin, group or [], change=True)
        ages: dict[str, int | None] = {}
        if stale_s is not None:
            ages, named = _silent(env, admin, named if group else None, stale_s)
        names = list(named.groups)
        if execute and wait_empty:
            wait_until_empty(env, admin, names)
        where = identity(admin, env)
        planned, unsure = plan_deletion(admin, names)
        to_delete = [item.group_id for item in planned if item.planned]
        shown = deletion(planned, ages, where, None, None, [*named.unseen, *unsure])
        if not execute or not to_delete:
            return show(env, shown)
        question = f"delete {count_of(len(to_delete), 'group')} with their committed offsets?"
        Consent(execute, yes).ask(env, shown, question, grave=_GRAVE)
        file = _export(admin, to_delete, export, where, incomplete)
        env.note(f"committed offsets kept in {file}")
        done = delete_groups(admin, to_delete, reason)
        results = {item.group_id: item for item in done.items}
        items = [results.get(item.group_id, item) for item in planned]
        result = deletion(items, ages, where, done.journal_id, file, named.unseen)
        if done.journal_id:
            result = with_undo(result, undo_of_offsets(env, admin, done.journal_id))
    return show(env, result)


def _silent(
    env: Env, admin: "ClusterView", named: Named | None, stale_s: float
) -> tuple[dict[str, int | None], Named]:
    """Return the empty groups, of those named or of all, that were silent for so long, and how long (ms)."""
    from kgroup.admin.read.listing import list_groups
    from kgroup.admin.read.staleness import stale

    listing = list_groups(admin, (EMPTY,))
    empty = [g.group_id for g in listing.groups if named is None or g.group_id in named.groups]
    ages, unsure, clock_off = stale(admin, empty, int(stale_s * 1000))
    if clock_off is not None and not unsure:
        env.note(f"{clock_off}; how long groups are silent is measured by the brokers'")
    unseen = () if named is None else named.unseen
    return ages, Named(tuple(ages), tuple({*unseen, *listing.errors, *unsure}))


def _restore(
    env: Env, file: str, groups: list[str], consent: Consent, reason: str | None, wait_empty: bool
) -> ExitCode:
    """Return the result of `offsets import`, under the name expected after a deletion."""
    text = read_text(file)
    offsets, share = parse_offsets(text, groups, file), share_groups(text, file)
    with open_admin(env) as admin:
        return run(
            env,
            admin,
            lambda: import_plan(
                admin, offsets, f"restore {file}", reason, share, cluster_id=cluster_of(text)
            ),
            consent,
            before=once_empty(env, admin, list(offsets) if wait_empty else ()),
        )


def _export(
    admin: "ClusterView", groups: list[str], file: str | None, where: Document, incomplete: bool
) -> str:
    """Store the offsets in a file before the deletion; return its name.

    Raise Failure, as for any missing right, when there may be more offsets than are visible, unless
    `incomplete` allows it.
    """
    from kgroup.admin.change.offset_plans import look
    from kgroup.cli.views.offset_exports import keep

    now = look(admin, groups)
    for group in now.values():
        if group.error:
            raise group.error
        if group.unseen and not incomplete:
            hint = f"{group.unseen.hint}, or accept that with --incomplete-export"
            message = f"nothing deleted: the export of {group.unseen.message}"
            raise Failure(of_code_name(group.unseen.code), group.unseen.code, message, hint, group.group_id)
    return keep(file, now, where)


@dataclass(frozen=True, slots=True)
class Deleting:
    """The options of `delete`: the groups, the export file, and the reason."""

    names: list[str] | None
    stale_s: float | None
    file: str | None
    incomplete: bool
    consent: Consent
    reason: str | None


def delete(env: Env, where: str, request: Deleting) -> Result:
    """Return the planned or executed deletion; committed offsets are in a file before it."""
    from kgroup.cli.views.deletion import deletion

    with open_groups(env, where) as opened:
        named = expand(opened.groups, request.names, change=True) if request.names else every(opened.groups)
        ages: dict[str, int | None] = {}
        if request.stale_s is not None:
            now_ms, limit_ms = time.time_ns() // 1_000_000, int(request.stale_s * 1000)
            for name, at in opened.groups.silent_since_ms(named.groups).items():
                if at is not None and max(now_ms - at, 0) >= limit_ms:
                    ages[name] = max(now_ms - at, 0)
            named = Named(tuple(ages), named.unseen)
        cluster = opened.identity()
        planned = opened.groups.plan_delete(named.groups)
        to_delete = [item.group_id for item in planned if item.planned]
        _, doubts = opened.groups.look(to_delete)
        shown = deletion(planned, ages, cluster, None, None, [*named.unseen, *doubts])
        if not request.consent.execute or not to_delete:
            return shown
        request.consent.ask(
            env,
            shown,
            f"delete {count_of(len(to_delete), 'group')} with their committed offsets from ZooKeeper?",
            grave=_GRAVE,
        )
        # Store the offsets in a file; raise SafetyRefused where some may be missing and `incomplete` is off.
        from kgroup.cli.views.offset_exports import keep

        now, doubts = opened.groups.look(to_delete)
        for group in now.values():
            if group.error:
                raise group.error
        if doubts and not request.incomplete:
            hint = "mend or accept that with --incomplete-export"
            raise SafetyRefused(f"nothing deleted: the export may lack offsets: {doubts[0].message}", hint)
        file = keep(request.file, now, opened.identity())
        env.note(f"committed offsets kept in {file}")
        done = opened.groups.delete(to_delete, opened.session.ask_all, Journal.default(), request.reason)
    results: dict[str, GroupResult] = {item.group_id: item for item in done.items}
    items = [results.get(item.group_id, item) for item in planned]
    result = deletion(items, ages, cluster, done.journal_id, file, named.unseen)
    into_kafka = shell.command("offsets import", file)
    return with_undo(result, f"undo: none in ZooKeeper; the offsets into Kafka: {into_kafka} -b HOST:PORT")
