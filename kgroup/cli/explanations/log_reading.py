"""Finds the known lines in the text of a log, and the group, topic and member that they name."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from kgroup.admin import shell
from kgroup.cli.explanations import entries, lookup
from kgroup.cli.explanations.entry import Entry, EntryKind
from kgroup.cli.explanations.errors import ALIASES
from kgroup.cli.explanations.log_lines import LOG_LINES, PATTERNS
from kgroup.errors import ErrorCode

if TYPE_CHECKING:
    import re2

MOST = 4 << 20
"""A longer text is refused: it would be read in part, and what is in the rest be passed over in silence."""
_SHORTEST = 8
"""Characters of the shortest line that a pattern matches."""
_NAMES_WITHIN = 16 << 10
"""Names stand near the message; a longer line is a dump of data."""
_MEMORY = 64 << 20
"""For the states of all patterns together: with less, RE2 falls back to one that is 100 times slower."""

_TERMINAL = r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
"""Colours and titles: ECMA-48's control sequences, and operating system commands."""
# The name of an error, an exception or a code, wherever it stands.
_ERROR = (
    r"\[Error (\d+)\]|\bcode=(_[A-Z_]+)|\b([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\b"
    r"|\b((?:[A-Z][a-z0-9]+)+(?:Exception|Error))\b"
)
_KAFKA = r"(?i)kafka|sarama|kgo|franz|broker|partition|consumer|coordinator|\bgroup\b|fetching metadata"
"""Words beside the name of an error that other software has too, as RESOURCE_NOT_FOUND."""
_OF_KAFKA = (
    r"(?i)kafka|sarama|kgo\b|franz|\bthrd:|group_?id\b|client_?id\b|\bo\.a\.k\.|__consumer_offsets|:909\d\b"
)
"""What no other software says: a pattern of words that others say too counts only beside it."""

_GROUP = (
    r"groupId=([^\]]*)\]",
    r'"group(?:Id|_id)?":\s*"([^"]+)"',
    r"\[GroupId (.+?)\] ",
    r'[Gg]roup "([^"]+)"',
    r"[;,] group: ([^,;]+)",
    r"(?:rebalance|restabilize) group (.+?) (?:in state|with old)",
    r"Stabilized group (.+?) generation ",
    r"[Gg]roup (\S+) (?:with generation|in generation|generation) \d+ is ",
    r" in group (.+?) (?:has|with generation) ",
    r"joins group (.+?) in \S+ state",
    r"for group (\S+) for generation",
    r"access group: ([^\s\",]+)",
    r"consumergroup (\S+) (?:from|is)",
    r"\[Error \d+\] \w+Error: ([^\s()]+)",
    r"Attempt to join group (\S+) failed",
    r"roup coordinator for (\S+) is ",
    r"[Jj]oin(?:ed|ing)? group [`']?([^\s`',;:]+)[`']?(?:\s*$| with | failed| as | \(|`)",
    r"for group,? (\S+?)[:.,]*(?: (?:due|because|with)\b|[:.,]? |$)",
)
_TOPIC = (
    r"topic=u?'([^']+)'",
    r"\btopic: ([^,;]+), partition",
    r"\bpartition ([\w.-]+)-\d+\b",
    r"for partitions: \{([\w.-]+)-\d+=",
    r"consum(?:ing|er/)\s?([\w.-]+)/\d+",
    r"Topic ([\w.-]+) \[\d+\]",
    r"access topics: \[([^\],]+)",
    r"\{([\w.-]+)=(?:UNKNOWN_TOPIC_OR_PARTITION|LEADER_NOT_AVAILABLE|TOPIC_AUTHORIZATION_FAILED)",
)
_MEMBER = (
    r"memberId='([^']+)'",
    r"memberId=([^,)]+)[,)]",
    r'"member(?:Id|_id)":\s*"([^"]+)"',
    r"member[._]id:? ([^\s\],;]+)",
    r"with member id `([^`]+)`",
    r"[Mm]ember ([^\s\[]+) (?:in group|sending|fenced|with instance|left|joins)",
    r"(?:new member|removing member) ([^\s)]+)",
)
_INSTANCE = (
    r"instanceId=([^,\]]+)",
    r"group\.instance\.id ([^\s,\]]+)",
    r"with instance id (\S+)",
    r"known static member ([^\s,]+)",
)
_NOBODY = frozenset(
    ("None", "null", "<nil>", "''", "gets", "has", "was", "id", "Group", "broker", "coordinator")
)
"""Words that stand where a name may: 'access group: Group authorization failed', 'consumer/broker/3'."""
_DELIMITED = frozenset((*_GROUP[:4], _MEMBER[0]))
_REST_OF_JSON = r"(?:\\[nrt])?[\"'}\]]*$"
"""What ends a message inside of JSON, behind a name that nothing else ends."""


