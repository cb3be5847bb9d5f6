"""Files generated from the command tree: man pages and completion scripts.

`python -m kgroup.cli.frame.generated` writes them where they belong; a test keeps them equal.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from kgroup.cli.exit_codes import MEANINGS
from kgroup.cli.frame.described import shared_options
from kgroup.cli.frame.lazy import OF_EVERY_COMMAND, KgroupCommand, walk
from kgroup.cli.frame.option_file import schema as option_schema
from kgroup.cli.frame.registry import COMMANDS, PANELS
from kgroup.cli.frame.shared_options import shared_names
from kgroup.cli.frame.tree import DESCRIPTION

FOR_AGENTS = (
    "- `kgroup commands -o json` has every command with its arguments, options, examples and schema;",
    "  `kgroup COMMAND --help-json` has one, `kgroup options -o json` the options that all have.",
    "- With `-o json` every command prints one document with `data`, `status`, `exit_code` and `errors`;",
    "  `kgroup schema COMMAND` prints its JSON Schema.",
    "- A command that changes something prints its plan and changes nothing without `--execute`.",
    "- What could not be seen is null or `?`, never 0, and the exit code is then not 0.",
    "- A duration has a unit: `30s`, `5m`, `7d`. Times are UTC.",
)
PAGES = {
    "README": "the index of the documentation",
    "agents": "read-only tools for agents (MCP)",
    "troubleshooting": "the cause by its symptom",
    "findings": "what each finding and each status of a partition means",
    "exit-codes": "what each exit code means",
    "json-output": "the JSON that scripts read",
    "configuration": "contexts, environment, precedence",
    "security": "TLS and SASL from a client.properties",
    "offsets": "committed offsets: reset, undo, export, import",
    "upgrades": "from the classic protocol to the consumer protocol (KIP-848)",
    "replay-log": "what happened, from __consumer_offsets",
    "record": "what happened, kept by a service",
    "states": "what the states of groups and members mean",
    "testing": "clusters in a test's process",
    "other-tools": "lines of kafka-consumer-groups.sh and others, and kgroup's",
}
SHELLS = {"bash": "kgroup.bash", "zsh": "_kgroup", "fish": "kgroup.fish"}
ENVIRONMENT = {
    "KGROUP_BOOTSTRAP_SERVER": "Brokers, as --bootstrap-server.",
    "KAFKA_BOOTSTRAP_SERVERS": "Brokers, when nothing else names a cluster.",
    "KGROUP_LOCAL": "Folder of the embedded cluster, as --local.",
    "KGROUP_CONTEXT": "Context, as --context.",
    "KGROUP_COMMAND_CONFIG": "Java properties file, as --command-config.",
    "KGROUP_OUTPUT": "Output format, as --output.",
    "KGROUP_NOTIFY_SECRET": "The key that signs the posts of watch --notify.",
    "KGROUP_REST_TOKEN": "Bearer token for --rest.",
    "KGROUP_REST_USERNAME": "User for --rest.",
    "KGROUP_REST_PASSWORD": "Password for --rest.",
    "NO_COLOR": "When set to anything, no colour.",
}


def completion_script(shell: str) -> str:
    """Return the completion script for bash, zsh or fish; it asks `kgroup` itself for the candidates."""
    from kgroup.cli.frame.shells import SCRIPTS

    return SCRIPTS[shell]


def man_name(path: str) -> str:
    """Return the page of a command: `kgroup-context-use` for "context use"."""
    return "kgroup-" + path.replace(" ", "-")


def files() -> dict[str, str]:
    """Return every generated file by its path in the repository."""
    pages = {f"man/{man_name(c.path)}.1": _command_page(c) for c in walk()}
    scripts = {f"completions/{file}": completion_script(shell) for shell, file in SHELLS.items()}
    record = option_schema(next(c for c in walk() if c.path == "record"))
    schemas = {"examples/record/config.schema.json": json.dumps(record, indent=2, ensure_ascii=False) + "\n"}
    return schemas | {"man/kgroup.1": _root_page(), **pages, **scripts, "llms.txt": _for_agents()}


def _for_agents() -> str:
    """Return llms.txt: what kgroup is, its commands and where its pages are, for language models."""
    lines = [f"# kgroup\n\n> {DESCRIPTION.splitlines()[0]}\n", *FOR_AGENTS, "", "## Commands", ""]
    for panel in PANELS:
        lines += [f"- `kgroup {e.name}`: {e.help}" for e in COMMANDS.values() if e.panel == panel]
    lines += ["", "## Exit codes", "", *(f"- {int(code)}: {text}" for code, text in MEANINGS.items())]
    lines += ["", "## Pages", "", *(f"- [{name}](docs/{name}.md): {about}" for name, about in PAGES.items())]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in escaped.split("\n"))


def _header(title: str, summary: str, synopsis: str) -> Iterator[str]:
    yield f'.TH "{title.upper()}" "1" "" "kgroup" "kgroup manual"'
    yield f".SH NAME\n{_escape(title)} \\- {_escape(summary.rstrip('.'))}"
    yield f".SH SYNOPSIS\n.B {_escape(synopsis)}"


def _entries(title: str, entries: Iterator[tuple[str, str]] | list[tuple[str, str]]) -> Iterator[str]:
    yield f".SH {title}"
    for term, text in entries:
        yield f".TP\n.B {_escape(term)}\n{_escape(text)}"


def _root_page() -> str:
    summary = DESCRIPTION.split("\n", 1)[0]
    lines = list(_header("kgroup", summary, "kgroup COMMAND [OPTIONS] [ARGUMENTS]"))
    lines.append(f".SH DESCRIPTION\n{_escape(DESCRIPTION.strip())}")
    lines.append(".SH COMMANDS")
    for panel in PANELS:
        entries = [e for e in COMMANDS.values() if e.panel == panel]
        if entries:
            lines.append(f".SS {panel}")
            lines += [f".TP\n.B {_escape(e.name)}\n{_escape(e.help)}" for e in entries]
    lines.append(f".SH OPTIONS\n{_escape('Every command has these, before or after its name.')}")
    for shared_panel in dict.fromkeys(option["panel"] for option in shared_options()):
        lines.append(f".SS {shared_panel}")
        lines += [
            f".TP\n.B {_escape(str(option['usage']))}\n{_escape(str(option['help']))}"
            for option in shared_options()
            if option["panel"] == shared_panel
        ]
    lines += _entries("EXIT STATUS", [(str(int(code)), text) for code, text in MEANINGS.items()])
    lines += _entries("ENVIRONMENT", list(ENVIRONMENT.items()))
    lines.append(".SH SEE ALSO\n" + "\n".join(f".BR {_escape(man_name(c.path))} (1)" for c in walk()))
    return _join(lines)


def _command_page(command: KgroupCommand) -> str:
    ctx = command.make_context(command.path, [], resilient_parsing=True)
    pieces = " ".join(command.collect_usage_pieces(ctx))
    text = (command.help or "").strip()
    lines = list(_header(man_name(command.path), text.split("\n", 1)[0], f"kgroup {command.path} {pieces}"))
    lines.append(f".SH DESCRIPTION\n{_escape(text)}")
    shared = frozenset(shared_names())
    for kind, title in (("argument", "ARGUMENTS"), ("option", "OPTIONS")):
        own = [p for p in command.get_params(ctx) if p.param_type_name == kind and p.name not in shared]
        records = [p.get_help_record(ctx) for p in own]
        entries = [r for r in records if r is not None]
        if entries:
            lines += _entries(title, entries)
    lines.append(f".PP\n{_escape(OF_EVERY_COMMAND)}")
    lines.append(".SH EXAMPLES")
    lines += [f".TP\n{_escape(comment)}\n.B {_escape(line)}" for line, comment in command.examples]
    lines.append(".SH SEE ALSO\n.BR kgroup (1)")
    return _join(lines)


def _join(lines: list[str]) -> str:
    text = "\n".join(line for line in lines if line)
    # A blank line would be an empty paragraph; roff has a request for it.
    return "\n".join(line or ".PP" for line in text.split("\n")) + "\n"


def write(root: Path) -> list[Path]:
    """Write every generated file below `root`, remove obsolete pages; return the paths written."""
    texts = files()
    for folder in ("man", "completions"):
        (root / folder).mkdir(parents=True, exist_ok=True)
        for old in (root / folder).iterdir():
            if f"{folder}/{old.name}" not in texts:
                old.unlink()
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8")
    return [root / name for name in texts]


if __name__ == "__main__":
    for path in write(Path(sys.argv[1] if len(sys.argv) > 1 else ".")):
        print(path)
