"""How other tools say things, and how kgroup does: one table for errors, hints, a page of the docs and tests.

Read only where a line is not kgroup's own, and by the tests.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache

from kgroup.cli.frame.registry import KINDS, OFFSETS
from kgroup.domain import value

KCG, KAFKA, KCL, KAF, RPK, KAFKACTL, KUBECTL, ANY = (
    "kafka-consumer-groups.sh",
    "other tools of Kafka",
    "kcl",
    "kaf",
    "rpk",
    "kafkactl",
    "kubectl",
    "any",
)
READS: Mapping[str, tuple[tuple[str, str], ...]] = {
    KCG: (
        ("--list --state", "list"),
        ("--list --state STATE", "list --state STATE"),
        ("--list --type", "list"),
        ("--list --type TYPE", "list --type TYPE"),
        ("--list", "list"),
        ("--describe --group GROUP… --members", "describe GROUP… --section members"),
        ("--describe --group GROUP… --offsets", "describe GROUP… --section offsets"),
        ("--describe --group GROUP… --state", "describe GROUP… --section summary"),
        ("--describe --group GROUP…", "describe GROUP…"),
        ("--describe --all-groups --members", "describe --all-groups --section members"),
        ("--describe --all-groups --offsets", "describe --all-groups --section offsets"),
        ("--describe --all-groups --state", "describe --all-groups --section summary"),
        ("--describe --all-groups", "describe --all-groups"),
        ("--validate-regex PATTERN", "regex check PATTERN --offline"),
        ("--version", "--version"),
        ("--help", "--help"),
    ),
    KAFKA: (
        ("kafka-groups --list --group-type TYPE", "list --type TYPE"),
        ("kafka-groups --list --protocol NAME", "list --protocol-type NAME"),
        ("kafka-groups --list --share", "list --type share"),
        ("kafka-groups --list --streams", "list --type streams"),
        ("kafka-topics --list", "cluster topics"),
        ("kafka-topics --describe --topic NAME", "cluster topics NAME"),
        ("kafka-topics --describe", "cluster topics"),
        ("kafka-acls --list", "cluster acl list"),
        ("kafka-configs --entity-type groups --entity-name GROUP --describe", "config get GROUP"),
    ),
    KCL: (
        ("misc errcode CODE", "explain CODE"),
        ("misc errtext CODE", "explain CODE"),
        ("misc errtext", "explain"),
        ("admin group list", "list"),
        ("admin group describe GROUP…", "describe GROUP…"),
        ("metadata", "cluster status"),
        ("myconfig ls", "context list"),
        ("myconfig dump", "config show"),
        ("topic list", "cluster topics"),
        ("acl describe", "cluster acl list"),
        ("misc gen-autocomplete", "completion bash"),
    ),
    KAF: (
        ("groups", "list"),
        ("group ls", "list"),
        ("groups ls", "list"),
        ("topic ls", "cluster topics"),
        ("node ls", "cluster status"),
        ("config ls", "context list"),
        ("config get-clusters", "context list"),
        ("config current-context", "context show"),
    ),
    RPK: (
        ("group list --states STATE", "list --state STATE"),
        ("group list", "list"),
        ("group describe GROUP… --print-summary", "describe GROUP… --section summary"),
        ("group describe GROUP… --print-commits", "describe GROUP… --section offsets"),
        ("group describe GROUP… --print-members", "describe GROUP… --section members"),
        ("group describe GROUP… --print-lag-per-topic", "lag GROUP… --by-topic"),
        ("group describe GROUP…", "describe GROUP…"),
        ("cluster info", "cluster status"),
        ("cluster metadata", "cluster status"),
        ("cluster health", "cluster status"),
        ("profile list", "context list"),
        ("profile current", "context show"),
        ("profile print", "context show"),
        ("profile print NAME", "context show NAME"),
        ("generate shell-completion SHELL", "completion SHELL"),
        ("security acl list", "cluster acl list"),
        ("security user list", "cluster user list"),
    ),
    KUBECTL: (
        ("get", "list"),
        ("get all", "list"),
        ("get KIND -w", "watch *"),
        ("get KIND GROUP… -w", "watch GROUP…"),
        ("get nodes", "cluster status"),
        ("get events GROUP…", "replay-log GROUP…"),
        ("get events", "replay-log"),
        ("logs GROUP… -f", "replay-log GROUP… --follow"),
        ("logs GROUP…", "replay-log GROUP…"),
        ("config get-contexts", "context list"),
        ("top KIND", "lag *"),
        ("top GROUP…", "lag GROUP…"),
        ("rollout status GROUP…", "wait GROUP… --for stable"),
        ("api-resources", "--help"),
        ("cluster-info", "cluster status"),
    ),
    KAFKACTL: (
        ("get KIND", "list"),
        ("get KIND GROUP…", "list GROUP…"),
        ("list KIND", "list"),
        ("describe KIND GROUP…", "describe GROUP…"),
        ("get topics", "cluster topics"),
        ("get topic", "cluster topics"),
        ("get brokers", "cluster status"),
        ("get acl", "cluster acl list"),
        ("get access-control-list", "cluster acl list"),
        ("config view", "config show"),
    ),
    ANY: (
        ("help", "--help"),
        ("help COMMAND…", "COMMAND… --help"),
        ("version", "--version"),
        ("topics", "cluster topics"),
        ("topics list", "cluster topics"),
        ("topics ls", "cluster topics"),
        ("topics describe NAME…", "cluster topics NAME…"),
        ("topics NAME…", "cluster topics NAME…"),
        ("topic describe NAME…", "cluster topics NAME…"),
        ("describe topic NAME…", "cluster topics NAME…"),
        ("brokers", "cluster status"),
        ("nodes", "cluster status"),
        ("status", "cluster status"),
        ("status GROUP…", "describe GROUP… --section summary"),
        ("health", "doctor --all-groups"),
        ("health GROUP…", "doctor GROUP…"),
        ("check GROUP…", "doctor GROUP…"),
        ("diagnose GROUP…", "doctor GROUP…"),
        ("export GROUP…", "offsets export GROUP…"),
        ("history", "replay-log"),
        ("history GROUP…", "replay-log GROUP…"),
        ("events GROUP…", "replay-log GROUP…"),
        ("ls", "list"),
        ("ls GROUP…", "list GROUP…"),
        ("show GROUP…", "describe GROUP…"),
        ("info GROUP…", "describe GROUP…"),
        ("inspect GROUP…", "describe GROUP…"),
        ("members list GROUP…", "describe GROUP… --section members"),
        ("member list GROUP…", "describe GROUP… --section members"),
        ("members GROUP…", "describe GROUP… --section members"),
        ("offsets list GROUP…", "describe GROUP… --section offsets"),
        ("offsets get GROUP…", "describe GROUP… --section offsets"),
        ("offsets show GROUP…", "describe GROUP… --section offsets"),
        ("offsets describe GROUP…", "describe GROUP… --section offsets"),
        ("offset GROUP…", "describe GROUP… --section offsets"),
        ("lags GROUP…", "lag GROUP…"),
        ("contexts", "context list"),
        ("audit", "journal list"),
        ("errors", "explain"),
        ("who GROUP…", "blame GROUP…"),
        ("why GROUP…", "blame GROUP…"),
        ("tail GROUP…", "replay-log GROUP… --follow"),
        ("ping", "cluster status"),
        ("man", "--help"),
    ),
}
"""By tool: its form, and kgroup's. They only read, so they are run."""
CHANGES: Mapping[str, tuple[tuple[str, str], ...]] = {
    KCG: (
        ("--describe", "describe --all-groups"),
        ("--reset-offsets --group GROUP…", "reset-offsets GROUP…"),
        ("--reset-offsets --all-groups", "reset-offsets *"),
        ("--reset-offsets", "reset-offsets GROUP"),
        ("--delete --group GROUP… --topic TOPIC", "offsets delete GROUP… --topic TOPIC"),
        ("--delete --group GROUP…", "delete GROUP…"),
        ("--delete --all-groups", "delete *"),
        ("--delete-offsets --group GROUP…", "offsets delete GROUP…"),
    ),
    KAFKA: (
        ("kafka-groups --list --consumer", "list"),
        (
            "kafka-configs --entity-type groups --entity-name GROUP --alter --add-config PAIR",
            "config set GROUP PAIR",
        ),
        (
            "kafka-configs --entity-type groups --entity-name GROUP --alter --delete-config NAME",
            "config set GROUP --unset NAME",
        ),
        ("kafka-topics --create --topic NAME", "cluster create-topic NAME"),
    ),
    KCL: (
        ("admin group delete GROUP…", "delete GROUP…"),
        ("group delete GROUP…", "delete GROUP…"),
        ("group offset-delete GROUP", "offsets delete GROUP"),
        ("group seek GROUP --to start", "reset-offsets GROUP --to-earliest"),
        ("group seek GROUP --to end", "reset-offsets GROUP --to-latest"),
        ("group seek GROUP --to-group TO", "reset-offsets GROUP --to-group TO"),
        ("group seek GROUP --to-file FILE", "reset-offsets GROUP --from-file FILE"),
        ("group seek GROUP --to TIME", "reset-offsets GROUP --to-datetime TIME"),
        ("group seek GROUP", "reset-offsets GROUP --to-earliest"),
        ("myconfig link NAME", "context use NAME"),
    ),
    KAF: (
        ("group commit GROUP --offset earliest", "reset-offsets GROUP --to-earliest"),
        ("group commit GROUP --offset oldest", "reset-offsets GROUP --to-earliest"),
        ("group commit GROUP --offset latest", "reset-offsets GROUP --to-latest"),
        ("group commit GROUP --offset newest", "reset-offsets GROUP --to-latest"),
        (
            "group commit GROUP --topic TOPIC --partition P --offset N",
            "reset-offsets GROUP --topic TOPIC:P --to-offset N",
        ),
        ("group commit GROUP --offset N", "reset-offsets GROUP --to-offset N"),
        ("config use-cluster NAME", "context use NAME"),
        ("config select-cluster", "context list"),
        ("topic create NAME", "cluster create-topic NAME"),
    ),
    RPK: (
        ("profile use NAME", "context use NAME"),
        ("topic create NAME", "cluster create-topic NAME"),
        ("security user create NAME", "cluster user add NAME"),
        ("security user delete NAME", "cluster user remove NAME"),
    ),
    KAFKACTL: (
        ("reset OFFSETS GROUP --oldest", "reset-offsets GROUP --to-earliest"),
        ("reset OFFSETS GROUP --newest", "reset-offsets GROUP --to-latest"),
        (
            "reset OFFSETS GROUP --topic TOPIC --partition P --offset N",
            "reset-offsets GROUP --topic TOPIC:P --to-offset N",
        ),
        ("reset OFFSETS GROUP --offset N", "reset-offsets GROUP --to-offset N"),
        ("reset OFFSETS GROUP", "reset-offsets GROUP"),
        ("create KIND GROUP --oldest", "reset-offsets GROUP --to-earliest"),
        ("create KIND GROUP --newest", "reset-offsets GROUP --to-latest"),
        (
            "create KIND GROUP --topic TOPIC --partition P --offset N",
            "reset-offsets GROUP --topic TOPIC:P --to-offset N",
        ),
        ("clone KIND GROUP TO", "offsets clone GROUP TO"),
        ("delete KIND GROUP…", "delete GROUP…"),
        ("delete OFFSETS GROUP --topic TOPIC --partition P", "offsets delete GROUP --topic TOPIC:P"),
        ("delete OFFSETS GROUP", "offsets delete GROUP"),
        ("create topic NAME", "cluster create-topic NAME"),
        ("create acl", "cluster acl add"),
        ("delete acl", "cluster acl remove"),
    ),
    KUBECTL: (
        ("config use-context NAME", "context use NAME"),
        ("rollout undo", "reset-offsets --undo LAST"),
    ),
    ANY: (
        ("import FILE", "offsets import FILE"),
        ("undo", "reset-offsets --undo LAST"),
        ("undo ID", "reset-offsets --undo ID"),
        ("rollback", "reset-offsets --undo LAST"),
        ("revert", "reset-offsets --undo LAST"),
        ("reset GROUP", "reset-offsets GROUP"),
        ("reset", "reset-offsets GROUP"),
        ("offsets reset GROUP", "reset-offsets GROUP"),
        ("rewind GROUP", "reset-offsets GROUP --to-earliest"),
        ("seek GROUP", "reset-offsets GROUP"),
        ("skip GROUP", "reset-offsets GROUP --to-latest"),
        ("clone GROUP TO", "offsets clone GROUP TO"),
        ("copy GROUP TO", "offsets clone GROUP TO"),
        ("backup GROUP…", "offsets export GROUP…"),
        ("restore FILE", "delete --restore FILE"),
        ("rm GROUP…", "delete GROUP…"),
        ("remove GROUP…", "delete GROUP…"),
        ("drop GROUP…", "delete GROUP…"),
        ("kick GROUP", "remove-members GROUP --instance-id ID"),
        ("evict GROUP", "remove-members GROUP --instance-id ID"),
        ("migrate GROUP…", "upgrade plan GROUP…"),
        ("delete-offsets GROUP…", "offsets delete GROUP…"),
        ("set GROUP PAIR", "config set GROUP PAIR"),
        ("start", "serve"),
    ),
}
"""The same for what changes something, or is only much like it: answered with the line to type."""
NOT_BUILT = {
    "consume": "kgroup reads no records: kcat, kcl and kafka-console-consumer do",
    "produce": "kgroup writes no records: kcat, kcl and kafka-console-producer do",
    "peek": "kgroup reads no records: kcat, kcl and kafka-console-consumer do",
}
"""Words of other tools for what kgroup does not do."""
OPTIONS = {
    "--brokers": "--bootstrap-server",
    "--broker": "--bootstrap-server",
    "--broker-list": "--bootstrap-server",
    "--bootstrap-servers": "--bootstrap-server",
    "--bootstrap": "--bootstrap-server",
    "--servers": "--bootstrap-server",
    "--server": "--bootstrap-server",
    "--host": "--bootstrap-server",
    "--config": "--command-config",
    "--consumer.config": "--command-config",
    "--config-file": "--command-config",
    "--properties": "--command-config",
    "--profile": "--context",
    "--cluster": "--context",
    "--topics": "--topic",
    "--topic": "--by-topic",
    "--latest": "--to-latest",
    "--earliest": "--to-earliest",
    "--to-newest": "--to-latest",
    "--to-oldest": "--to-earliest",
    "--to-end": "--to-latest",
    "--to-start": "--to-earliest",
    "--to-beginning": "--to-earliest",
    "--offset": "--to-offset",
    "--duration": "--by-duration",
    "--datetime": "--to-datetime",
    "--instance": "--instance-id",
    "--member": "--member-id",
    "--all": "--all-groups",
    "--sort-by": "--sort",
    "--limit": "--top",
    "--watch": "kgroup watch GROUP",
    "--export": "kgroup offsets export GROUP",
    "--list": "kgroup list",
    "--describe": "kgroup describe GROUP",
    "--delete": "kgroup delete GROUP",
    "--reset-offsets": "kgroup reset-offsets GROUP",
    "--fields": "--columns",
    "--no-header": "--no-headers",
    "--silent": "--quiet",
    "--since-time": "--since",
    "--from": "--since",
    "--follow": "kgroup replay-log GROUP --follow",
    "--oldest": "--to-earliest",
    "--newest": "--to-latest",
    "--force": "--execute",
    "--confirm": "--execute",
    "--apply": "--execute",
    "--noconfirm": "--yes",
}
"""Options of other tools, and kgroup's: named where the command has it."""

