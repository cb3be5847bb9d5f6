"""The upgrade plans of many groups: one table, JSON, and a page for people who do not type."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kgroup.admin.as_json import document
from kgroup.admin.migrate.models import BLOCKED, READY
from kgroup.admin.migrate.models import UNKNOWN as NOT_KNOWN
from kgroup.admin.models import ItemError
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, Failure, of_batch
from kgroup.cli.inputs.group_names import is_glob
from kgroup.cli.output.pages import filled, write_file, write_page
from kgroup.cli.output.result import Result
from kgroup.cli.output.tables import Column, Table, with_fields
from kgroup.cli.output.wording import UNKNOWN, exit_codes, only_rights
from kgroup.domain import Document, count_of, first_of, grouped

if TYPE_CHECKING:
    from kgroup.admin.migrate.fleet import Fleet, FleetRow, LeftOut
    from kgroup.admin.migrate.waves import Wave

_VERDICTS = {"ready": "green", "already": "green", "BLOCKED": "bold red", "unknown": "magenta"}


@dataclass(frozen=True, slots=True)
class Question:
    """The groups to plan, and their contexts (none: the one of the options)."""

    groups: Sequence[str]
    all_groups: bool = False
    topic: str | None = None
    contexts: str | None = None
    patterns: Sequence[str] = ()
    read_log: bool = False
    html: Path | None = None
    waves: Path | None = None
    wave_size: int | None = None

    @property
    def one_group(self) -> str | None:
        """The group when a single id is given; None for the plan of a fleet."""
        files = self.html is not None or self.waves is not None
        plain = self.topic is None and self.contexts is None and not files and not self.all_groups
        return self.groups[0] if plain and len(self.groups) == 1 and not is_glob(self.groups[0]) else None


@dataclass(frozen=True, slots=True)
class Planned:
    """The plans of one cluster; `unseen` says why there may be more groups."""

    context: str | None
    fleet: "Fleet"
    unseen: tuple[ItemError, ...]


def within(context: str | None, error: ItemError) -> ItemError:
    """Return the same error, with the context it is of."""
    return error if context is None else replace(error, message=f"context {context}: {error.message}")


def result_of(
    env: Env,
    question: Question,
    planned: Sequence[Planned],
    waves: "Sequence[Wave]",
    failed: Sequence[ItemError],
    where: Document | None,
) -> Result:
    """Return the plans as shown; exit code 4 when one is blocked, else 5 or 6 when one is unknown."""
    rows = [(plan.context, row) for plan in planned for row in plan.fleet.rows]
    left_out = [(plan.context, out) for plan in planned for out in plan.fleet.left_out]
    unseen = [
        *failed,
        *(within(plan.context, error) for plan in planned for error in (*plan.fleet.errors, *plan.unseen)),
    ]
    asked = {name for name in question.groups if not is_glob(name)}
    refused = [out for _, out in left_out if out.group_id in asked]
    blocked = any(row.verdict == BLOCKED for _, row in rows)
    unknown = [obstacle for _, row in rows if row.verdict == NOT_KNOWN for obstacle in row.unknown]
    reasons = [*(error.code for error in unseen), *(obstacle.reason or "NOT_KNOWN" for obstacle in unknown)]
    if not reasons:
        code = ExitCode.OK
    else:
        code = only_rights(reasons) if rows or left_out else of_batch(exit_codes(unseen), False)
    data: Document = {
        "groups": [{"context": context, **document(row)} for context, row in rows],
        "left_out": [{"context": context, **asdict(out)} for context, out in left_out],
    }
    counts = Counter(row.verdict for _, row in rows)
    verdicts = ", ".join(f"{counts[name]} {name}" for name in ("ready", "blocked", "unknown", "already"))
    summary = f"{count_of(len(rows), 'group')}   classic → consumer   {verdicts}"
    if unseen:
        summary = f"{summary}; not all were seen" if rows or left_out else "no group was seen"
    kinds = list(_kinds([row for _, row in rows]))
    blockers = grouped((obstacle.code, row.group_id) for _, row in rows for obstacle in row.blockers)
    if question.html is not None:
        _write(question.html, data, summary, kinds, unseen, where)
        env.note(f"written: {question.html}")
    if question.waves is not None:
        _write_waves(question.waves, waves, planned[0].fleet, unseen)
        env.note(f"written: {question.waves}")
    return Result(
        data,
        [summary, *kinds, *_left_out_lines([out for _, out in left_out]), _table(rows)],
        items="groups",
        names=[row.group_id for _, row in rows if row.verdict == READY],
        errors=[
            *unseen,
            *_unknown_errors([row for _, row in rows]),
            *(
                ItemError(names[0], "BLOCKED", f"{first_of(names, 1)}: blocked: {code.replace('_', ' ')}")
                for code, names in blockers.items()
            ),
            *(ItemError(o.group_id, "BLOCKED", f"{o.group_id}: {o.reason}") for o in refused),
        ],
        exit_code=ExitCode.REFUSED if blocked or refused else code,
        cluster=where,
    )


def _kinds(rows: "Iterable[FleetRow]") -> Iterator[str]:
    """Yield each kind of obstacle, the one that stops the most groups first, and its remedy."""
    groups = grouped(
        ((word, obstacle.code), (row.group_id, obstacle))
        for row in rows
        for word, obstacles in (("blocked by", row.blockers), ("unknown:", row.unknown))
        for obstacle in obstacles
    )
    for (word, code), pairs in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        where = f", to change in: {pairs[0][1].where}" if pairs[0][1].where else ""
        yield f"  {word} {code.replace('_', ' ')}: {count_of(len(pairs), 'group')}{where}"
        hints = [(group_id, obstacle.hint) for group_id, obstacle in pairs if obstacle.hint]
        if hints:
            alike = len({hint for _, hint in hints}) == 1
            yield f"    → {'' if alike else f'{hints[0][0]}, for one: '}{hints[0][1]}"


def _left_out_lines(left_out: "Sequence[LeftOut]") -> Iterator[str]:
    """Yield the groups without a plan, by reason."""
    for (reason, hint), names in grouped(((out.reason, out.hint), out.group_id) for out in left_out).items():
        yield f"  left out: {first_of(names)}: {reason}"
        if hint:
            yield f"    → {hint}"


def _unknown_errors(rows: "Iterable[FleetRow]") -> Iterator[ItemError]:
    """Yield why groups are unknown; the same reason of many groups once."""
    groups: dict[tuple[str, str, str], tuple[str | None, list[str]]] = {}
    for row in rows:
        for obstacle in row.unknown if row.verdict == NOT_KNOWN else ():
            key = (obstacle.reason or "NOT_KNOWN", obstacle.code, obstacle.message)
            groups.setdefault(key, (obstacle.hint, []))[1].append(row.group_id)
    for (reason, code, message), (hint, names) in groups.items():
        said = f"{first_of(names, 1)}: not known: {code.replace('_', ' ')}: {message}"
        yield ItemError(names[0], reason, said, hint)


def _table(rows: "Sequence[tuple[str | None, FleetRow]]") -> Table:
    columns = (
        *((Column("context"),) if any(context is not None for context, _ in rows) else ()),
        Column("group_id", "GROUP"),
        Column("verdict", style=_VERDICTS),
        Column("effort"),
        Column("members", right=True),
        Column("obstacles", "BLOCKED BY"),
        Column("change"),
        Column("software", "CLIENTS"),
        Column("warnings", wide=True),
        Column("state", wide=True),
        Column("assignor", wide=True),
    )
    cells: list[Document] = [
        {
            "context": context,
            "verdict": "BLOCKED" if row.verdict == BLOCKED else row.verdict,
            "members": UNKNOWN if row.members is None else row.members,
            "obstacles": ", ".join(
                [
                    *(obstacle.code for obstacle in row.blockers),
                    *(f"{obstacle.code}?" for obstacle in row.unknown),
                ]
            )
            or None,
            "change": ", ".join(row.change) or None,
            "software": ", ".join(f"{name} ({count})" for name, count in row.software.items())
            or (UNKNOWN if row.members != 0 else None),
            "warnings": ", ".join(row.warnings) or None,
        }
        for context, row in rows
    ]
    return Table(columns, with_fields(cells, [row for _, row in rows], columns))


def _write_waves(path: Path, waves: "Sequence[Wave]", fleet: "Fleet", unseen: Sequence[ItemError]) -> None:
    """Write the waves, and as comments why the groups that are in none are in none."""
    from kgroup.admin.migrate.waves import as_yaml

    if not waves:
        raise Failure(ExitCode.REFUSED, "NOTHING_READY", "no group is ready, so there are no waves")
    others = (row for row in fleet.rows if row.verdict != READY)
    notes = [
        *(f"in no wave: {row.group_id}: {row.verdict}" for row in others),
        *(f"in no wave: {out.group_id}: {out.reason}" for out in fleet.left_out),
        *(f"not seen: {error.message}" for error in unseen),
    ]
    # A file that is there may have been edited.
    write_file(path, as_yaml(waves, notes), new=True)


def _write(
    path: Path,
    data: Document,
    summary: str,
    kinds: Sequence[str],
    unseen: Sequence[ItemError],
    where: Document | None,
) -> None:
    of = "" if where is None else f"Cluster {where['id']} at {where['bootstrap']}. "
    shown: Document = {
        **data,
        "where": f"{of}The verdicts hold until a group rebalances.",
        "summary": summary,
        "kinds": [line.strip() for line in kinds],
        "errors": [error.message for error in unseen],
    }
    write_page(path, filled(Path(__file__).with_name("fleet_page.html"), shown))
