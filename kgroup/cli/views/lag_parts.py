"""Reports of lag as they arrive, and the verdict on all of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kgroup.admin.models import ItemError
from kgroup.admin.read.lag_report import LagReport
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, of_batch
from kgroup.cli.inputs.group_names import Named
from kgroup.cli.output.parts import Answer, Ending, show_parts
from kgroup.cli.output.result import Part
from kgroup.cli.output.tables import Block, Table
from kgroup.cli.output.wording import exit_codes, of_seen, only_rights
from kgroup.cli.views.description import EVERY, Pick, held_open, unstable
from kgroup.cli.views.lagging import (
    Limit,
    Verdict,
    columns_of,
    documents,
    headline,
    no_verdict,
    notes,
    over_limit,
    partitions_of,
    rows_of,
    verdict_of,
)
from kgroup.domain import Document, count_of


class Shown:
    """A printer of reports one by one; BAD_VERDICT when a group is over the limit, even if others failed.

    `head` is printed above them; `recorded` is the place of the answer in a recording.

    A missing verdict is not a good one: BAD_VERDICT too where its only obstacles are partitions without a
    commit, or with one beyond the end of the log; else what could not be read decides.
    """

    def __init__(
        self,
        env: Env,
        limit: Limit | None,
        by_topic: bool,
        in_time: bool,
        where: Mapping[str, object] | None,
        named: Named,
        *,
        head: Sequence[Block] = (),
        recorded: Document | None = None,
    ) -> None:
        self._env, self._by_topic, self._in_time = env, by_topic, in_time
        self._where, self._named = where, named
        self._head, self._recorded = head, recorded
        self._limit = limit
        self._verdict: Verdict | None = {**limit, "over": [], "unknown": []} if limit else None
        self._verdict_errors: list[ItemError] = []
        self._errors: list[ItemError] = []
        self._absent: list[ItemError] = []
        self._measured = 0

    def show(self, reports: Iterator[LagReport], pick: Pick) -> ExitCode:
        """Print them all, with the rows of each group that `pick` selects; return the exit code."""
        self._pick = pick
        return show_parts(self._env, Answer("groups", self._where), map(self._part, reports), self._ending)

    def _part(self, measured: LagReport) -> Part:
        self._measured += len(measured.groups)
        self._errors += measured.errors
        self._absent += (error for error in measured.errors if error.item in measured.missing)
        if self._verdict is not None and self._limit is not None:
            verdict = verdict_of(measured, self._limit)
            by_id = {group.group_id: group for group in measured.groups}
            self._verdict["over"] += verdict["over"]
            self._verdict["unknown"] += verdict["unknown"]
            self._verdict_errors += [over_limit(by_id[group_id], verdict) for group_id in verdict["over"]]
            self._verdict_errors += [no_verdict(by_id[row["group_id"]], row) for row in verdict["unknown"]]
        for group in measured.groups:
            for line in notes(group):
                self._env.note(line)
        return Part(
            documents=lambda: documents(measured.groups),
            blocks=lambda: self._blocks(measured),
            main=lambda: self._table(measured)[0],
            names=lambda: (group.group_id for group in measured.groups),
        )

    def _blocks(self, measured: LagReport) -> list[Block]:
        table, rows = self._table(measured)
        lines: list[Block] = [
            *self._head,
            *(line for group in measured.groups for line in (headline(group), *held_open(group.notable))),
        ]
        if not table.rows:
            return lines
        left = [] if len(table.rows) == rows else [f"{len(table.rows)} of {count_of(rows, 'row')} shown"]
        return [*lines, "", table, *left]

    def _table(self, measured: LagReport) -> tuple[Table, int]:
        """Return the rows to show, and how many there are."""
        rated = any(group.consumed_per_s is not None for group in measured.groups)
        several = len(self._named.groups) > len(self._absent) + 1
        held = any(unstable(row) for group in measured.groups for row in group.notable)
        columns = columns_of(self._by_topic, self._in_time, rated, several, held)
        if self._pick == EVERY and not self._by_topic:
            return Table(columns, every := partitions_of(measured.groups, columns)), len(every)
        rows: list[Document] = []
        count = 0
        for group in measured.groups:
            of_group = rows_of(group, columns, self._by_topic)
            count += len(of_group)
            rows += self._pick(of_group)
        return Table(columns, rows), count

    def _ending(self) -> Ending:
        unseen: Iterable[ItemError] = self._named.unseen
        code = of_seen(of_batch(exit_codes(self._absent), bool(self._measured)), [*self._errors, *unseen])
        if self._verdict is not None:
            unknown = self._verdict["unknown"]
            if self._verdict["over"] or any(row["never_committed"] or row["beyond_end"] for row in unknown):
                code = ExitCode.BAD_VERDICT
            elif unknown:
                code = code or only_rights([error.code for error in self._verdict_errors])
        return Ending(
            errors=[*self._errors, *unseen, *self._verdict_errors],
            exit_code=code,
            data={"verdict": self._verdict, "recorded": self._recorded},
        )