_WITH_VALUE = frozenset(
    {
        *("--group", "-g", "--topic", "-t", "--topics", "--to", "--partition", "-p", "--format"),
        *("--brokers", "--broker-list", "--profile", "--cluster", "--config", "--offset-map", "-b", "-C"),
        *("--bootstrap-server", "--context", "--command-config", "--timeout", "-X", "-o", "--output"),
    }
)
"""Options that a value follows, beside those of a form, and of kgroup's command that is meant by it."""
_PASSED = {
    **dict.fromkeys(("--bootstrap-server", "-b", "--brokers", "--broker-list"), "-b"),
    **dict.fromkeys(("--context", "--profile", "--cluster", "-C"), "-C"),
    **dict.fromkeys(("-t", "--topics"), "--topic"),
    **dict.fromkeys(("--output", "--format"), "-o"),
    **dict.fromkeys(("-y", "--noconfirm"), "--yes"),
    **dict.fromkeys(("-v", "--verbose"), "-v"),
    **{name: name for name in ("-X", "-o", "-q")},
    "--force": "--execute",
}
"""What both have under two names or one letter; a long name that kgroup's command has means the same."""
_WITHOUT_EFFECT = frozenset(
    {"--dry-run", "--all-partitions", "--no-members", "--new-consumer", "--allow-new-topics"}
)
"""Kgroup's default, or what its output always has."""
_VERBS = frozenset(
    {"list", "ls", "get", "show", "describe", "view", "create", "delete", "rm", "reset", "seek", "edit"}
)
"""What other tools say behind a kind of thing: no name of a group in their lines."""
_PLACE = re.compile(r"\b(GROUP|TOPIC|P|N|FILE|NAME|ID|TO|STATE|TYPE|PATTERN|TIME|CODE|SHELL|PAIR|COMMAND)\b")


