"""`doctor --at` and `lag --at`: what a recorder had stored at a moment."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgroup.admin.models import ItemError
from kgroup.admin.recording.lines import Judged
from kgroup.admin.recording.then import Then, not_found
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.inputs.group_names import Named, is_glob, matches
from kgroup.cli.views.checkups import code_of, show_checkups
from kgroup.domain import Document
from kgroup.durations import iso

if TYPE_CHECKING:
    from kgroup.cli.views.description import Pick
    from kgroup.cli.views.lagging import Limit


def examine_then(env: Env, groups: Sequence[str], past: Then, top: int | None) -> ExitCode:
    """Show the check-ups of groups, or of all, as they were stored at a moment."""
    from kgroup.admin.diagnose.doctor import Examined

    head, names, errors = _asked(past, groups)
    judged = [line for name in names if isinstance(line := past.judged.get(name), Judged)]
    errors += [not_found(past, name) for name in names if not isinstance(past.judged.get(name), Judged)]
    examined = Examined(tuple(line.checkup for line in judged), tuple(errors))
    hidden = _hidden(past, groups)
    code = code_of(examined, hidden)
    if any(error.code == "NOT_SEEN" for error in errors):
        code = ExitCode.PARTIAL
    return show_checkups(env, examined, hidden, code, top=top, head=head, recorded=recorded(past))


def lag_then(
    env: Env,
    groups: Sequence[str],
    past: Then,
    limit: "Limit | None",
    by_topic: bool,
    in_time: bool,
    pick: "Pick",
) -> ExitCode:
    """Show the lag of groups as it was stored at a moment."""
    from kgroup.admin.read.lag_report import LagReport
    from kgroup.admin.recording.lags import without_times
    from kgroup.cli.views.lag_parts import Shown

    head, names, errors = _asked(past, groups)
    lags = {name: lag for name in names if (lag := past.lag(name)) is not None}
    errors += [_no_lag(past, name) for name in names if name not in lags]
    named = Named(tuple(names), tuple(_hidden(past, groups)))
    measured = tuple(lags.values() if in_time else map(without_times, lags.values()))
    # What was not seen is no group that is missing.
    missing = frozenset(error.item for error in errors if error.code != "NOT_SEEN")
    errors += [error for lag in measured for error in lag.errors]
    shown = Shown(env, limit, by_topic, in_time, None, named, head=head, recorded=recorded(past))
    return shown.show(iter([LagReport(measured, tuple(errors), missing)]), pick)


def _no_lag(past: Then, name: str) -> ItemError:
    if not isinstance(past.judged.get(name), Judged):
        return not_found(past, name)
    why = "the recorder ran with --without lag, or its lines are of another kgroup"
    return ItemError(name, "NOT_SEEN", f"the lag of {name} was not looked at: {why}")


def _hidden(past: Then, groups: Sequence[str]) -> Sequence[ItemError]:
    many = not groups or any(map(is_glob, groups))
    return past.looked.unseen if past.unknown is None and past.looked is not None and many else ()


def _asked(past: Then, groups: Sequence[str]) -> tuple[tuple[str, ...], list[str], list[ItemError]]:
    """Return how an answer begins, the groups meant (all seen ones if none is named), and errors."""
    if past.unknown is not None:
        return (f"UNKNOWN: {past.unknown}",), [], [ItemError("", "NOT_SEEN", past.unknown)]
    head = (past.text, "")
    there = sorted(name for name, line in past.judged.items() if not _is_gone(line))
    if not groups:
        return head, there, []
    names: dict[str, None] = {}
    errors = []
    for pattern in groups:
        matching = [name for name in there if matches(pattern, name)] if is_glob(pattern) else [pattern]
        names |= dict.fromkeys(matching)
        if not matching:
            errors.append(not_found(past, pattern))
    return head, list(names), errors


def _is_gone(line: object) -> bool:
    return getattr(line, "error", line) is None


def recorded(past: Then) -> Document:
    """Return the place of an answer in the recording."""
    look = past.looked
    return {
        "at_ms": past.at_ms,
        "at": iso(past.at_ms),
        "seen_ms": None if look is None else look.at_ms,
        "seen": None if look is None else iso(look.at_ms),
        "next_ms": past.next_ms,
        "interval_ms": None if look is None else look.interval_ms,
        "unknown": past.unknown,
        "log_not_recorded": None if look is None else look.unread,
    }
