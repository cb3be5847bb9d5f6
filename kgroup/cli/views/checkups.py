"""Check-ups of groups as text, JSON and errors: of `doctor`, and of `explain` with a cluster."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from kgroup.admin.as_json import document
from kgroup.admin.models import ItemError
from kgroup.admin.shell import command as line
from kgroup.admin.statuses import LOOKS
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode, of_batch
from kgroup.cli.output.parts import Answer, Ending, show_parts
from kgroup.cli.output.result import Part
from kgroup.cli.output.tables import Block, Column, Painted, Table
from kgroup.cli.output.wording import MARKS, exit_codes, finding_line, more_findings, of_seen, only_rights
from kgroup.domain import Document, count_of, grouped
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.admin.diagnose.doctor import Checkup, Examined

_WORDS = {"sick": "NOT HEALTHY", "unknown": "UNKNOWN", "healthy": "healthy"}
"""The verdicts, in the order in which groups are shown."""
_STYLES = {"sick": "bold red", "unknown": "magenta", "healthy": "green"}


def left_out_of(without: str | None) -> tuple[str, ...]:
    """Return the checks that --without names; raise ConfigError for one that does not exist."""
    names = tuple(name.strip() for name in (without or "").split(",") if name.strip())
    for name in names:
        if name not in LOOKS:
            raise ConfigError(f"--without {name!r} is unknown", "one of " + ", ".join(LOOKS))
    return names


def code_of(examined: "Examined", hidden: Sequence[ItemError] = ()) -> ExitCode:
    """Return the exit code for what could not be seen of groups, or of which there are (`hidden`)."""
    unknown = [checkup for checkup in examined.checkups if checkup.healthy is None]
    codes = [*exit_codes(examined.errors), *(_code_of(checkup) for checkup in unknown)]
    code = of_batch(codes, len(unknown) < len(examined.checkups))
    return of_seen(ExitCode.PARTIAL if len(set(codes)) > 1 else code, hidden)


def _code_of(checkup: "Checkup") -> ExitCode:
    """Return the exit code of an unknown verdict: the group was seen, and a part of it was not."""
    return only_rights(unseen.code for unseen in checkup.unseen)


def unseen_of(checkups: "Iterable[Checkup]") -> list[ItemError]:
    """Return the failed polls of groups; the same failure of many groups once."""
    groups = grouped(
        ((unseen.look, unseen.code, unseen.message), checkup.group.group_id)
        for checkup in checkups
        for unseen in checkup.unseen
    )
    errors = []
    for (look, code, message), names in groups.items():
        more = f" and {count_of(len(names) - 1, 'more group')}" if len(names) > 1 else ""
        hint = f"--without {look} leaves it out of the verdict" if look in LOOKS else None
        errors.append(ItemError(names[0], code, f"{names[0]}{more}: could not check {look}: {message}", hint))
    return errors


def document_of(checkup: "Checkup") -> Document:
    """Return a check-up as JSON."""
    return {
        "group_id": checkup.group.group_id,
        "type": checkup.group.type,
        "state": checkup.group.state,
        "verdict": checkup.verdict,
        "healthy": checkup.healthy,
        "findings": [document(finding) for finding in checkup.findings],
        "statuses": [document(alike) for alike in checkup.statuses],
        "skipped": [f"{unseen.look}: {unseen.message}" for unseen in checkup.unseen],
    }


def show_checkups(
    env: Env,
    examined: "Examined",
    hidden: Sequence[ItemError],
    code: ExitCode,
    *,
    top: int | None,
    head: Sequence[Block] = (),
    left_out: Sequence[str] = (),
    recorded: Document | None = None,
    cluster: Mapping[str, object] | None = None,
) -> ExitCode:
    """Print the answer of doctor: `code` is for what could not be seen, and a sick group counts more.

    `left_out` are the checks that the verdicts do not count; `recorded` is the place of an answer in a
    recording.
    """
    checkups = examined.checkups
    sick = [checkup for checkup in checkups if checkup.healthy is False]
    without = [f"left out of each verdict: {', '.join(left_out)}", ""] if left_out else []
    part = Part(
        documents=lambda: map(document_of, checkups),
        blocks=lambda: [*head, *without, *blocks(checkups, top)],
        main=lambda: _table(checkups),
        names=lambda: (checkup.group.group_id for checkup in sick),
    )
    ending = Ending(
        errors=[*examined.errors, *hidden, *unseen_of(checkups)],
        exit_code=ExitCode.BAD_VERDICT if sick else code,
        data={"left_out": list(left_out), "recorded": recorded},
    )
    return show_parts(env, Answer("groups", cluster), iter((part,)), lambda: ending)


def _table(checkups: "Sequence[Checkup]") -> Table:
    columns = (Column("group_id", "GROUP"), Column("code"), Column("severity"), Column("message"))
    rows = [{"group_id": c.group.group_id, **document(finding)} for c in checkups for finding in c.findings]
    return Table(columns, rows)


def blocks(checkups: "Sequence[Checkup]", top: int | None = None) -> Iterator[Block]:
    """Yield the groups, sick ones first; where there are several, a healthy one in one line."""
    order = list(_WORDS)
    brief = len(checkups) > 1
    shown = False
    for checkup in sorted(checkups, key=lambda checkup: order.index(checkup.verdict)):
        if brief and checkup.healthy:
            codes = grouped((finding.severity, finding.code) for finding in checkup.findings)
            noted = "".join(
                f"   {MARKS[severity]} {' '.join(of_severity)}" for severity, of_severity in codes.items()
            )
            yield from ([""] if shown else [])
            yield Painted(_headline(checkup) + noted, _STYLES[checkup.verdict])
            shown = False
            continue
        yield from ([""] if shown else [])
        yield from _text(checkup, top)
        shown = True


def _headline(checkup: "Checkup") -> str:
    group = checkup.group
    return f"{group.group_id}   {group.type}   {group.state}   {_WORDS[checkup.verdict]}"


def _text(checkup: "Checkup", top: int | None) -> Iterator[Block]:
    yield Painted(_headline(checkup), _STYLES[checkup.verdict])
    if not checkup.findings:
        yield "nothing found" + (" in what could be examined" if checkup.unseen else "")
    for finding in checkup.findings[:top]:
        yield finding_line(finding)
        yield from (f"     {fact}" for fact in finding.evidence)
        if finding.hint:
            yield f"     → {finding.hint}"
    yield from more_findings(checkup.findings, top)
    if checkup.healthy:
        blame = line("blame", checkup.group.group_id)
        yield f"     → {blame} names what set off its last rebalance or rewind"
    for unseen in checkup.unseen:
        yield f"? could not check {unseen.look}: {unseen.message}"
