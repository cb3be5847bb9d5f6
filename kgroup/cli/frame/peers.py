"""How other tools say things, and how kgroup does: one table for errors, hints, a page of the docs and tests.

Read only where a line is not kgroup's own, and by the tests.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from kgroup.cli.frame.registry import KINDS
from kgroup.domain import value

KCG, KCL, KAF, RPK, KAFKACTL, KUBECTL, ANY = (
    "kafka-consumer-groups.sh",
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
    ),
    KCL: (
        ("misc errcode CODE", "explain CODE"),
        ("misc errtext CODE", "explain CODE"),
        ("misc errtext", "explain"),
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
        ("topic ls", "cluster topics"),
        ("node ls", "cluster status"),
        ("config ls", "context list"),
        ("config get-clusters", "context list"),
        ("config current-context", "context show"),
    ),
    RPK: (
        ("group list", "list"),
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
    KUBECTL: (
        ("get", "list"),
        ("get nodes", "cluster status"),
        ("get events GROUP…", "replay-log GROUP…"),
        ("get events", "replay-log"),
        ("logs GROUP…", "replay-log GROUP…"),
        ("config get-contexts", "context list"),
        ("top GROUP…", "lag GROUP…"),
        ("api-resources", "--help"),
        ("cluster-info", "cluster status"),
    ),
    ANY: (
        ("help", "--help"),
        ("help NAME…", "NAME… --help"),
        ("version", "--version"),
        ("topics", "cluster topics"),
        ("topics NAME…", "cluster topics NAME…"),
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
        ("members GROUP…", "describe GROUP… --section members"),
        ("offset GROUP…", "describe GROUP… --section offsets"),
        ("lags GROUP…", "lag GROUP…"),
        ("contexts", "context list"),
        ("audit", "journal list"),
        ("errors", "explain"),
        ("who GROUP…", "blame GROUP…"),
        ("why GROUP…", "blame GROUP…"),
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
    KCL: (
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
        ("reset offset GROUP --oldest", "reset-offsets GROUP --to-earliest"),
        ("reset offset GROUP --newest", "reset-offsets GROUP --to-latest"),
        (
            "reset offset GROUP --topic TOPIC --partition P --offset N",
            "reset-offsets GROUP --topic TOPIC:P --to-offset N",
        ),
        ("reset offset GROUP --offset N", "reset-offsets GROUP --to-offset N"),
        ("reset offset GROUP", "reset-offsets GROUP"),
        ("reset consumer-group-offset GROUP --oldest", "reset-offsets GROUP --to-earliest"),
        ("reset consumer-group-offset GROUP --newest", "reset-offsets GROUP --to-latest"),
        ("reset consumer-group-offset GROUP", "reset-offsets GROUP"),
        ("create KIND GROUP --oldest", "reset-offsets GROUP --to-earliest"),
        ("create KIND GROUP --newest", "reset-offsets GROUP --to-latest"),
        (
            "create KIND GROUP --topic TOPIC --partition P --offset N",
            "reset-offsets GROUP --topic TOPIC:P --to-offset N",
        ),
        ("clone KIND GROUP TO", "offsets clone GROUP TO"),
        ("delete KIND GROUP…", "delete GROUP…"),
        ("delete offset GROUP --topic TOPIC --partition P", "offsets delete GROUP --topic TOPIC:P"),
        ("delete offset GROUP", "offsets delete GROUP"),
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
    [
        "--bootstrap-server",
        "-b",
        "--brokers",
        "--broker-list",
        "-X",
        "--command-config",
        "--config",
        "--timeout",
        "--group",
        "-g",
        "--topic",
        "-t",
        "--topics",
        "--to",
        "--to-group",
        "--to-file",
        "--to-offset",
        "--shift-by",
        "--by-duration",
        "--to-datetime",
        "--from-file",
        "--offset",
        "-o",
        "--output",
        "--format",
        "--partition",
        "-p",
        "--context",
        "--profile",
        "--cluster",
        "-C",
        "--state",
        "--type",
        "--validate-regex",
        "--regex",
        "--offset-map",
        "--reason",
        "--columns",
        "--color",
    ]
)
_PASSED = {
    **dict.fromkeys(("--bootstrap-server", "-b", "--brokers", "--broker-list"), "-b"),
    **dict.fromkeys(("--context", "--profile", "--cluster", "-C"), "-C"),
    **dict.fromkeys(("--topic", "-t", "--topics"), "--topic"),
    **dict.fromkeys(("-o", "--output", "--format"), "-o"),
    **dict.fromkeys(("--yes", "-y", "--noconfirm"), "--yes"),
    **dict.fromkeys(("--verbose", "-v"), "-v"),
    **{
        name: name
        for name in [
            "--command-config",
            "--state",
            "--type",
            "--sort",
            "-X",
            "--timeout",
            "--local",
            "--all-topics",
            "--execute",
            "--no-headers",
            "--quiet",
            "-q",
            "--debug",
            "--to-earliest",
            "--to-latest",
            "--to-current",
            "--to-offset",
            "--shift-by",
            "--by-duration",
            "--to-datetime",
            "--from-file",
            "--reason",
            "--regex",
            "--columns",
            "--color",
            "--partitions",
            "--replication-factor",
        ]
    },
}
"""What both have: kept, where kgroup's command has it."""
_WITHOUT_EFFECT = frozenset({"--dry-run", "--all-partitions", "--no-members"})
"""Kgroup's default, or what its output always has."""
_PLACE = re.compile(r"\b(GROUP|TOPIC|P|N|FILE|NAME|ID|TO|STATE|TYPE|PATTERN|TIME|CODE|SHELL)\b")


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
    line = _parsed(list(argv))
    if line.words and line.words[0].removesuffix(".sh") in {KCG.removesuffix(".sh"), KCL, KAF, RPK, KAFKACTL}:
        del line.words[0]
    grouped = _with_groups_as_words(line)
    for tool, theirs, ours, reads in forms():
        found = _matched(_parsed(theirs.split()), grouped if tool == ANY else line)
        if found is not None:
            captured, left = found
            words = list(_filled(ours.split(), captured))
            kept, dropped = _passed(words, left)
            return Heard(_completed([*words, *kept]), tool, theirs, reads, dropped)
    return None