@value
class Line:
    """A command line in two parts: words, and options by name with their values (None for a flag)."""

    words: list[str] = field(default_factory=list)
    options: dict[str, list[str | None]] = field(default_factory=dict)


@value
class Heard:
    """What a line of another tool means: kgroup's line, the tool's form, and whether it only reads.

    `dropped` are options that kgroup's command does not have.
    """

    argv: list[str]
    tool: str
    theirs: str
    reads: bool
    dropped: list[str] = field(default_factory=list)


def forms() -> Iterator[tuple[str, str, str, bool]]:
    """Yield tool, its form, kgroup's form, and whether that is run; the first that matches a line counts."""
    for table, reads in ((READS, True), (CHANGES, False)):
        for tool, rows in table.items():
            for theirs, ours in rows:
                yield tool, theirs, ours, reads


def hear(argv: Sequence[str]) -> Heard | None:
    """Return what a line means that another tool takes; None where no form of the table matches."""
    words = _without_tool(list(argv))
    for tool, theirs, ours, reads in forms():
        form = _of_table(theirs)
        if not {*form.words[:1], *(() if form.words else form.options)} & {*words, *map(_name, words)}:
            continue
        of_form = {name for name, (value_,) in form.options.items() if value_ is not None}
        line = _parsed(words, _WITH_VALUE | of_form | _values_of(tuple(ours.split())))
        match = _matched(form, _with_groups_as_words(line) if tool == ANY else line)
        if match is not None:
            captured, left = match
            mine = list(_filled(ours.split(), captured))
            kept, dropped = _passed(mine, left)
            return Heard(_completed([*mine, *kept]), tool, theirs, reads, dropped)
    return _without_kind(words)


