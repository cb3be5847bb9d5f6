"""A migration as it happens: a live block on a terminal, one line per change elsewhere, or ndjson."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass

from kgroup.admin.migrate.watch import DONE, WATCHING, Look
from kgroup.admin.models import ItemError
from kgroup.cli.env.escaping import clean
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.output.messages import print_error
from kgroup.cli.output.result import Result, json_line
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import assignment_text
from kgroup.domain import Document
from kgroup.durations import iso

_SECOND = 1000
_COLUMNS = tuple(
    Column(name)
    for name in (
        "timestamp",
        "group_id",
        "status",
        "type",
        "state",
        "moved",
        "members",
        "remaining",
        "stalled_ms",
    )
)


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to poll, and when to end, as given."""

    interval: str
    stuck_after: str
    stop_after: str | None


def show_looks(env: Env, looks: Iterator[Look], pace: Pace) -> ExitCode:
    """Print looks until the last one; BAD_VERDICT when that says stuck, UNREACHABLE when time is up."""
    if env.output.format == "ndjson":
        last = _each_change(
            looks, lambda look: print(json_line(f"{look.direction} watch", look_json(look)), flush=True)
        )
    elif env.output.terminal:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console(no_color=not env.output.color, highlight=False)
        with Live(console=console, refresh_per_second=4) as live:
            for last in looks:
                live.update(Text("\n".join(map(clean, _block(last)))))
    else:
        last = _each_change(looks, lambda look: print(clean(text(look)), flush=True))
    if last.status == WATCHING:
        print_error(_late(last, pace).message)
    return _code(last)


def result_of(last: Look, pace: Pace, where: Mapping[str, object]) -> Result:
    """Return the last look as the one answer, for formats that have no lines on the way."""
    row = look_json(last)
    return Result(
        row,
        (text(last),),
        main=Table(_COLUMNS, [row]),
        names=last.remaining,
        errors=[_late(last, pace)] if last.status == WATCHING else (),
        exit_code=_code(last),
        cluster=where,
    )


def _late(look: Look, pace: Pace) -> ItemError:
    moved = f"{look.moved} of {look.members} moved"
    seen = "it cannot be seen" if look.type is None else moved
    return ItemError(look.group_id, "TIMED_OUT", f"{look.group_id}: not done after {pace.stop_after}: {seen}")


def _each_change(looks: Iterator[Look], print_look: Callable[[Look], None]) -> Look:
    """Print the looks that show something new; return the last one."""
    before: object = None
    for look in looks:
        waits = tuple((wait.code, wait.message) for wait in look.waits)
        now = (
            look.status,
            look.type,
            look.state,
            look.members,
            look.moved,
            look.remaining,
            look.group_epoch,
            look.assignment_epoch,
            look.unowned,
            waits,
        )
        if now != before:
            print_look(look)
        before = now
    return look


def look_json(look: Look) -> Document:
    """Return a look as printed; docs/json-output.md fixes the names."""
    row = asdict(look)
    return {"timestamp_ms": row.pop("timestamp_ms"), "timestamp": iso(look.timestamp_ms), **row}


def _code(look: Look) -> ExitCode:
    if look.status == WATCHING:
        return ExitCode.UNREACHABLE
    return ExitCode.OK if look.status == DONE else ExitCode.BAD_VERDICT


def text(look: Look) -> str:
    """Return a look in one line."""
    parts = [(iso(look.timestamp_ms) or "")[11:], _head(look)]
    if look.unowned:
        parts.append("no owner " + assignment_text(look.unowned))
    if look.status != WATCHING:
        parts.append(f"unowned {_unowned(look)}")
    parts += [wait.message for wait in look.waits]
    return "  ".join(parts)


def _head(look: Look) -> str:
    if look.type is None:
        return "cannot be seen"
    epochs = (
        "" if look.group_epoch is None else f" epoch {look.group_epoch} (assignment {look.assignment_epoch})"
    )
    word = "" if look.status == WATCHING else f"  {look.status.upper()}"
    return f"{look.moved} of {look.members} moved  {look.type} {look.state}{epochs}{word}"


def _unowned(look: Look) -> str:
    """Return partition-seconds without an owner, as bounds."""
    low, high = (
        ms / _SECOND for ms in (look.unowned_partition_ms.at_least, look.unowned_partition_ms.at_most)
    )
    return f"{low:.1f} s" if low == high else f"{low:.1f}-{high:.1f} s, partitions added up"


def _block(look: Look) -> list[str]:
    """Return a look as a screen."""
    lines = [f"{look.group_id}   {look.direction}   {_head(look)}"]
    if look.members:
        filled = round(20 * look.moved / look.members)
        lines.append(f"{'█' * filled}{'░' * (20 - filled)}  remaining: {', '.join(look.remaining) or 'none'}")
    lines.append(f"no owner now: {assignment_text(look.unowned)}   so far: {_unowned(look)}")
    for wait in look.waits:
        lines.append(f"! {wait.message}   since {(look.timestamp_ms - wait.since_ms) / _SECOND:.0f} s")
        if wait.hint:
            lines.append(f"  {wait.hint}")
    return lines
