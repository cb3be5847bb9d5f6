"""`upgrade run`: the progress of the waves, their execution, and what to do where they stop."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from kgroup.admin.as_json import document
from kgroup.admin.migrate.fleet import plan_fleet
from kgroup.admin.migrate.run import Options, Stopped, WavesRun, against, goes_on_at
from kgroup.admin.migrate.watch import Unowned
from kgroup.admin.migrate.wave_state import (
    BLOCKED,
    DONE,
    HOOK,
    MOVE,
    PLAN,
    RULE,
    STUCK,
    WAITING,
    StateFile,
    Stop,
    WaveRun,
    continued,
)
from kgroup.admin.migrate.waves import Wave, read_waves
from kgroup.admin.models import ItemError
from kgroup.cli.env.escaping import clean
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.changes import Consent
from kgroup.cli.output.messages import NOT_YET
from kgroup.cli.output.result import Result, json_line, show
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import UNKNOWN, of_code_name, only_rights
from kgroup.domain import Document, count_of, first_of
from kgroup.durations import iso, parse_duration

if TYPE_CHECKING:
    from kgroup.admin.discovery import ClusterView

_STEPS = {"done": "green", "STOPPED": "bold red"}
_COLUMNS = (
    Column("wave"),
    Column("step", style=_STEPS),
    Column("group_id", "GROUP"),
    Column("verdict"),
    Column("members", right=True),
    Column("moved", right=True),
    Column("lag_before", "LAG BEFORE", right=True, wide=True),
    Column("unowned", "UNOWNED s", right=True, wide=True),
)
MOST_WAYS = 20
"""The number of printed commands to go back; JSON has all."""


@dataclass(frozen=True, slots=True)
class Order:
    """The options of `upgrade run`."""

    waves: Path
    state: Path | None
    execute: bool
    yes: bool
    hook_again: bool | None
    interval: str


def run_waves(env: Env, order: Order) -> ExitCode:
    """Show the progress of the waves and what blocks the next; with `execute` take them through."""
    waves = read_waves(order.waves)
    options = Options(parse_duration(order.interval), order.hook_again, tuple(env.target_words()))
    # The rules of the waves say how long each may take.
    with open_admin(env, stop_after_s=float("inf") if order.execute else None) as admin:
        where = identity(admin, env)
        path = order.state or order.waves.with_name(f"{order.waves.name}.state.json")
        file = StateFile(path, str(where["id"]))
        if not order.execute:
            return show(env, _foreseen(admin, file, waves, options, where))
        with file.alone():
            foreseen = _foreseen(admin, file, waves, options, where)
            Consent(True, order.yes).ask(env, foreseen, f"run the waves of {order.waves}?")
            return _execute(env, admin, file, waves, options, where)


def _foreseen(
    admin: "ClusterView", file: StateFile, waves: Sequence[Wave], options: Options, where: Document
) -> Result:
    """Return where the run would resume, with the plan of all groups that are still to be planned."""
    runs = list(continued(waves, file.read()))
    left = [run for run in runs if run.step != DONE]
    cut_off: dict[str, tuple[Stop, ...]] = {}
    planned: list[WaveRun] = []
    for run in left:
        try:
            planned += [run] if goes_on_at(run, options.hook_again) == PLAN else []
        except Stopped as stopped:
            cut_off[run.name] = stopped.stops
    fleet = plan_fleet(admin, (group_id for run in planned for group_id in run.group_ids))
    verdicts = {row.group_id: row.verdict for row in fleet.rows}
    stops = tuple(against(fleet))
    shown = [
        replace(
            run,
            groups=tuple(replace(g, verdict=verdicts.get(g.group_id, g.verdict)) for g in run.groups),
            stops=(*cut_off.get(run.name, ()), *(s for s in stops if s.group_id in run.group_ids)),
        )
        if run in left
        else run
        for run in runs
    ]
    lines = [_summary(shown)]
    if left:
        lines.append(
            f"resumes with {left[0].name}" if left[0].step != WAITING else f"begins with {left[0].name}"
        )
    return replace(_result(shown, file, False, lines, where), remark=NOT_YET if left else "")


def _execute(
    env: Env, admin: "ClusterView", file: StateFile, waves: Sequence[Wave], options: Options, where: Document
) -> ExitCode:
    reported: dict[str, object] = {}

    def store(runs: Sequence[WaveRun]) -> None:
        """Store the waves and print those that changed: lines for people, ndjson for programs."""
        file.write(runs)
        for run in runs:
            moment, line = _line(run) if env.output.is_lines else ("", "")
            # Every poll changes the fields that this leaves out.
            groups = (replace(g, seen_ms=None, unowned_partition_ms=Unowned()) for g in run.groups)
            news: object = line or replace(run, groups=tuple(groups), started_ms=None, ended_ms=None)
            if reported.setdefault(run.name, news) == news:
                continue
            reported[run.name] = news
            if env.output.is_lines:
                print(clean(f"{moment}  {line}"), flush=True)
            elif env.output.format == "ndjson":
                print(json_line("upgrade run", document(run)), flush=True)

    made = WavesRun(admin, waves, list(continued(waves, file.read())), store, options)
    ended: ExitCode | None = None
    with _ended_by_sigterm():
        try:
            made.go()
        except _Terminated:
            ended = ExitCode.TERMINATED
        except KeyboardInterrupt:
            ended = ExitCode.INTERRUPTED
        file.write(made.runs)
    result = _result(made.runs, file, True, [_summary(made.runs)], where)
    if env.output.format == "ndjson":
        result = Result({}, errors=result.errors, exit_code=result.exit_code)
    return show(env, result if ended is None else replace(result, exit_code=ended))


class _Terminated(KeyboardInterrupt):
    """The arrival of SIGTERM."""


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the run as Ctrl-C does: what was begun is stored."""

    def end(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _result(
    runs: Sequence[WaveRun], file: StateFile, executed: bool, lines: Sequence[str], where: Document
) -> Result:
    stops = [(run, stop) for run in runs for stop in run.stops]
    entries = [run.journal_id for run in runs if run.journal_id is not None]
    data: Document = {
        "executed": executed,
        "state_file": str(file.path),
        "journal_id": entries[-1] if entries else None,
        "waves": [document(run) for run in runs],
    }
    if executed:
        lines = [*lines, *([f"journal {', '.join(entries)}"] if entries else [])]
    rows: list[Document] = []
    for run in runs:
        for group in run.groups:
            unseen = group.seen_ms is not None and group.type is None
            spans = group.unowned_partition_ms
            rows.append(
                {
                    "wave": run.name,
                    "step": "STOPPED" if run.stops else run.step,
                    "group_id": group.group_id,
                    "verdict": group.verdict,
                    "members": UNKNOWN if unseen else group.members,
                    "moved": UNKNOWN if unseen else group.moved,
                    "lag_before": group.lag_before,
                    "unowned": f"{spans.at_least / 1000:.1f}-{spans.at_most / 1000:.1f}",
                }
            )
    return Result(
        data,
        [*lines, Table(_COLUMNS, rows), *(_ways_back(runs) if executed else ())],
        items="waves",
        names=[run.name for run in runs if run.step != DONE],
        errors=[
            ItemError(stop.group_id or run.name, stop.reason or stop.why.upper(), stop.message, stop.hint)
            for run, stop in stops
        ],
        exit_code=exit_code_of([stop for _, stop in stops]),
        cluster=where,
    )


def exit_code_of(stops: Sequence[Stop]) -> ExitCode:
    """Return the exit code of a run stopped for these reasons; OK for none."""
    for why, code in (
        (BLOCKED, ExitCode.REFUSED),
        (RULE, ExitCode.BAD_VERDICT),
        (STUCK, ExitCode.BAD_VERDICT),
        (HOOK, ExitCode.FAILED),
    ):
        if any(stop.why == why for stop in stops):
            return code
    if not stops:
        return ExitCode.OK
    reasons = [stop.reason or "NOT_KNOWN" for stop in stops]
    absent = all(of_code_name(reason) == ExitCode.NOT_FOUND for reason in reasons)
    return ExitCode.NOT_FOUND if absent else only_rights(reasons)


def _ways_back(runs: Sequence[WaveRun]) -> Iterator[str]:
    """Yield how to go back: for the wave that stopped, otherwise for all."""
    stopped = [run for run in runs if run.stops]
    groups = [group for run in stopped or runs for group in run.groups]
    lines = [group.back for group in groups if group.back is not None]
    unseen = [group.group_id for group in groups if group.seen_ms is not None and group.type is None]
    yield from (f"undo: {line}" for line in lines[:MOST_WAYS])
    if len(lines) > MOST_WAYS:
        yield f"undo: {len(lines) - MOST_WAYS} more: `back` of each group in -o json"
    if unseen:
        yield f"unknown whether these have changed over: {first_of(unseen)} (kgroup describe shows it)"
    if not lines and not unseen:
        yield "undo: none, no group has changed over"


def _summary(runs: Sequence[WaveRun]) -> str:
    done = sum(run.step == DONE for run in runs)
    groups = sum(len(run.groups) for run in runs)
    return (
        f"{count_of(len(runs), 'wave')}, {count_of(groups, 'group')}   {done} of "
        f"{count_of(len(runs), 'wave')} done"
    )


def _line(run: WaveRun) -> tuple[str, str]:
    """Return when a wave was seen last, and its current step."""
    seen = max((group.seen_ms for group in run.groups if group.seen_ms), default=run.started_ms or 0)
    parts = [run.name, "stopped" if run.stops else run.step]
    if run.step == MOVE and run.hook is not None:
        ended = run.hook.failure or f"exit code {run.hook.exit_code}"
        parts.append(f"hook: {'runs' if run.hook.ended_ms is None else ended}")
    parts += [
        f"{group.group_id}: {group.moved} of {group.members} moved"
        + (f", {group.waits[0]}" if group.waits else "")
        for group in run.groups
        if group.moved is not None and group.remaining
    ][:3]
    return (iso(seen) or "")[11:], "  ".join(parts)
