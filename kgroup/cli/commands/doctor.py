"""`kgroup doctor`: what is wrong with groups, and the evidence."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.models import ItemError
from kgroup.admin.shell import command as line
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, limit_of_many, open_admin
from kgroup.cli.exit_codes import ExitCode, of_batch
from kgroup.cli.frame.declaring import argument, option
from kgroup.cli.frame.options import command as make
from kgroup.cli.inputs.group_names import every, expand
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Painted, Table
from kgroup.cli.output.wording import (
    MARKS,
    exit_codes,
    finding_line,
    more_findings,
    of_seen,
    only_rights,
)
from kgroup.domain import Document, count_of, grouped
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.admin.diagnose.doctor import Checkup

_WORDS = {"sick": "NOT HEALTHY", "unknown": "UNKNOWN", "healthy": "healthy"}
"""The verdicts, in the order in which groups are shown."""
_STYLES = {"sick": "bold red", "unknown": "magenta", "healthy": "green"}
LOOKS = ("history", "settings", "transactions", "lag", "assignments")


@make(
    "doctor",
    examples=(
        ("kgroup doctor orders -b broker:9092", "who blocks, since when, what is about to be lost"),
        ("kgroup doctor 'pay*' -q || echo not healthy", "exit code 8 when a finding is an error"),
        ("kgroup doctor --all-groups --window 24h -o json", "with a day of history, for a script"),
        (
            "kgroup doctor orders --without history,settings",
            "with the right to see the group and its topics only",
        ),
        ("kgroup doctor --kafka 5", "what in the cluster stands against Kafka 5.0"),
        ("kgroup doctor orders --rights", "which commands this login can use on the group"),
        ("kgroup doctor orders --rights --for reset-offsets", "and the ACLs to ask for, as kafka-acls lines"),
    ),
)
def command(
    env: Env,
    group: Annotated[list[str] | None, argument("[GROUP]…", "Group ids or globs.")] = None,
    all_groups: Annotated[bool, option("--all-groups", "Every group of the cluster.")] = False,
    window: Annotated[str, option("--window DURATION", "How far back to read the history.")] = "1h",
    without: Annotated[
        str | None,
        option(
            "--without A,B,…", "Checks to leave out: " + ",".join(LOOKS) + ".", autocompletion=lambda: LOOKS
        ),
    ] = None,
    patience: Annotated[
        str,
        option(
            "--patience DURATION",
            "How long to keep looking at a group that is rebalancing or has offsets held open.",
        ),
    ] = "10s",
    top: Annotated[
        int | None, option("--top N", "Only the N worst findings of each group. Not in JSON.", min=1)
    ] = None,
    kafka: Annotated[
        str | None,
        option(
            "--kafka RELEASE", "What stands against this release of Kafka (5), of all groups or of those."
        ),
    ] = None,
    rights: Annotated[
        bool, option("--rights", "Which commands this principal can use here; changes nothing.")
    ] = False,
    for_: Annotated[
        list[str] | None,
        option("--for COMMAND", "With --rights: only these commands, and the ACLs to ask for."),
    ] = None,
    topic: Annotated[str | None, option("--topic TOPIC", "With --rights: for this topic only.")] = None,
    principal: Annotated[
        str | None, option("--principal TYPE:NAME", "With --rights: the principal to write into the ACLs.")
    ] = None,
) -> ExitCode:
    """Check groups: stuck rebalances, open transactions, absent members, lost and expiring offsets.

    A group is healthy (exit code 0) if everything was examined and no finding is an error; an error gives 8.
    Anything that could not be examined makes it unknown: 6 if rights are missing, 7 if no broker answers, 5
    otherwise, or if that is so for some groups only. Uses what describe shows, settings, and the history
    in __consumer_offsets.
    With --kafka 5 it checks the brokers and the plan of each group instead: 8 if clients that join with the
    default of that release, the consumer protocol, would be refused.
    With --rights it checks what this principal may do instead: 6 if a command named by --for lacks a right,
    5 if that is not known.
    """
    if kafka is not None:
        from kgroup.cli.views.release import examine as examine_release

        if rights:
            raise ConfigError("--kafka and --rights are two questions", "ask one after the other")
        return examine_release(env, kafka, group or ())
    if rights:
        from kgroup.cli.views.rights import examine as examine_rights

        return examine_rights(env, group or (), topic, for_ or (), principal)
    for option_, value in (("--for", for_), ("--topic", topic), ("--principal", principal)):
        if value is not None:
            raise ConfigError(f"{option_} is about rights", "add --rights")
    left_out = tuple(name.strip() for name in (without or "").split(",") if name.strip())
    for name in left_out:
        if name not in LOOKS:
            raise ConfigError(f"--without {name!r} is unknown", "one of " + ", ".join(LOOKS))
    if bool(group) == all_groups:
        raise ConfigError("name the groups to check, or --all-groups", "kgroup list shows the groups")
    window_ms, patience_s = int(parse_duration(window) * 1000), parse_duration(patience)
    with open_admin(env, stop_after_s=limit_of_many(env)) as admin:
        named = every(admin) if all_groups else expand(admin, group or [])
        found = admin.examine(named.groups, window_ms=window_ms, left_out=left_out, patience_s=patience_s)
        where = identity(admin, env)
    checkups = found.checkups
    sick = [checkup for checkup in checkups if checkup.verdict == "sick"]
    unknown = [checkup for checkup in checkups if checkup.verdict == "unknown"]
    columns = (Column("group_id", "GROUP"), Column("code"), Column("severity"), Column("message"))
    rows = [{"group_id": c.group.group_id, **asdict(finding)} for c in checkups for finding in c.findings]
    unseen = (*found.errors, *named.unseen)
    codes = [*exit_codes(found.errors), *(_code_of(checkup) for checkup in unknown)]
    code = of_batch(codes, len(unknown) < len(checkups))
    code = of_seen(ExitCode.PARTIAL if len(set(codes)) > 1 else code, named.unseen)
    return show(
        env,
        Result(
            {"groups": [_json(checkup) for checkup in checkups]},
            list(_blocks(checkups, top)),
            items="groups",
            names=[checkup.group.group_id for checkup in sick],
            errors=[*unseen, *_unseen(checkups)],
            exit_code=ExitCode.BAD_VERDICT if sick else code,
            cluster=where,
            main=Table(columns, rows),
        ),
    )


def _code_of(checkup: "Checkup") -> ExitCode:
    """Return the exit code of an unknown verdict: the group was seen, and a part of it was not."""
    return only_rights(each.code for each in checkup.unseen)


def _unseen(checkups: "Iterable[Checkup]") -> list[ItemError]:
    """Return the failed polls; the same failure of many groups once."""
    groups = grouped(
        ((each.look, each.code, each.message), checkup.group.group_id)
        for checkup in checkups
        for each in checkup.unseen
    )
    errors = []
    for (look, code, message), names in groups.items():
        more = f" and {count_of(len(names) - 1, 'more group')}" if len(names) > 1 else ""
        hint = f"--without {look} leaves it out of the verdict" if look in LOOKS else None
        errors.append(ItemError(names[0], code, f"{names[0]}{more}: could not check {look}: {message}", hint))
    return errors


def _json(checkup: "Checkup") -> Document:
    return {
        "group_id": checkup.group.group_id,
        "type": checkup.group.type,
        "state": checkup.group.state,
        "verdict": checkup.verdict,
        "healthy": checkup.healthy,
        "findings": [asdict(found) for found in checkup.findings],
        "statuses": [asdict(alike) for alike in checkup.statuses],
        "skipped": [f"{each.look}: {each.message}" for each in checkup.unseen],
    }


def _blocks(checkups: "Sequence[Checkup]", top: int | None) -> Iterator[str]:
    """Yield the groups, sick ones first; where there are several, a healthy one in one line."""
    order = list(_WORDS)
    brief = len(checkups) > 1
    shown = False
    for checkup in sorted(checkups, key=lambda checkup: order.index(checkup.verdict)):
        if brief and checkup.healthy:
            codes = grouped((found.severity, found.code) for found in checkup.findings)
            noted = "".join(f"   {MARKS[severity]} {' '.join(found)}" for severity, found in codes.items())
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


def _text(checkup: "Checkup", top: int | None) -> Iterator[str]:
    yield Painted(_headline(checkup), _STYLES[checkup.verdict])
    if not checkup.findings:
        yield "nothing found" + (" in what could be examined" if checkup.unseen else "")
    for found in checkup.findings[:top]:
        yield finding_line(found)
        yield from (f"     {fact}" for fact in found.evidence)
        if found.hint:
            yield f"     → {found.hint}"
    yield from more_findings(checkup.findings, top)
    if checkup.verdict == "healthy":
        blame = line("blame", checkup.group.group_id)
        yield f"     → {blame} names what set off its last rebalance or rewind"
    for each in checkup.unseen:
        yield f"? could not check {each.look}: {each.message}"
