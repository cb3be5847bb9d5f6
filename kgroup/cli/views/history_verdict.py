"""`kgroup replay-log --verify`: whether each group's replayed state equals the cluster's."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kgroup.admin.models import ItemError
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, name_of
from kgroup.cli.inputs.history import LIMITS, coverage_text, failures_of
from kgroup.cli.inputs.history_selection import Selection
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import only_rights
from kgroup.cli.views.events import coverage_json
from kgroup.domain import Document, count_of

if TYPE_CHECKING:
    from kgroup.admin.read.verifying import Comparison

_COLUMNS = (
    Column("group_id", "GROUP"),
    Column("verdict"),
    Column("differences"),
    Column("not_compared", "NOT COMPARED"),
)


def show_verdict(
    env: Env, comparison: "Comparison", selection: Selection, where: Mapping[str, object] | None
) -> ExitCode:
    """Show whether each group's replay equals the cluster; exit code 8 if not, 5 or 6 if unknown."""
    from kgroup.admin.read.verifying import UNKNOWN_GROUP

    rows: list[Document] = [
        {
            "group_id": name,
            "verdict": verdict.word,
            "differences": [difference.text for difference in verdict.differences],
            "not_compared": verdict.uncompared,
        }
        for name, verdict in comparison.verdicts.items()
    ]
    in_part = any(verdict.uncompared for verdict in comparison.verdicts.values())
    table = Table(_COLUMNS if in_part else _COLUMNS[:3], rows)
    blocks: list[str | Table] = [
        coverage_text(covered)
        for covered in comparison.coverage
        if covered.records or covered.failure is not None
    ]
    data = {
        "groups": rows,
        "coverage": [coverage_json(covered) for covered in comparison.coverage],
        "limits": list(LIMITS),
    }
    unread = failures_of(comparison.failures)
    absent = [name for name in selection.names or () if name not in comparison.verdicts]
    hint = "kgroup list shows which groups there are"
    result = Result(
        data,
        [*blocks, "", table, "", _summary(comparison)],
        items="groups",
        names=comparison.named("differs"),
        errors=[
            *unread,
            *comparison.unseen,
            *(
                ItemError(name, UNKNOWN_GROUP, f"neither the log nor the cluster has group {name}", hint)
                for name in absent
            ),
        ],
        exit_code=_exit_code(comparison, unread, absent),
        cluster=where,
        main=table,
    )
    return show(env, result)


def _exit_code(comparison: "Comparison", unread: Sequence[ItemError], absent: Sequence[str]) -> ExitCode:
    """Return a difference as the verdict despite gaps; else no gap passes for agreement."""
    if comparison.named("differs"):
        return ExitCode.BAD_VERDICT
    hidden = [
        *(failure.code for failure in unread),
        *(error.code for error in comparison.unseen),
        *(
            verdict.failed if isinstance(verdict.failed, str) else name_of(verdict.failed)
            for verdict in comparison.verdicts.values()
            if verdict.failed
        ),
    ]
    if hidden:
        return only_rights(hidden)
    if absent:
        return ExitCode.PARTIAL if comparison.verdicts else ExitCode.NOT_FOUND
    return ExitCode.OK


def _summary(comparison: "Comparison") -> str:
    bad, unknown = len(comparison.named("differs")), len(comparison.named("not compared"))
    count = len(comparison.verdicts)
    text = (
        f"{bad} of {count_of(count, 'group')} {'differs' if bad == 1 else 'differ'}"
        if bad
        else f"{count_of(count, 'group')}: replay = live state"
    )
    if unknown:
        text = f"{text}, but {unknown} could not be compared"
    elif partly := sum(bool(verdict.uncompared) for verdict in comparison.verdicts.values()):
        text = f"{text}, of {partly} in part"
    return f"{text}; there may be groups that were not seen" if comparison.unseen else text
