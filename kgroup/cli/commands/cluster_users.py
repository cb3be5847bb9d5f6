"""`kgroup cluster user`: the users that brokers authenticate by SCRAM."""

import os
import sys
from collections.abc import Iterable
from dataclasses import asdict
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from kgroup.admin.models import ChangeStatus
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.changes import undo_line, with_undo
from kgroup.cli.frame.options import make, subcommands
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.output.wording import of_seen
from kgroup.domain import Document
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.admin.users import ScramUser

DEFAULT = "SCRAM-SHA-512"
_COLUMNS = (Column("user"), Column("mechanism"), Column("iterations", right=True))
Mechanisms = Annotated[
    list[str] | None, option("--mechanism NAME", "SCRAM-SHA-256 or SCRAM-SHA-512; repeatable.")
]


@make(
    "cluster user add",
    examples=(
        ("kgroup cluster user add alice --local", "asks for the password"),
        ("kgroup cluster user add alice --password-file alice.txt -b broker:9092", "from a file"),
        ("pwgen 20 1 | kgroup cluster user add alice --password-file - -b broker:9092", "from a pipe"),
    ),
)
def add(
    env: Env,
    name: Annotated[str, argument("", "The user.")],
    password_file: Annotated[
        str | None, option("--password-file FILE", "File that holds the password; - is stdin.")
    ] = None,
    password_env: Annotated[
        str | None, option("--password-env NAME", "Environment variable that holds the password.")
    ] = None,
    mechanism: Mechanisms = None,
    iterations: Annotated[int, option("--iterations N", "Rounds of hashing, 4096 to 16384.")] = 8192,
) -> ExitCode:
    """Add a SCRAM user, or change a user's password.

    Asks for the password unless --password-file or --password-env says where it is. It is no option itself:
    other users of the machine could see it there. Brokers are sent a salted hash.
    """

    from kgroup.admin.users import Users

    password = _password(name, password_file, password_env)
    mechanisms = [spelling.upper() for spelling in mechanism or [DEFAULT]]
    with open_admin(env, makes=True) as admin:
        known, _ = Users(admin).list([name])
        entries = [{"mechanism": mechanism, "iterations": iterations} for mechanism in mechanisms]
        plan = {"user": name, "mechanisms": entries}
        with admin.change("cluster user add", plan, _before(known), entries) as entry:
            # One by one, so that the journal shows which are set where a later one is refused.
            for credential in entries:
                Users(admin).set(name, password, [str(credential["mechanism"])], iterations)
                entry.results.append({**credential, "result": ChangeStatus.DONE})
        where = identity(admin, env)
    data = {**plan, "existed": bool(known), "journal_id": entry.id}
    had = {entry.mechanism for user in known for entry in user.mechanisms}
    texts = [f"user {name}: {'new password' if m in had else 'added'} for {m}" for m in mechanisms]
    undo = "undo: none; brokers do not return the password that was there before"
    if not had:
        undo = undo_line(env, "cluster user remove", name, options=[f"--mechanism {m}" for m in mechanisms])
    texts.append(f"journal {entry.id}")
    return show(env, with_undo(Result(data, tuple(texts), names=[name], cluster=where), undo))


@make(
    "cluster user list",
    examples=(
        ("kgroup cluster user list --local", "every SCRAM user"),
        ("kgroup cluster user list alice bob -o json", "these two"),
    ),
)
def list_(
    env: Env, names: Annotated[list[str] | None, argument("[NAME]…", "Only these.")] = None
) -> ExitCode:
    """List SCRAM users with their mechanisms; passwords cannot be read back."""

    from kgroup.admin.users import Users

    with open_admin(env) as admin:
        users, errors = Users(admin).list(names or ())
        where = identity(admin, env)
    rows = [{"user": user.user, **asdict(entry)} for user in users for entry in user.mechanisms]
    result = Result(
        {"users": [asdict(user) for user in users]},
        (Table(_COLUMNS, rows),),
        items="users",
        names=[user.user for user in users],
        errors=errors,
        exit_code=of_seen(ExitCode.OK, errors),
        cluster=where,
    )
    return show(env, result)


@make(
    "cluster user remove",
    examples=(
        ("kgroup cluster user remove alice --local", "for every mechanism"),
        ("kgroup cluster user remove alice --mechanism SCRAM-SHA-256 -b broker:9092", "for one"),
    ),
)
def remove(
    env: Env, name: Annotated[str, argument("", "The user.")], mechanism: Mechanisms = None
) -> ExitCode:
    """Remove a SCRAM user; open connections stay until their session ends."""

    from kgroup.admin.users import Users

    with open_admin(env) as admin:
        known, _ = Users(admin).list([name])
        plan = {"user": name, "mechanisms": mechanism or [e.mechanism for u in known for e in u.mechanisms]}
        with admin.change("cluster user remove", plan, _before(known), [{"user": name}]) as entry:
            gone = Users(admin).remove(name, mechanism or ())
            entry.results += [{"user": name, "mechanism": m, "result": "removed"} for m in gone]
        where = identity(admin, env)
    text = f"user {name} removed for {', '.join(gone)}   journal {entry.id}"
    undo = "undo: none; brokers do not return passwords, so the user has to be added again with one"
    data = {"user": name, "mechanisms": list(gone), "journal_id": entry.id}
    return show(env, with_undo(Result(data, (text,), names=[name], cluster=where), undo))


def _before(known: "Iterable[ScramUser]") -> Document:
    """Return the existing mechanisms; brokers report nothing about a password."""
    return {"mechanisms": [asdict(entry) for user in known for entry in user.mechanisms]}


def _password(user: str, file: str | None, variable: str | None) -> str:
    """Return the password from where the options name it; a file's without its line end."""
    if file is not None and variable is not None:
        raise ConfigError("--password-file and --password-env both name a password", "give one of them")
    if variable is not None:
        password = os.environ.get(variable)
        if password is None:
            raise ConfigError(f"the environment has no {variable}", "--password-env takes its name")
    elif file is not None:
        password = _of_file(file)
    elif not sys.stdin.isatty():
        raise ConfigError(
            f"there is no terminal to ask for the password of {user}",
            "--password-file FILE (- for standard input) or --password-env NAME",
        )
    else:
        password = getpass(f"password of {user}: ")
        if getpass("again: ") != password:
            raise ConfigError("the two passwords differ", "nothing was changed")
    if not password:
        raise ConfigError(f"the password of {user} is empty")
    return password


def _of_file(file: str) -> str:
    if file == "-":
        return sys.stdin.readline().rstrip("\r\n")
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
        mode = path.stat().st_mode & 0o077
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"cannot read the password in {path}: {reason}") from None
    if os.name == "posix" and mode:
        raise ConfigError(f"{path} holds a password and others may read it", f"chmod 600 {path}")
    return text.rstrip("\r\n")


users = subcommands("user", "SCRAM users: add, list, remove.", add, list_, remove)
