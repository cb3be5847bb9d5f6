"""Options of other tools that kgroup's commands take too, under kgroup's own names."""

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from kgroup.cli.click import UsageError

if TYPE_CHECKING:
    from kgroup.cli.click import Parameter
    from kgroup.cli.frame.lazy import KgroupCommand

_SECTIONS = {"--members": "members", "--offsets": "offsets", "--state": "summary"}
_RENAMED = {"-y": "--yes", "-t": "--topic", "--format": "--output"}
_OF_WHICH_ALL_ARE_SHOWN = frozenset({"lag", "describe", "offsets export"})
"""Commands that show every topic unless one is named."""
_LOCAL_CODE = re.compile(r"-\d+")
"""A code of librdkafka's, as `explain` takes it: no option."""


def accepted(command: "KgroupCommand", args: Sequence[str]) -> list[str]:
    """Return the words of a command with what other tools call things in kgroup's own spelling.

    An option that the command has keeps its meaning. Raise UsageError for --dry-run beside --execute.
    """
    own = {name: parameter for parameter in command.params for name in parameter.opts}
    out, groups, sections, words = list[str](), list[str](), list[str](), list(args)
    given: dict[str, str] = {}
    last = list[str]()
    while words:
        word = words.pop(0)
        name = word.partition("=")[0]
        if word == "--":
            last += words
            break
        if name in own:
            known = _known(command, word, words, flag=bool(getattr(own[name], "is_flag", False)))
            _refuse_a_second(own[name], known, given)
            out += known
        elif name in ("--group", "-g") and _takes_groups(command):
            groups.append(word.partition("=")[2] if "=" in word else words.pop(0) if words else "")
        elif name in _SECTIONS and "--section" in own:
            sections.append(_SECTIONS[name])
        elif command.path == "explain" and _LOCAL_CODE.fullmatch(word):
            last.append(word)
        else:
            out += _other(command, word, own.keys(), args)
    front = ["--section", ",".join(sections)] if sections else []
    return [*groups, *front, *out, *(["--"] if "--" in args or last else []), *last]


def _known(command: "KgroupCommand", word: str, words: list[str], *, flag: bool) -> list[str]:
    """Return an option of the command with its value."""
    if flag or "=" in word or (word[:2] != "--" and len(word) > 2):
        return [word]
    if command.path == "list" and word in ("--state", "--type") and (not words or words[0].startswith("-")):
        return []  # Kafka's tool shows the column so; kgroup always does
    return [word, words.pop(0)] if words else [word]


_SET_BY_ALIASES = frozenset({"timeout", "output", "columns", "color"})
"""Of these the last counts, as a line may begin with an alias that has one."""


def _refuse_a_second(option: "Parameter", typed: list[str], given: dict[str, str]) -> None:
    """Raise UsageError for another value of an option that has one: the first would be passed over."""
    if getattr(option, "multiple", False) or not typed or option.name in {None, *_SET_BY_ALIASES}:
        return
    value = typed[1] if len(typed) == 2 else typed[0].partition("=")[2]
    if option.name and given.setdefault(option.name, value) != value:
        raise UsageError(f"{max(option.opts, key=len)} has two values: {given[option.name]} and {value}")


def _takes_groups(command: "KgroupCommand") -> bool:
    return any(
        p.param_type_name == "argument" and "GROUP" in str(p.metavar or p.name).upper()
        for p in command.params
    ) or (command.path == "list")  # whose globs are those of groups


def _other(command: "KgroupCommand", word: str, known: Collection[str], args: Sequence[str]) -> list[str]:
    """Return what an option that the command does not have means to it; unchanged where it means nothing."""
    name, equals, value = word.partition("=")
    if name == "--json":
        return ["--output", "json"]
    if name == "--export" and command.path == "reset-offsets":
        return ["--output", "csv", "--no-headers"]
    if name == "--dry-run" and "--execute" in known:
        if "--execute" in args:
            raise UsageError("--dry-run and --execute exclude each other")
        return []
    if name == "--all-topics" and command.path in _OF_WHICH_ALL_ARE_SHOWN:
        return []
    renamed = _RENAMED.get(name)
    return [renamed + equals + value] if renamed in known and renamed else [word]
