"""`kgroup watch`: groups as they change."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.models import GroupDescription, ItemError
from kgroup.admin.read.watching import Change, differences, sight_changes
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.escaping import clean
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.env.webhook import CLOSING_S, Webhook, webhook_at
from kgroup.cli.exit_codes import ExitCode, Failure
from kgroup.cli.frame.options import make
from kgroup.cli.inputs.group_names import expand
from kgroup.cli.output.result import Result, error_of, json_line, show
from kgroup.cli.output.tables import Block
from kgroup.cli.output.wording import of_seen
from kgroup.domain import Document
from kgroup.durations import iso, parse_duration

if TYPE_CHECKING:
    from kgroup.admin.read.conditions import Condition, Looks


_HOME_AND_CLEAR = "\033[H\033[2J"


@make(
    "watch",
    examples=(
        ("kgroup watch orders", "members, assignment and lag, live"),
        ("kgroup watch orders --until stable --stop-after 5m", "until it has settled"),
        ("kgroup watch 'pay*' --events > changes.ndjson", "each difference as one JSON object per line"),
        ("kgroup watch orders --events --notify https://hooks.local/kafka", "and posted to a web address"),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str], argument("GROUP…", "Group ids or globs.")],
    until: Annotated[
        str | None,
        option("--until CONDITION", "Stop when: stable|empty|gone|static|lag=N|members=N|member=ID."),
    ] = None,
    events: Annotated[bool, option("--events", "Print differences as ndjson instead of a screen.")] = False,
    lag: Annotated[bool, option("--lag", "Report changes in lag as events too.")] = False,
    notify: Annotated[str | None, option("--notify URL", "Post each event to this URL as JSON.")] = None,
    notify_secret_file: Annotated[
        Path | None,
        option(
            "--notify-secret-file FILE",
            "Secret that signs the posts; else KGROUP_NOTIFY_SECRET, or the context's notify.secret.",
        ),
    ] = None,
    interval: Annotated[str, option("--interval DURATION", "How often to poll.")] = "1s",
    stop_after: Annotated[
        str | None, option("--stop-after DURATION", "Stop after this long; exit code 7 with --until.")
    ] = None,
) -> ExitCode:
    """Watch groups until Ctrl-C: a live view on a terminal, otherwise one line per difference.

    Polls at intervals, so whatever begins and ends between two polls is missed; `replay-log` shows it.
    Outages are reported and survived; exit code 5 if something was not visible at the end.
    Posts are signed, and retried in order; any that could not be delivered is named, and the exit code is 5.
    """
    from kgroup.admin.read.conditions import Condition, look_until

    condition = Condition.parse(until) if until else None
    every_s = max(parse_duration(interval), 0.01)
    limit_s = parse_duration(stop_after) if stop_after else float("inf")
    with posting(env, notify, notify_secret_file) as hook, open_admin(env, stop_after_s=limit_s) as admin:
        view = _View(env, events, hook)

        def find() -> tuple[Sequence[str], Sequence[ItemError]]:
            named = expand(admin, group, waiting=True)
            return named.groups, named.unseen

        before: dict[str, GroupDescription | None] = {}
        lost: dict[str, ItemError] = {}
        for looks in look_until(admin, find, limit_s, every_s):
            view.report(sight_changes(lost, looks.problems))
            for name in looks.names:
                if name in before and name not in looks.failed:
                    view.report(differences(name, before[name], looks.seen[name], lag=lag))
            view.draw(looks.seen, first=not before)
            late = [
                name
                for name in looks.names
                if condition is None
                or name not in looks.seen
                or name in looks.failed
                or not condition.holds(looks.seen[name])
            ]
            waiting = [name for name in late if not _never_known(condition, looks, name)]
            if condition and looks.names and not waiting and looks.complete:
                break
            before, lost = dict(looks.seen), dict(looks.problems)
        where = identity(admin, env, ask=False)
    failure = _failure(looks, late if condition else [], condition, until, stop_after)
    return view.end(looks, where, failure)


def _never_known(condition: "Condition | None", looks: "Looks", name: str) -> ItemError | None:
    """Return why the group's lag cannot be seen, where it matters: without a condition all of it is shown."""
    from kgroup.admin.read.conditions import Condition, never_known

    return never_known(looks.seen.get(name), condition or Condition("lag"))


