"""`upgrade rehearse` as text and JSON: each act, the records it led to, and the epochs."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from kgroup.admin.migrate.rehearse import Rehearsal, Rehearsed
from kgroup.admin.models import CONSUMER, ItemError
from kgroup.admin.refusals import item_error
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.output.result import Result
from kgroup.cli.output.tables import Column, Table, wrapped
from kgroup.cli.output.wording import only_rights
from kgroup.domain import count_of
from kgroup.errors import KgroupError

if TYPE_CHECKING:
    from kgroup.admin.discovery import Answers
    from kgroup.admin.migrate.fleet import Fleet
    from kgroup.history.log_items import BadRange

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


def result_of_one(
    rehearsal: Rehearsal,
    damage: "Iterable[BadRange]",
    where: Mapping[str, object] | None,
    *,
    with_records: bool,
) -> Result:
    """Return a rehearsal step by step, as text with records only on request; REFUSED if the copy refused."""
    unread = _missing_from_the_copy(damage)
    refused = "refused" in (rehearsal.upgrade, rehearsal.downgrade)
    code = ExitCode.PARTIAL if unread else ExitCode.OK
    steps = enumerate(rehearsal.steps, 1)
    rows = [{"step": n, **asdict(step), "records": len(step.records)} for n, step in steps]
    return Result(
        asdict(rehearsal),
        list(_lines(rehearsal, with_records)),
        items="steps",
        names=[step.action for step in rehearsal.steps],
        errors=unread,
        exit_code=ExitCode.REFUSED if refused else code,
        cluster=where,
        main=Table(_STEPS, rows),
    )


def _missing_from_the_copy(damage: "Iterable[BadRange]") -> list[ItemError]:
    hint = "the copy lacks what was there: another replica, or a backup of this one, may be whole"
    return [ItemError(bad.source, "CORRUPT_MESSAGE", str(bad), hint) for bad in damage]


def result_of_many(
    done: "Answers[Rehearsal]",
    fleet: "Fleet",
    hidden: Sequence[ItemError],
    damage: "Iterable[BadRange]",
    where: Mapping[str, object] | None,
) -> Result:
    """Return a row per rehearsal with the plan's verdict; REFUSED if a copy refused.

    `hidden` says why there may be more groups.
    """
    verdicts = {row.group_id: row.verdict for row in fleet.rows}
    rows, failed = [], []
    for name, rehearsal in done.items():
        if isinstance(rehearsal, KgroupError):
            failed.append(item_error(name, rehearsal))
            continue
        refusal = next((step for step in rehearsal.steps if step.error_code is not None), None)
        rows.append(
            Rehearsed(
                group_id=rehearsal.group_id,
                verdict=verdicts.get(name),
                upgrade=rehearsal.upgrade,
                downgrade=rehearsal.downgrade,
                offsets_kept=rehearsal.offsets_kept,
                copied=rehearsal.copied,
                error_code=None if refusal is None else refusal.error_code,
                message=None if refusal is None else refusal.message,
            )
        )
    unseen = [*fleet.errors, *hidden, *failed, *_missing_from_the_copy(damage)]
    refused = [row for row in rows if "refused" in (row.upgrade, row.downgrade)]
    code = only_rights([error.code for error in unseen]) if unseen else ExitCode.OK
    counts = Counter(row.upgrade for row in rows)
    endings = ", ".join(f"{count} {ending}" for ending, count in sorted(counts.items())) or "none rehearsed"
    return Result(
        {"groups": [asdict(row) for row in rows], "left_out": [asdict(out) for out in fleet.left_out]},
        [
            f"{count_of(len(rows), 'group')} upgraded on copies: {endings} · nothing is changed there",
            *(f"  left out: {out.group_id}: {out.reason}" for out in fleet.left_out),
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
