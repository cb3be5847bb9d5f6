"""`upgrade rehearse` as text and JSON: each act, the records it led to, and the epochs."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from kgroup.admin.migrate.fleet import plan_fleet
from kgroup.admin.migrate.rehearse import Rehearsal, Rehearsed
from kgroup.admin.migrate.rehearse_groups import rehearse_groups
from kgroup.admin.models import CLASSIC, CONSUMER, ItemError
from kgroup.admin.read.source import Source
from kgroup.admin.refusals import item_error
from kgroup.cli.env.invocation import Env, pair
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.inputs.group_names import every, expand, is_glob
from kgroup.cli.inputs.history import opened
from kgroup.cli.inputs.history_selection import Selection
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table, wrapped
from kgroup.cli.output.wording import only_rights
from kgroup.coordinator.config import GroupConfig
from kgroup.domain import count_of
from kgroup.errors import ConfigError, KgroupError
from kgroup.settings import no_such_setting

if TYPE_CHECKING:
    from kgroup.admin.migrate.fleet import LeftOut

READABLE = 100
"""Records hold hundreds of characters: as text they are broken into lines of this length."""
_STEPS = (
    Column("step", right=True),
    Column("phase"),
    Column("action"),
    Column("type"),
    Column("state"),
    Column("epoch", right=True),
    Column("records", right=True),
    Column("error_code", "ERROR"),
)
_GROUPS = (
    Column("group_id", "GROUP"),
    Column("verdict", "PLAN"),
    Column("upgrade"),
    Column("downgrade"),
    Column("offsets_kept", "OFFSETS KEPT"),
    Column("copied", "RECORDS", right=True),
    Column("error_code", "ERROR"),
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The groups to rehearse: ids and globs, or every group."""

    names: Sequence[str]
    all_groups: bool = False

    @property
    def one(self) -> str | None:
        """The group when a single id is given."""
        alone = len(self.names) == 1 and not self.all_groups and not is_glob(self.names[0])
        return self.names[0] if alone else None


def show_rehearsal(
    env: Env,
    requested: Wanted,
    files: Sequence[str],
    settings: Sequence[str],
    options: Sequence[str] | None = None,
) -> ExitCode:
    """Copy the groups' records, run the migration there, print it; REFUSED when a copy refuses."""
    if bool(requested.names) == requested.all_groups:
        raise ConfigError("name the groups to rehearse, or --all-groups", "kgroup list shows the groups")
    changed = {}
    for text in settings:
        name, value = pair(text, f"--set {text!r}", "as in group.consumer.migration.policy=disabled")
        if name not in GroupConfig.names():  # a misspelt name must not look like a setting tried
            raise no_such_setting(name, GroupConfig.names())
        changed[name] = value
    with opened(env, files, Selection(patterns=tuple(requested.names)), options) as source:
        plans = _planned(source, requested)
        groups = [requested.one] if requested.one is not None else plans.groups
        done = rehearse_groups(source, groups, changed)
    # Damaged ranges: what they held is missing from the copy. Logs are read more than once.
    bad = {str(damage): damage.source for log in source.logs for damage in log.bad}
    hint = "the copy lacks what was there: another replica, or a backup of this one, may be whole"
    unread = [ItemError(at, "CORRUPT_MESSAGE", text, hint) for text, at in bad.items()]
    if requested.one is not None:
        rehearsal = done[requested.one]
        if isinstance(rehearsal, KgroupError):
            raise rehearsal
        refused = "refused" in (rehearsal.upgrade, rehearsal.downgrade)
        code = ExitCode.PARTIAL if unread else ExitCode.OK
        steps = enumerate(rehearsal.steps, 1)
        rows = [{"step": n, **asdict(step), "records": len(step.records)} for n, step in steps]
        result = Result(
            asdict(rehearsal),
            list(_lines(rehearsal, env.verbose)),
            items="steps",
            names=[step.action for step in rehearsal.steps],
            errors=unread,
            exit_code=ExitCode.REFUSED if refused else code,
            cluster=source.cluster,
            main=Table(_STEPS, rows),
        )
        return show(env, result)
    return show(env, _of_many(done, plans, unread, source.cluster))


