"""`kgroup watch`: groups as they change."""

import sys
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgroup.cli.env import Env, parse_duration
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.options import command as make

if TYPE_CHECKING:
    from kgroup.admin.models import GroupDescription
    from kgroup.admin.watching import Change

_HOME_AND_CLEAR = "\033[H\033[2J"


@make(
    "watch",
    examples=(
        ("kgroup watch orders", "members, assignment and lag, live"),
        ("kgroup watch orders --until stable --stop-after 5m", "until it has settled"),
        ("kgroup watch 'pay*' --events > changes.ndjson", "every difference as a JSON object a line"),
        ("kgroup watch orders --events --notify http://hooks.local/kafka", "and posted to a web address"),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str], typer.Argument(help="Group ids or globs.", metavar="GROUP…")],
    until: Annotated[
        str | None,
        typer.Option(
            "--until", metavar="CONDITION", help="End when: stable|empty|gone|lag=N|members=N|member=ID."
        ),
    ] = None,
    events: Annotated[bool, typer.Option("--events", help="Differences as ndjson, no screen.")] = False,
    lag: Annotated[bool, typer.Option("--lag", help="Changes of the lag are events too.")] = False,
    notify: Annotated[
        str | None, typer.Option("--notify", metavar="URL", help="Post each event there as JSON.")
    ] = None,
    interval: Annotated[
        str, typer.Option("--interval", metavar="DURATION", help="How often to look. Default 1s.")
    ] = "1s",
    stop_after: Annotated[
        str | None,
        typer.Option("--stop-after", metavar="DURATION", help="End then; exit code 7 with --until."),
    ] = None,
) -> ExitCode:
    """Watch groups: a live view on a terminal, else a line for each difference, until Ctrl-C.

    Looks at intervals: what begins and ends between two looks is not seen. `replay-log` tells all.
    """
    from kgroup.admin.conditions import Condition, groups_now
    from kgroup.admin.watching import differences
    from kgroup.cli.group_names import resolve
    from kgroup.cli.session import identity, open_admin

    condition = Condition.parse(until) if until else None
    every_s = max(parse_duration(interval), 0.01)
    limit_s = parse_duration(stop_after) if stop_after else float("inf")
    view = _View(env, events, notify)
    with open_admin(env) as admin:
        names = resolve(admin, group)
        where = identity(admin, env)
        clock, pause = admin.cluster.retry.clock, admin.cluster.retry.sleep
        start, seen = clock(), None
        while True:
            now = groups_now(admin.cluster, names, offsets=True)
            if seen is not None:
                for name in names:
                    view.tell(differences(name, seen[name], now[name], lag=lag))
            view.draw(now, first=seen is None)
            seen = now
            held = condition is not None and all(condition.holds(now[name]) for name in names)
            left = start + limit_s - clock()
            if held or left <= 0:
                break
            pause(min(every_s, left))
    view.end(now, where)
    if condition and not held:
        late = [name for name in names if not condition.holds(now[name])]
        raise Failure(
            ExitCode.UNREACHABLE,
            "TIMED_OUT",
            f"{', '.join(late)}: not {until} after {stop_after}",
            None,
            late[0],
        )
    return ExitCode.OK


class _View:
    """Where differences go: a screen, lines of text, ndjson, or (-o json) one document at the end."""

    def __init__(self, env: Env, events: bool, notify: str | None) -> None:
        self._env = env
        self._notify = notify
        self._ndjson = events or env.output.format == "ndjson"
        self._document = env.output.is_document and not events
        self._screen = env.output.terminal and not self._ndjson and not self._document
        self._kept: list[dict[str, Any]] = []

    def tell(self, changes: "Iterable[Change]") -> None:
        """Put out what changed, as it is seen."""
        from kgroup.cli.output import schema_id

        for change in changes:
            row = _json(change)
            if self._notify:
                self._post(row)
            if self._document:
                self._kept.append(row)
            elif self._ndjson:
                import json

                print(json.dumps({"schema": schema_id("watch"), **row}, ensure_ascii=False), flush=True)
            elif not self._screen:
                print(_line(row), flush=True)

    def draw(self, now: "Mapping[str, GroupDescription | None]", first: bool) -> None:
        """The groups as they are: on a screen always, in lines of text at first only."""
        if not self._screen and (not first or self._ndjson or self._document):
            return
        from kgroup.cli.description import blocks
        from kgroup.cli.output import Result, show

        shown: list[Any] = []
        for name, group in now.items():
            shown += [""] if shown else []
            sections = ("summary", "members", "findings")
            shown += (
                [f"{name}   does not exist"] if group is None else blocks(group, sections, "instance", True)
            )
        if self._screen:
            clock = time.strftime("%H:%M:%S")
            sys.stdout.write(f"{_HOME_AND_CLEAR}{clock}   every look replaces the last; Ctrl-C ends\n\n")
        show(self._env, Result({}, shown))

    def end(self, now: "Mapping[str, GroupDescription | None]", where: Mapping[str, Any]) -> None:
        """The document, where one was asked for."""
        if self._document:
            from kgroup.cli.output import Result, show

            groups = [{"group_id": name, "state": g.state if g else None} for name, g in now.items()]
            show(self._env, Result({"events": self._kept, "groups": groups}, items="events", cluster=where))

    def _post(self, row: Mapping[str, Any]) -> None:
        from kgroup.cli.webhook import post

        assert self._notify is not None
        problem = post(self._notify, row)
        if problem:
            self._env.note(f"warning: {problem}")


def _json(change: "Change") -> dict[str, Any]:
    from kgroup.cli.times import iso

    now_ms = time.time_ns() // 1_000_000
    return {
        "time_ms": now_ms,
        "time": iso(now_ms),
        "group_id": change.group_id,
        "event": change.event,
        "member_id": change.member_id,
        "instance_id": change.instance_id,
        "detail": dict(change.detail),
    }


def _line(row: Mapping[str, Any]) -> str:
    from kgroup.cli.tables import clean

    who = row["instance_id"] or row["member_id"]
    detail = row["detail"]
    if "before" in detail:
        text = f"{detail['before']} → {detail['after']}"
    else:
        text = "  ".join(f"{key} {_value(value)}" for key, value in detail.items() if value not in ([], None))
    return clean(
        f"{row['time'][11:-1]}  {row['group_id']}  {row['event']}  {who + '  ' if who else ''}{text}"
    )


def _value(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
