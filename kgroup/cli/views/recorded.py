"""`doctor --at`: the check-ups that a recorder had stored at a moment."""

from collections.abc import Sequence
from pathlib import Path

from kgroup.admin.models import ItemError
from kgroup.admin.recording.lines import Judged
from kgroup.admin.recording.then import Then, at, not_found
from kgroup.cli.env.invocation import Env
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.inputs.group_names import is_glob, matches
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.times import parse_time
from kgroup.cli.views.checkups import code_of, result_of
from kgroup.domain import Document
from kgroup.durations import iso
from kgroup.errors import ConfigError
from kgroup.storage.location import Location


def examine_then(
    env: Env, groups: Sequence[str], files: Sequence[str], moment: str, top: int | None
) -> ExitCode:
    """Show the check-ups of groups, or of all, as they were stored at a moment."""
    from kgroup.admin.diagnose.doctor import Examined

    if len(files) != 1:
        raise ConfigError("--at reads one recording", "add --files DIR, the folder of kgroup record")
    place = Location.parse(files[0])
    if not place.is_local:
        raise ConfigError(f"{place} is no folder of this machine", "kgroup record writes into local folders")
    past = at(Path(place.local), parse_time(moment))
    if past.unknown is not None:
        return show(env, _unknown(past))
    names, errors = _chosen(past, groups)
    judged = [line for name in names if isinstance(line := past.judged.get(name), Judged)]
    errors += [not_found(past, name) for name in names if not isinstance(past.judged.get(name), Judged)]
    examined = Examined(tuple(line.checkup for line in judged), tuple(errors))
    many = not groups or any(map(is_glob, groups))
    hidden = past.looked.unseen if past.looked is not None and many else ()
    code = code_of(examined, hidden)
    if any(error.code == "NOT_SEEN" for error in errors):
        code = ExitCode.PARTIAL
    head = (past.text, "")
    return show(env, result_of(examined, hidden, code, top=top, head=head, recorded=recorded(past)))


def _chosen(past: Then, groups: Sequence[str]) -> tuple[list[str], list[ItemError]]:
    """Return the groups meant; all that were seen, if none is named."""
    there = sorted(name for name, line in past.judged.items() if not _is_gone(line))
    if not groups:
        return there, []
    names: dict[str, None] = {}
    errors = []
    for wanted in groups:
        matching = [name for name in there if matches(wanted, name)] if is_glob(wanted) else [wanted]
        names |= dict.fromkeys(matching)
        if not matching:
            errors.append(not_found(past, wanted))
    return list(names), errors


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


def _unknown(past: Then) -> Result:
    why = past.unknown or ""
    errors = [ItemError("", "NOT_SEEN", why)]
    data: Document = {"groups": [], "recorded": recorded(past)}
    return Result(data, [f"UNKNOWN: {why}"], items="groups", errors=errors, exit_code=ExitCode.PARTIAL)