def _failure(
    looks: "Looks", late: list[str], condition: "Condition | None", until: str | None, stop_after: str | None
) -> Failure | None:
    """Return the failure: time was up for a group that was seen, or something was not visible at the end."""
    timed_out = [name for name in late if name in looks.seen and not _never_known(condition, looks, name)]
    if timed_out:
        message = f"{', '.join(timed_out)}: not {until} after {stop_after}"
        return Failure(ExitCode.UNREACHABLE, "TIMED_OUT", message, None, timed_out[0])
    never = [_never_known(condition, looks, name) for name in looks.names]
    dark = [*looks.unseen, *looks.failed.values(), *filter(None, never)]
    if not dark:
        return None
    said = "; ".join(dict.fromkeys(error.message for error in dark))
    hint = next((error.hint for error in dark if error.hint), None)
    code = of_seen(ExitCode.OK, dark)
    return Failure(code, "NOT_SEEN", f"not all could be seen at the end: {said}", hint, dark[0].item)


class _View:
    """The output of differences: a screen, lines of text, ndjson, or (-o json) one document at the end."""

    def __init__(self, env: Env, events: bool, hook: "Webhook | None") -> None:
        self._env = env
        self._hook = hook
        self._ndjson = events or env.output.format == "ndjson"
        self._document = env.output.is_document and not events
        self._screen = env.output.terminal and not self._ndjson and not self._document
        self._kept: list[Document] = []

    def report(self, changes: "Iterable[Change]") -> None:
        """Print what changed, as it is seen."""
        for change in changes:
            now_ms = time.time_ns() // 1_000_000
            row: Document = {"time_ms": now_ms, "time": iso(now_ms), **asdict(change)}
            if self._hook is not None:
                self._hook.put(row)
            if self._document:
                self._kept.append(row)
            elif self._ndjson:
                print(json_line("watch", row), flush=True)
            elif not self._screen:
                who = change.instance_id or change.member_id
                text = "  ".join(f"{k} {_value(v)}" for k, v in change.detail.items() if v not in ([], None))
                if "before" in change.detail:
                    text = f"{_value(change.detail['before'])} → {_value(change.detail['after'])}"
                head = f"{(iso(now_ms) or '')[11:]}  {change.group_id}  {change.event}"
                print(clean(f"{head}  {who + '  ' if who else ''}{text}"), flush=True)

    def draw(self, now: Mapping[str, GroupDescription | None], first: bool) -> None:
        """Draw the current groups: on a screen always, in lines of text at first only."""
        if not self._screen and (not first or self._ndjson or self._document):
            return
        from kgroup.cli.views.description import blocks

        shown: list[Block] = []
        for name, group in now.items():
            shown += [""] if shown else []
            sections = ("summary", "members", "findings")
            shown += (
                [f"{name}   does not exist"] if group is None else blocks(group, sections, "instance", True)
            )
        if self._screen:
            clock = time.strftime("%H:%M:%S UTC", time.gmtime())
            sys.stdout.write(f"{_HOME_AND_CLEAR}{clock}   every poll replaces the last; Ctrl-C ends\n\n")
        show(self._env, Result({}, shown))

    def end(self, looks: "Looks", where: Mapping[str, object], failure: Failure | None) -> ExitCode:
        """Return the document, where requested, and what went wrong."""
        errors = [error_of(failure)] if failure else []
        lost = () if self._hook is None else self._hook.lost
        errors += [ItemError("", NOT_DELIVERED, loss.sentence) for loss in lost]
        code = failure.exit_code if failure else ExitCode.PARTIAL if lost else ExitCode.OK
        if not self._document:
            return show(self._env, Result({}, errors=errors, exit_code=code))
        states = {name: group.state if group else None for name, group in looks.seen.items()}
        groups = [{"group_id": name, "state": states.get(name, "not seen")} for name in looks.names]
        data = {"events": self._kept, "groups": groups}
        return show(self._env, Result(data, items="events", errors=errors, exit_code=code, cluster=where))


def _value(value: object) -> str:
    if value is None:
        return "unknown"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


NOT_DELIVERED = "NOT_DELIVERED"


@contextmanager
def posting(env: Env, url: str | None, secret_file: Path | None) -> "Iterator[Webhook | None]":
    """Open the webhook at `url`, which delivers or gives up its events by the block's end; None without.

    An interrupted block whose events did not all arrive raises a Failure that names them.
    """
    hook = webhook_at(env, url, secret_file)
    if hook is None:
        yield None
        return
    try:
        yield hook
    except KeyboardInterrupt:
        lost = hook.close(CLOSING_S)
        if not lost:
            raise
        message = "; ".join(loss.sentence for loss in lost)
        raise Failure(ExitCode.PARTIAL, NOT_DELIVERED, message) from None
    finally:
        hook.close(CLOSING_S)
