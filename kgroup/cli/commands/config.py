"""`kgroup config`: kgroup's own settings in force, and the settings of a group."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from kgroup.admin import shell
from kgroup.admin.models import ChangeStatus, ItemError
from kgroup.cli.declaring import argument, option
from kgroup.cli.env.config import LocalTarget, config_path, target_of
from kgroup.cli.env.invocation import Env
from kgroup.cli.env.known_settings import shown
from kgroup.cli.env.session import identity, open_admin
from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.changes import Consent, Execute, Reason, Yes, undo_of_settings, with_undo
from kgroup.cli.frame.lazy import CONTEXT_SETTINGS, OptionsInFront
from kgroup.cli.frame.options import make
from kgroup.cli.output.result import Result, show
from kgroup.cli.output.tables import Column, Table
from kgroup.cli.views.changes import RESULT, change
from kgroup.domain import count_of
from kgroup.errors import ConfigError

if TYPE_CHECKING:
    from kgroup.admin.settings import Setting
    from kgroup.cli.click import Command, Context

APPLIED_WITHIN_S = 5.0
"""How long `config set` waits until the broker shows the change."""
_COLUMNS = (Column("setting"), Column("value", right=True), Column("origin"))
_CHANGE = (Column("setting"), Column("before", right=True), Column("after", right=True), Column("origin"))


@make(
    "config show",
    examples=(
        ("kgroup config show --origin", "which value is in force, and who said so"),
        ("kgroup config show -C prod -o json", "the settings of one context, secrets hidden"),
    ),
)
def show_config(
    env: Env, origin: Annotated[bool, option("--origin", "Also print where each value came from.")] = False
) -> ExitCode:
    """Show the settings in force, and with --origin where each came from.

    Precedence: flag, -X, environment, context, default. Secrets are never printed.
    """
    resolved = env.settings()
    target = target_of(resolved, fetch=False)
    if isinstance(target, LocalTarget):
        where = f"embedded cluster in {target.directory}"
    else:
        where = "remote cluster " + resolved.settings["bootstrap.servers"].value
    rows = [
        {"setting": s.name, "value": shown(s.name, s.value), "origin": s.origin}
        for s in sorted(resolved.settings.values(), key=lambda s: s.name)
    ]
    columns = (Column("setting"), Column("value"), Column("origin", wide=not origin))
    data = {"config_file": str(config_path()), "target": where, "settings": rows}
    blocks = (where, Table(columns, rows))
    return show(env, Result(data, blocks, items="settings", names=[r["setting"] for r in rows]))


@make(
    "config get",
    examples=(
        ("kgroup config get orders", "the group's timeouts, its own or the broker's"),
        ("kgroup config get orders consumer.session.timeout.ms -o csv --no-headers", "one of them"),
    ),
)
def get(
    env: Env,
    group: Annotated[str, argument("GROUP", "The group; it need not exist yet.")],
    name: Annotated[list[str] | None, argument("[SETTING]…", "Only these settings.")] = None,
) -> ExitCode:
    """Show the settings of a group on the broker; `kgroup config GROUP get` is the same.

    They govern members of the consumer protocol (KIP-848); classic clients bring their own.
    """
    from kgroup.admin.settings import group_settings

    with open_admin(env) as admin:
        settings = group_settings(admin, group)
        where = identity(admin, env)
    unknown = sorted(set(name or ()) - {setting.name for setting in settings})
    if unknown:
        raise ConfigError(
            f"there is no setting {unknown[0]!r}", "one of " + ", ".join(s.name for s in settings)
        )
    chosen = [setting for setting in settings if not name or setting.name in name]
    rows = [{"setting": setting.name, "value": setting.value, "origin": setting.origin} for setting in chosen]
    data = {"group_id": group, "settings": rows}
    return show(
        env,
        Result(
            data,
            (Table(_COLUMNS, rows),),
            items="settings",
            names=[setting.name for setting in chosen],
            cluster=where,
        ),
    )


@make(
    "config set",
    examples=(
        ("kgroup config set orders consumer.session.timeout.ms=60000", "ask the broker whether it would"),
        ("kgroup config set orders consumer.session.timeout.ms=60000 --execute", "and do it"),
        (
            "kgroup config set orders --unset consumer.session.timeout.ms --execute",
            "the broker's value again",
        ),
    ),
)
def set_(
    env: Env,
    group: Annotated[str, argument("GROUP", "The group; it need not exist yet.")],
    change: Annotated[list[str] | None, argument("[SETTING=VALUE]…", "Settings and their values.")] = None,
    unset: Annotated[
        list[str] | None, option("--unset SETTING", "Return to the broker's value; repeatable.")
    ] = None,
    execute: Execute = False,
    yes: Yes = False,
    reason: Reason = None,
) -> ExitCode:
    """Change the settings of a group on the broker, all or none; nothing without --execute.

    Without --execute, asks the broker whether it would accept the values. The old values are journalled.
    Waits up to 5 s until the broker returns the new ones; exit code 5 if it does not by then.
    """
    from kgroup.admin.change.settings import SettingsChange, change_settings
    from kgroup.admin.settings import alter_group, group_settings, once_applied, unlike

    changes: dict[str, str | None] = {}
    for text in change or []:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise ConfigError(f"{text!r} is not SETTING=VALUE", "as in consumer.session.timeout.ms=60000")
        changes[name.strip()] = value.strip()
    changes.update(dict.fromkeys(unset or []))
    if not changes:
        raise ConfigError("no setting is named", "SETTING=VALUE, or --unset SETTING")
    with open_admin(env) as admin:
        before = {setting.name: setting for setting in group_settings(admin, group)}
        alter_group(admin, group, changes, validate_only=True)
        needed = {name: changes[name] for name in unlike(before.values(), changes)}
        journal_id = None
        now: dict[str, Setting] = {}
        late: tuple[str, ...] = ()
        if execute and needed:
            plan = _shown(group, changes, before, None, None)
            Consent(execute, yes).ask(env, plan, f"change {count_of(len(needed), 'setting')} of {group}?")
            made = SettingsChange("config set", group, needed, tuple(before.values()), reason)
            journal_id = change_settings(admin, made)
            applied, late = once_applied(lambda: group_settings(admin, group), needed, APPLIED_WITHIN_S)
            now = {setting.name: setting for setting in applied}
        where = identity(admin, env)
    errors = [
        ItemError(
            name,
            "NOT_SEEN",
            f"{name}: the change was accepted and is not seen yet: the broker still returns "
            f"{now[name].value if name in now else 'no such setting'}",
            shell.command("config get", group, name),
        )
        for name in late
    ]
    result = replace(
        _shown(group, changes, before, now or None, journal_id),
        errors=errors,
        exit_code=ExitCode.PARTIAL if errors else ExitCode.OK,
        cluster=where,
    )
    if journal_id:
        own = {name: s.value for name, s in before.items() if s.origin == "group"}
        result = with_undo(result, undo_of_settings(env, group, {name: own.get(name) for name in needed}))
    return show(env, result)


def _shown(
    group: str,
    changes: Mapping[str, str | None],
    before: "Mapping[str, Setting]",
    now: "Mapping[str, Setting] | None",
    journal_id: str | None,
) -> Result:
    """Return the settings as they would be, or with `journal_id` as they are now."""
    from kgroup.admin.settings import unlike

    executed = journal_id is not None
    needed = unlike(before.values(), changes)
    rows = []
    for name, value in changes.items():
        was, after = before.get(name), now.get(name) if now else None
        current = (
            (after.value, after.origin) if after else (value, "group" if value is not None else "broker")
        )
        old = was.value if was else None
        done = ChangeStatus.DONE if executed else ChangeStatus.PLANNED
        result = done if name in needed else ChangeStatus.UNCHANGED
        row = {"setting": name, "before": old, "after": current[0], "origin": current[1], "result": result}
        rows.append(row)
    return change(
        {"group_id": group},
        journal_id,
        {"settings": rows},
        (Table((*_CHANGE, RESULT) if len(needed) < len(changes) else _CHANGE, rows),),
        "" if executed or not needed else "The broker would accept it.",
        to_do=None if executed else bool(needed),
        items="settings",
        names=list(changes),
        cluster=None,
    )


class _ConfigGroup(OptionsInFront):
    """`config GROUP get` as `config get GROUP`: some users write it in that order."""

    def resolve_command(
        self, ctx: "Context", args: list[str]
    ) -> "tuple[str | None, Command | None, list[str]]":
        if len(args) > 1 and args[0] not in self.commands and args[1] in ("get", "set"):
            args = [args[1], args[0], *args[2:]]
        return super().resolve_command(ctx, args)


command = _ConfigGroup(
    name="config",
    help="Show kgroup's settings; get and set those of a group.",
    commands={"show": show_config, "get": get, "set": set_},
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings=CONTEXT_SETTINGS,
)
