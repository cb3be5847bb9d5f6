"""The waves of an upgrade run: which groups move together, how they are deployed, and when to stop.

A YAML file holds them (docs/upgrades.md, *Waves*); `generated` creates one from the plan of a fleet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from kgroup.admin.migrate.fleet import EFFORTS, Fleet
from kgroup.admin.migrate.models import READY
from kgroup.durations import parse_duration
from kgroup.errors import ConfigError
from kgroup.history.typed_json import Plain
from kgroup.text_files import LARGEST_GENERATED, load_yaml, read_text

CANARY, WAVE_SIZE = 1, 10


@dataclass(frozen=True, slots=True)
class Rules:
    """When a wave stops the run; None disables a rule. Times in seconds.

    Watching stops when nothing in the wave has changed for `stuck_after`, or after `within`. Then the groups
    are observed for `observe`: their lag may have grown by `lag_growth` records since before the wave, a
    partition may on average have been `unowned` for so long, the group epoch may rise by `rebalances`, so
    many members may be missing (`fewer_members`), and with `commits` every partition that has unread records
    has to be committed.
    """

    stuck_after: float = 300.0
    within: float = 3600.0
    observe: float = 60.0
    lag_growth: int | None = 1000
    unowned: float | None = 60.0
    rebalances: int | None = 0
    fewer_members: int | None = 0
    commits: bool = True


Command = str | tuple[str, ...]
"""A list of words is run directly; one string by a shell."""


@dataclass(frozen=True, slots=True)
class Wave:
    """Groups that move together. Without a `hook` others deploy, and the wave is only watched."""

    name: str
    groups: tuple[str, ...]
    hook: Command | None = None
    hook_timeout: float = 600.0
    rules: Rules = Rules()


_DURATIONS = frozenset({"stuck_after", "within", "observe", "unowned"})
_MAY_BE_NULL = frozenset(rule.name for rule in fields(Rules) if rule.type.endswith("| None"))
_RULES = tuple(rule.name for rule in fields(Rules))
_SHARED = ("hook", "hook_timeout", "rules")


def read_waves(path: Path) -> tuple[Wave, ...]:
    """Return the waves in a YAML file, in order; raise ConfigError with the fault and its place."""
    try:
        text = read_text(path, f"the waves in {path}", largest=LARGEST_GENERATED)
    except ConfigError as error:
        raise ConfigError(error.message, "kgroup upgrade plan --all-groups --waves FILE writes one") from None
    document = load_yaml(text, str(path))
    try:
        top = _mapping(document, "the file", (*_SHARED, "waves"))
        shared = _settled(Wave("", ()), top, "")
        listed = top.get("waves")
        if not isinstance(listed, list) or not listed:
            raise ConfigError("there is no list of waves", "waves: [{name: first, groups: [orders]}]")
        waves = tuple(_wave(shared, entry, number) for number, entry in enumerate(listed, 1))
        _once((wave.name for wave in waves), "two waves have the name {}", "name each differently")
        groups = (group for wave in waves for group in wave.groups)
        _once(groups, "the group {} is in the waves twice", "a group moves once: leave it in one place")
        return waves
    except ConfigError as error:
        raise ConfigError(f"{path}: {error.message}", error.hint) from None


def _wave(shared: Wave, entry: object, number: int) -> Wave:
    given = _mapping(entry, f"wave {number}", ("name", "groups", *_SHARED))
    name, groups = given.get("name", f"wave-{number}"), given.get("groups")
    if not isinstance(name, str) or not name:
        raise ConfigError(f"wave {number}: its name {name!r} is not a text", "write it in quotes")
    if not isinstance(groups, list) or not groups:
        raise ConfigError(f"wave {name} has no list of groups", "groups: [orders, billing]")
    for group in groups:
        if not isinstance(group, str) or not group:
            raise ConfigError(f"wave {name}: the group {group!r} is not a text", "write it in quotes")
    return replace(_settled(shared, given, f"wave {name}: "), name=name, groups=tuple(groups))


def _settled(base: Wave, given: Mapping[str, Plain], where: str) -> Wave:
    """Return `base` with the given hook and rules."""
    if "hook" in given:
        hook = given["hook"]
        if isinstance(hook, list) and hook and all(isinstance(word, str) for word in hook):
            hook = tuple(hook)
        elif hook is not None and not (isinstance(hook, str) and hook.strip()):
            hint = "hook: [./deploy, --all] runs a program with arguments; "
            hint += "hook: './deploy && ./check' runs a shell"
            raise ConfigError(f"{where}hook: {hook!r} is no command", hint)
        base = replace(base, hook=hook)
    if "hook_timeout" in given:
        seconds = _seconds(given["hook_timeout"], f"{where}hook_timeout")
        base = replace(base, hook_timeout=seconds)
    rules = _mapping(given.get("rules", {}), f"{where}rules", _RULES)
    return replace(base, rules=replace(base.rules, **{k: _rule(k, v, where) for k, v in rules.items()}))


def _rule(name: str, given: Plain, where: str) -> Plain:
    at = f"{where}rules: {name}"
    if given is None and name in _MAY_BE_NULL:
        return None
    if name in _DURATIONS:
        return _seconds(given, at)
    kind, hint = (bool, "true or false") if name == "commits" else (int, "a number from 0, or null")
    if type(given) is not kind or given < 0:
        raise ConfigError(f"{at}: {given!r} is no value of this rule", hint)
    return given


def _seconds(given: object, at: str) -> float:
    if not isinstance(given, str):
        raise ConfigError(f"{at}: {given!r} is no duration", "with its unit, as in 30s or 5m")
    return parse_duration(given, at)


def _mapping(given: object, what: str, known: Sequence[str]) -> Mapping[str, Plain]:
    if not isinstance(given, dict):
        raise ConfigError(f"{what}: {given!r} is not a mapping", f"with the keys {', '.join(known)}")
    for key in given:
        if key not in known:
            raise ConfigError(f"{what}: the key {key!r} is unknown", f"one of {', '.join(known)}")
    return given


def _once(names: Iterable[str], message: str, hint: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ConfigError(message.format(name), hint)
        seen.add(name)


def generated(fleet: Fleet, wave_size: int = WAVE_SIZE) -> tuple[Wave, ...]:
    """Return waves of the ready groups, the least risky first: one alone, then so many together.

    Empty groups, groups without warnings, and groups with few members are less risky.
    """
    ready = sorted(
        (row for row in fleet.rows if row.verdict == READY),
        key=lambda row: (EFFORTS.index(row.effort), len(row.warnings), row.members or 0, row.group_id),
    )
    rest = range(CANARY, len(ready), wave_size)
    cuts = [ready[:CANARY], *(ready[start : start + wave_size] for start in rest)]
    return tuple(
        Wave(f"wave-{number}", tuple(row.group_id for row in cut))
        for number, cut in enumerate(cuts, 1)
        if cut
    )


def as_yaml(waves: Sequence[Wave], notes: Iterable[str]) -> str:
    """Return a file that `read_waves` reads; `notes` become comments in front, one per line."""
    import yaml

    # A name may hold what YAML takes for the end of a line.
    said = "".join(f"# {''.join(c if c.isprintable() else '?' for c in note)}\n" for note in notes)
    document = {"waves": [{"name": wave.name, "groups": list(wave.groups)} for wave in waves]}
    return f"{said}{_EXAMPLE}{yaml.safe_dump(document, sort_keys=False, allow_unicode=True)}"


_EXAMPLE = """\
# Without a hook the run watches what others deploy. kgroup docs upgrades has the rules.
# hook: [./deploy.sh]
# rules: {lag_growth: 1000, observe: 1m}
"""