_SAME_FORMS = frozenset({"kafka-consumer-groups", "kafka-share-groups", "kafka-streams-groups"})


def _without_tool(words: list[str]) -> list[str]:
    """Return a line without the name of its tool, which stands in some forms of Kafka's other tools."""
    first = words[0].removesuffix(".sh") if words else ""
    if first in _SAME_FORMS | {KCL, KAF, RPK, KAFKACTL, KUBECTL}:
        return words[1:]
    if first == "kafka-groups" and not _parsed(words, _WITH_VALUE).options.keys() & _OF_KAFKA_GROUPS:
        return words[1:]
    return [first, *words[1:]] if words else words


_OF_KAFKA_GROUPS = {"--group-type", "--protocol", "--share", "--streams", "--consumer"}


def _without_kind(words: list[str]) -> Heard | None:
    """Return `group lag G` as `lag G`."""
    from kgroup.cli.frame.registry import COMMANDS, READ

    if len(words) < 2 or words[0] not in KINDS:
        return None
    if words[1] not in COMMANDS:
        return hear(words[1:])
    return Heard(words[1:], ANY, f"{words[0]} {words[1]}", COMMANDS[words[1]].panel == READ)


def _with_groups_as_words(line: Line) -> Line:
    """Return a line such as `reset --group G` as `reset G`."""
    named = [name for name in ("--group", "-g") if name in line.options]
    groups = [value for name in named for value in line.options[name] if value is not None]
    options = {name: values for name, values in line.options.items() if name not in named}
    return Line([*line.words, *groups], options) if line.words and groups else line


