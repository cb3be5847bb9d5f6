"""`doctor --rights`: the commands this principal can use, what it lacks, and the ACLs to ask for."""

from collections.abc import Iterable, Iterator, Sequence

from kgroup.admin.models import ItemError
from kgroup.admin.rights.needs import COMMANDS, WITHOUT_CLUSTER
from kgroup.admin.rights.report import PLACEHOLDER, Ability, Asked, kafka_acls
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.output.result import Result
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import UNKNOWN
from kgroup.domain import Document
from kgroup.errors import ConfigError
from kgroup.security.rights import Right

_COLUMNS = (
    Column("command"),
    Column("usable", style={"yes": "green", "no": "red"}),
    Column("missing"),
    Column("unknown", wide=True),
)
_USABLE = {True: "yes", False: "no", None: UNKNOWN}


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Return the requested rows of the table, by default all; raise ConfigError for an unknown name."""
    words = [name.strip() for given in names for name in given.split(",") if name.strip()]
    for name in words:
        if name in WITHOUT_CLUSTER:
            raise ConfigError(f"{name} asks no cluster and needs no right", "leave it out")
        if name not in COMMANDS:
            raise ConfigError(
                f"--for {name!r} is no command that needs a right", "known: " + ", ".join(COMMANDS)
            )
    return tuple(dict.fromkeys(words)) or tuple(COMMANDS)


def result_of(
    examined: Sequence[Ability],
    asked: Asked,
    principal: str | None,
    where: Document,
    *,
    named: bool,
    for_another: bool,
) -> Result:
    """Return what a principal can do, and the ACLs to ask for, if the commands were `named`.

    The ACLs `for_another` principal are all that the commands need.
    """
    address = str(where["bootstrap"] or "BROKER:9092")
    # For another principal all of them; else those not known to be granted.
    rights_of = {
        ability: tuple(need.right for need in ability.needs)
        if for_another
        else (*ability.missing, *ability.unknown)
        for ability in examined
    }
    rows = [_json(ability, kafka_acls(rights, principal, address)) for ability, rights in rights_of.items()]
    rights = dict.fromkeys(right for those in rights_of.values() for right in those) if named else None
    data = {"principal": principal, "group_id": asked.group_id, "topic": asked.topic, "commands": rows}
    errors = []
    # Requested commands that cannot be used, or for which that is unknown.
    for ability in examined if named else ():
        if ability.usable is False:
            lacks = " and ".join(map(str, ability.missing))
            message = f"{ability.command}: this principal lacks {lacks}"
            errors.append(ItemError(ability.command, "RIGHTS_MISSING", message))
        elif ability.usable is None:
            hidden = " and ".join(map(str, ability.unknown))
            message = f"{ability.command}: no broker reports whether it has {hidden}"
            errors.append(ItemError(ability.command, "RIGHTS_UNKNOWN", message))
    code = ExitCode.PARTIAL if any(ability.usable is None for ability in examined) else ExitCode.OK
    if named and any(ability.usable is False for ability in examined):
        code = ExitCode.NOT_AUTHORISED
    table = Table(_COLUMNS, [_row(ability) for ability in examined])
    return Result(
        data,
        [table, *_asking(examined, rights, principal, address)],
        items="commands",
        names=[ability.command for ability in examined if ability.usable],
        errors=errors,
        exit_code=code,
        cluster=where,
        main=table,
    )


def _json(ability: Ability, acls: Sequence[str]) -> Document:
    return {
        "command": ability.command,
        "usable": ability.usable,
        "needs": [
            {
                "operation": need.right.operation,
                "resource_type": need.right.resource,
                "resource_name": need.right.name or None,
                "held": need.held,
            }
            for need in ability.needs
        ],
        "missing": [str(right) for right in ability.missing],
        "unknown": [str(right) for right in ability.unknown],
        "acls": list(acls),
        "note": ability.note or None,
    }


def _row(ability: Ability) -> Document:
    return {
        "command": ability.command,
        "usable": _USABLE[ability.usable],
        "missing": ", ".join(map(str, ability.missing)),
        "unknown": ", ".join(map(str, ability.unknown)),
    }


def _asking(
    examined: Sequence[Ability], rights: Iterable[Right] | None, principal: str | None, address: str
) -> Iterator[str]:
    """Return the ACL lines to request, for the commands named: all together are too many."""
    if rights is None:
        yield from ("", "--for COMMAND shows the ACLs to ask for, the least that the command needs")
        return
    lines = kafka_acls(rights, principal, address)
    if not lines:
        return
    yield from ("", "to ask for:")
    yield from (f"  {line}" for line in lines)
    if principal is None:
        yield f"put the principal that brokers make of this login in the place of {PLACEHOLDER}"
    for note in dict.fromkeys(ability.note for ability in examined if ability.note):
        yield f"why so wide: {note}"