@dataclass(frozen=True, slots=True)
class Found:
    """A known line: its entry with the names filled in, its number, and whose message it is."""

    line: int
    entry: Entry
    source: str
    names: Mapping[str, str]


def read(text: str) -> tuple[Found, ...]:
    """Return each known line of a log, the first of each entry; empty if none is known."""
    plain = _plain(_TERMINAL).sub("", text)
    first: dict[str, Found] = {}
    for number, line in enumerate(plain.splitlines(), 1):
        if len(line) < _SHORTEST or (known := _known(line)) is None:
            continue
        if known[0].name not in first:
            entry, source = known
            names = dict(_names(line[:_NAMES_WITHIN]))
            first[entry.name] = Found(number, replace(entry, next=_filled(entry.next, names)), source, names)
    return tuple(first.values())


def _known(line: str) -> tuple[Entry, str] | None:
    matching = _patterns().Match(line)
    if matching and not _plain(_OF_KAFKA).search(line):
        matching = [at for at in matching if not PATTERNS[at][2].startswith("~")]
    if matching:
        name, source, _ = PATTERNS[min(matching)]
        return _all()[name], source
    for match in _plain(_ERROR).finditer(line) if _plain(_KAFKA).search(line) else ():
        code, local, constant, thrown = match.groups()
        if constant is not None and constant not in _names_of_errors():
            continue
        entry = lookup(code or local or constant or thrown)
        if entry is not None and entry.kind is EntryKind.ERROR:
            return entry, "any client, by the name of the error"
    return None


@cache
def _names_of_errors() -> frozenset[str]:
    """Return what an error is called in capitals, today and before; no other entry's name."""
    return frozenset(ErrorCode.__members__).union(*ALIASES.values())


def _names(line: str) -> Iterator[tuple[str, str]]:
    for name, patterns in (
        ("group", _GROUP),
        ("topic", _TOPIC),
        ("member_id", _MEMBER),
        ("instance_id", _INSTANCE),
    ):
        for pattern in patterns:
            match = _plain(pattern).search(line)
            named = match[1] if match else ""
            named = named if pattern in _DELIMITED else _plain(_REST_OF_JSON).sub("", named)
            if named.strip() and named not in _NOBODY:
                yield name, named
                break


def _filled(commands: tuple[str, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(_fill(command, names) for command in commands)


def _fill(command: str, names: Mapping[str, str]) -> str:
    """Return the command with the names quoted in place of GROUP, TOPIC and ID; those unknown stay."""
    words = {"TOPIC": names.get("topic"), "ID": names.get("instance_id")}
    verb, group, options = command.partition(" GROUP")
    options = " ".join(
        shell.list_item(words[word] or word) if words.get(word) else word for word in options.split()
    )
    if not group:
        return command
    if "group" not in names:
        return f"{verb} GROUP {options}".rstrip()
    return shell.command(verb.removeprefix("kgroup "), names["group"], options=options)


@cache
def _all() -> Mapping[str, Entry]:
    return {entry.name: entry for entry in (*entries().values(), *LOG_LINES)}


@cache
def _options() -> "re2.Options":
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    return options


@cache
def _patterns() -> "re2.Set":
    """Return all patterns as one automaton: a line is read once, in linear time."""
    import re2

    patterns = re2.Set.SearchSet(_options())
    for _, _, pattern in PATTERNS:
        patterns.Add(pattern.removeprefix("~"))
    patterns.Compile()
    return patterns


@cache
def _plain(pattern: str) -> "re.Pattern[str]":
    import re2

    return re2.compile(pattern, _options())  # type: ignore[no-any-return]