def _parsed(argv: Sequence[str], with_value: Collection[str]) -> Line:
    line, rest = Line(), list(argv)
    while rest:
        word = rest.pop(0)
        name, equals, attached = word.partition("=")
        if not word.startswith("-") or word == "-":
            line.words.append(word)
        elif equals:
            line.options.setdefault(name, []).append(attached)
        elif name in with_value and rest and (not rest[0].startswith("--") or name == "--shift-by"):
            line.options.setdefault(name, []).append(rest.pop(0))
        else:
            line.options.setdefault(name, []).append(None)
    return line


@cache
def _of_table(theirs: str) -> Line:
    """Return a form of the table; there no word stands behind an option without being its value."""
    words = theirs.split()
    return _parsed(words, {word for word in words if word.startswith("-")})


def _name(word: str) -> str:
    return word.partition("=")[0]


_Captured = dict[str, list[str]]


def _matched(form: Line, line: Line) -> tuple[_Captured, dict[str, list[str | None]]] | None:
    """Return what the places of a form hold, and the options beyond it; None where the line is not of it."""
    captured: _Captured = {}
    words = list(line.words)
    for slot in form.words:
        if slot.endswith("…") and words:
            if slot != "COMMAND…" and (words[0] in _VERBS or (words[0] in KINDS and len(words) > 1)):
                return None
            captured[slot.removesuffix("…")], words = words, []
        elif not words or not _fits(slot, words.pop(0), captured):
            return None
    if words:
        return None
    left = dict(line.options)
    for name, (metavar,) in form.options.items():
        spelled = next((spelling for spelling in (name, *_SHORT.get(name, ())) if spelling in left), None)
        if spelled is None or not _value_fits(metavar, left.pop(spelled), captured):
            return None
    return captured, left