def _with_groups_as_words(line: Line) -> Line:
    """Return a line such as `reset --group G` as `reset G`."""
    named = [name for name in ("--group", "-g") if name in line.options]
    groups = [value for name in named for value in line.options[name] if value is not None]
    options = {name: values for name, values in line.options.items() if name not in named}
    return Line([*line.words, *groups], options) if line.words and groups else line


def _parsed(argv: list[str]) -> Line:
    line = Line()
    while argv:
        word = argv.pop(0)
        name, equals, attached = word.partition("=")
        if not word.startswith("-") or word == "-":
            line.words.append(word)
        elif equals:
            line.options.setdefault(name, []).append(attached)
        elif name in _WITH_VALUE and argv and (not argv[0].startswith("--") or name == "--shift-by"):
            line.options.setdefault(name, []).append(argv.pop(0))
        else:
            line.options.setdefault(name, []).append(None)
    return line


_Captured = dict[str, list[str]]


def _matched(form: Line, line: Line) -> tuple[_Captured, dict[str, list[str | None]]] | None:
    """Return what the places of a form hold, and the options beyond it; None where the line is not of it."""
    captured: _Captured = {}
    words = list(line.words)
    for place in form.words:
        if place.endswith("…") and words:
            captured[place.removesuffix("…")], words = words, []
        elif not words or not _fits(place, words.pop(0), captured):
            return None
    if words:
        return None
    left = dict(line.options)
    for name, (wanted,) in form.options.items():
        spelled = next((each for each in (name, *_SHORT.get(name, ())) if each in left), None)
        if spelled is None or not _value_fits(wanted, left.pop(spelled), captured):
            return None
    return captured, left


_SHORT = {"--group": ("-g",), "--topic": ("-t", "--topics"), "--offset": ("-o",), "--partition": ("-p",)}


def _value_fits(wanted: str | None, given: list[str | None], captured: _Captured) -> bool:
    values = [each for each in given if each is not None]
    if wanted is None:
        return not values
    if wanted.endswith("…"):
        captured[wanted.removesuffix("…")] = values
        return bool(values)
    return len(values) == len(given) == 1 and _fits(wanted, values[0], captured)


def _fits(place: str, word: str, captured: _Captured) -> bool:
    if place == "KIND":
        return word in KINDS
    if _PLACE.fullmatch(place):
        captured[place] = [word]
        return True
    return place == word


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
        mine = _PASSED.get(name)
        if name in ("-h", "--help"):
            kept.append("--help")
        elif name == "--export" and "--to-offset" in known:
            kept += ["-o", "csv", "--no-headers"]
        elif mine in known and mine is not None:
            kept += [word for given in values for word in _in_our_words(mine, given)]
        elif name not in _WITHOUT_EFFECT:
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


def _options_of(ours: list[str]) -> set[str]:
    """Return the options of the command that the words name."""
    from kgroup.cli.frame.lazy import command_at

    command, _ = command_at(ours)
    return {spelling for parameter in command.params for spelling in parameter.opts} if command else set()
