"""A planned or executed deletion of groups, as a table and JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from kgroup.admin.change.unread import not_seen
from kgroup.admin.models import GroupResult, ItemError
from kgroup.cli.exit_codes import of_batch
from kgroup.cli.output.result import Result
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import UNKNOWN, of_code_name, of_seen
from kgroup.cli.views.changes import RESULT, change, counts
from kgroup.cli.views.lagging import duration_text

_UNREAD = (
    Column("group_id", "GROUP"),
    Column("topic"),
    Column("partition", right=True),
    Column("committed_offset", "COMMITTED", right=True),
    Column("lag", right=True),
    Column("reason"),
)
"""What a planned deletion leaves unread."""


def deletion(
    items: Sequence[GroupResult],
    ages: dict[str, int | None],
    where: Mapping[str, object] | None,
    journal_id: str | None,
    file: str | None,
    unseen: Sequence[ItemError] = (),
) -> Result:
    """Return a planned or executed deletion, group by group."""
    rows = [{**asdict(item), "stale_ms": ages.get(item.group_id)} for item in items]
    wrong = [item for item in items if item.result.wrong]
    codes = [of_code_name(item.error_code or "GROUP_ID_NOT_FOUND") for item in wrong]
    errors = [
        ItemError(item.group_id, item.error_code or "GROUP_ID_NOT_FOUND", f"{item.group_id}: {item.effect}")
        for item in wrong
    ]
    columns = [Column("group_id", "GROUP"), RESULT, Column("error_code", "ERROR"), Column("effect")]
    if ages:
        columns.insert(1, Column("stale", "SILENT FOR"))
    unseen = [
        *unseen,
        *(error for item in items if item.planned for error in not_seen(item.group_id, item.unread)),
    ]
    left = [
        {**asdict(row), "group_id": item.group_id, "lag": UNKNOWN if row.lag is None else row.lag}
        for item in items
        if item.planned
        for row in item.unread
        if row.lag != 0
    ]
    shown = [{**row, "stale": duration_text(row["stale_ms"])} for row in rows]
    kept = f"committed offsets in {file}" if journal_id else ""
    return change(
        {},
        journal_id,
        {"export": file, "items": rows},
        (Table(tuple(columns), shown), *([Table(_UNREAD, left)] if left else ())),
        "   ".join(filter(None, (counts(items), kept))),
        to_do=any(item.planned for item in items) if file is None else None,
        names=[item.group_id for item in items if item.planned or item.result.made],
        errors=[*errors, *unseen],
        exit_code=of_seen(of_batch(codes, len(wrong) < len(items)), unseen),
        cluster=where,
    )