_SHORT = {
    "--group": ("-g",),
    "--topic": ("-t", "--topics"),
    "--offset": ("-o",),
    "--partition": ("-p",),
    "--print-summary": ("-s",),
    "--print-commits": ("-c",),
    "--print-members": ("-m",),
    "--print-lag-per-topic": ("-l",),
    "-w": ("--watch",),
}


def _value_fits(metavar: str | None, given: list[str | None], captured: _Captured) -> bool:
    values = [text for text in given if text is not None]
    if metavar is None:
        return not values
    if metavar.endswith("…"):
        captured[metavar.removesuffix("…")] = values
        return bool(values)
    return len(values) == len(given) == 1 and _fits(metavar, values[0], captured)


def _fits(slot: str, word: str, captured: _Captured) -> bool:
    if slot in ("KIND", "OFFSETS"):
        return word in (KINDS if slot == "KIND" else OFFSETS)
    if slot == "PAIR" and "," in word:
        return False
    if _PLACE.fullmatch(slot):
        captured[slot] = [word]
        return True
    return slot == word


def _filled(ours: list[str], captured: _Captured) -> Iterator[str]:
    for word in ours:
        if word.endswith("…"):
            yield from captured.get(word.removesuffix("…"), [word])
        else:
            yield _PLACE.sub(lambda match: captured.get(match[0], [match[0]])[0], word)


def _passed(ours: list[str], left: dict[str, list[str | None]]) -> tuple[list[str], list[str]]:
    """Return the options that kgroup's command has too, as it spells them, and those it has not."""
    known, kept, dropped = _options_of(ours), list[str](), list[str]()
    for name, values in left.items():
        mine = _PASSED.get(name, name if name.startswith("--") else None)
        if name in _WITHOUT_EFFECT or (name in _OF_NO_COMMAND and ours[0].startswith("--")):
            continue
        if name in ("-h", "--help"):
            kept.append("--help")
        elif name == "--export" and "--to-offset" in known:
            kept += ["-o", "csv", "--no-headers"]
        elif mine in known and mine is not None:
            kept += [word for given in values for word in _in_our_words(mine, given)]
        else:
            dropped.append(name)
    return kept, dropped


def _completed(ours: list[str]) -> list[str]:
    """Return a reset with what kgroup wants said: where to, and which partitions."""
    given = set(ours)
    if ours[0] != "reset-offsets" or given & {"--undo", "--from-file", "--to-group"}:
        return ours
    if not given & {"--topic", "--all-topics"}:
        ours = [*ours, "--all-topics"]
    return ours if given & _TARGETS else [*ours, "--to-earliest"]


_TARGETS = frozenset(
    {
        "--to-earliest",
        "--to-latest",
        "--to-current",
        "--to-offset",
        "--shift-by",
        "--by-duration",
        "--to-datetime",
    }
)


def _in_our_words(option: str, given: str | None) -> list[str]:
    """Return an option with its value: others count --timeout in ms, and rpk has the brokers in -X."""
    if given is None:
        return [option]
    if option == "-X" and given.startswith("brokers="):
        return ["-b", given.removeprefix("brokers=")]
    return [option, given + "ms" if option == "--timeout" and given.isdecimal() else given]


_OF_NO_COMMAND = frozenset(
    {"-b", "--bootstrap-server", "--brokers", "-C", "--context", "--command-config", "-q"}
)
"""What `--help` and `--version` need not know."""


def _options_of(ours: list[str]) -> set[str]:
    """Return the options of the command that the words name."""
    from kgroup.cli.frame.lazy import command_at

    if ours[0] == "--version":
        return {"-v"}
    command, _ = command_at(ours)
    return {spelling for parameter in command.params for spelling in parameter.opts} if command else set()


@cache
def _values_of(ours: tuple[str, ...]) -> frozenset[str]:
    """Return the options of a command that a value follows."""
    from kgroup.cli.frame.lazy import command_at

    command, _ = command_at(ours)
    return frozenset(
        spelling
        for parameter in (command.params if command else ())
        for spelling in parameter.opts
        if spelling.startswith("-") and not getattr(parameter, "is_flag", False)
    )