def _of_many(
    done: "Mapping[str, Rehearsal | KgroupError]",
    plans: "_Plans",
    unread: Sequence[ItemError],
    where: Mapping[str, object] | None,
) -> Result:
    rows, failed = [], []
    for name, rehearsal in done.items():
        if isinstance(rehearsal, KgroupError):
            failed.append(item_error(name, rehearsal))
            continue
        refusal = next((step for step in rehearsal.steps if step.error_code is not None), None)
        rows.append(
            Rehearsed(
                group_id=rehearsal.group_id,
                verdict=plans.verdicts.get(name),
                upgrade=rehearsal.upgrade,
                downgrade=rehearsal.downgrade,
                offsets_kept=rehearsal.offsets_kept,
                copied=rehearsal.copied,
                error_code=None if refusal is None else refusal.error_code,
                message=None if refusal is None else refusal.message,
            )
        )
    unseen = [*plans.errors, *failed, *unread]
    refused = [row for row in rows if "refused" in (row.upgrade, row.downgrade)]
    code = only_rights([error.code for error in unseen]) if unseen else ExitCode.OK
    counts = Counter(row.upgrade for row in rows)
    endings = ", ".join(f"{count} {ending}" for ending, count in sorted(counts.items())) or "none rehearsed"
    return Result(
        {"groups": [asdict(row) for row in rows], "left_out": [asdict(out) for out in plans.left_out]},
        [
            f"{count_of(len(rows), 'group')} upgraded on copies: {endings} · nothing is changed there",
            *(f"  left out: {out.group_id}: {out.reason}" for out in plans.left_out),
            Table(_GROUPS, [asdict(row) for row in rows]),
        ],
        items="groups",
        names=[row.group_id for row in rows],
        errors=[
            *unseen,
            *(
                ItemError(
                    row.group_id,
                    row.error_code or "REFUSED",
                    f"{row.group_id}: the copy refuses: {row.message}",
                )
                for row in refused
            ),
        ],
        exit_code=ExitCode.REFUSED if refused else code,
        cluster=where,
    )


@dataclass(frozen=True, slots=True)
class _Plans:
    """The groups to rehearse, with the plan's verdicts, and those without a plan."""

    groups: Sequence[str]
    verdicts: Mapping[str, str]
    left_out: "Sequence[LeftOut]" = ()
    errors: Sequence[ItemError] = ()


def _planned(source: Source, requested: Wanted) -> _Plans:
    """Return the selected groups: of a cluster those with a plan, of files those with records."""
    if requested.one is not None:
        return _Plans((requested.one,), {})
    if source.admin is None:
        story = source.replay(Selection(patterns=tuple(requested.names)))
        return _Plans([state.group_id for _, state in story.states if state.kind in (CLASSIC, CONSUMER)], {})
    named = every(source.admin) if requested.all_groups else expand(source.admin, requested.names)
    fleet = plan_fleet(source.admin, named.groups)
    verdicts = {row.group_id: row.verdict for row in fleet.rows}
    return _Plans(list(verdicts), verdicts, fleet.left_out, (*fleet.errors, *named.unseen))


def _lines(done: Rehearsal, records: bool) -> Iterator[str]:
    kept = "the same" if done.offsets_kept else "NOT the same"
    yield f"upgrade {done.upgrade} · downgrade {done.downgrade} · committed offsets {kept}"
    yield (
        f"{done.group_id} · {count_of(done.copied, 'record')} copied from {done.source} · "
        f"nothing is changed there"
    )
    for number, step in enumerate(done.steps, 1):
        if records or number == 1:
            yield ""
        state = f"classic {step.state}, generation {step.epoch}"
        if step.type == CONSUMER:
            state = f"consumer {step.state}, epoch {step.epoch} (assignment {step.assignment_epoch})"
        yield f"{number:>3}  {step.phase:<9} {step.action}   → {state}"
        if step.error_code:
            refusal = f"     REFUSED {step.error_code}: {step.message or 'no message'}"
            yield from wrapped(refusal, READABLE, 13)
        shown: Sequence[Mapping[str, Any]] = step.records if records else ()
        for record in shown:
            key = {name: of for name, of in record["key"].items() if name not in ("group", "group_id")}
            about = f" {json.dumps(key, ensure_ascii=False)}" if key else ""
            value = json.dumps(record["value"], ensure_ascii=False)
            value = "tombstone" if record["value"] is None else value
            line = f"     {record['offset']:>6}  {record['type_name']}{about}  {value}"
            yield from wrapped(line, READABLE, 13)
    if not records:
        yield f"{count_of(sum(len(step.records) for step in done.steps), 'record')}; --verbose shows them"
