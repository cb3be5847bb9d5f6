"""A planned change and its outcome as a result: the same form for every command that changes something."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kgroup.admin.models import ChangeStatus, ItemError, PlannedItem
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.output.messages import NOT_YET
from kgroup.cli.output.result import Result
from kgroup.cli.output.tables import Block, Column, Table
from kgroup.domain import Document

RESULT = Column(
    "result",
    style={
        **{status: "green" for status in ChangeStatus if status.made},
        **{status: "red" for status in ChangeStatus if status.wrong},
        ChangeStatus.UNCHANGED: "dim",
        ChangeStatus.NOT_FOUND: "yellow",
    },
)


def counts(items: Iterable[PlannedItem]) -> str:
    """Return the number of items per result: `2 removed, 1 not found`."""
    by_status = Counter(item.result for item in items)
    return ", ".join(
        f"{by_status[status]} {status.replace('_', ' ')}" for status in ChangeStatus if by_status[status]
    )


def change(
    about: Mapping[str, object],
    journal_id: str | None,
    rows: Mapping[str, object],
    blocks: Sequence[Block],
    summary: str,
    *,
    to_do: bool | None,
    names: Sequence[str],
    cluster: Mapping[str, object] | None,
    items: str = "items",
    errors: Sequence[ItemError] = (),
    exit_code: ExitCode = ExitCode.OK,
    main: Table | None = None,
) -> Result:
    """Return a plan, or where `to_do` is None its outcome, as a result.

    `about` says what is changed; `rows` has the list named by `items`, and what else follows it. `to_do` is
    whether the plan would change anything. The last line has the summary, and what became of the plan.
    """
    data: Document = {**about, "executed": journal_id is not None, "journal_id": journal_id, **rows}
    last = f"journal {journal_id}" if journal_id is not None else ""
    if to_do is False:
        last = "Nothing changed." if errors else "Nothing to do."
    line = "   ".join(filter(None, (summary, last)))
    return Result(
        data,
        blocks,
        items=items,
        names=names,
        errors=errors,
        exit_code=exit_code,
        cluster=cluster,
        main=main,
        closing=(line,) if line else (),
        remark=NOT_YET if to_do else "",
    )
