"""Writes docs/other-tools.md: what other tools call things, and how kgroup says it."""

from pathlib import Path

from kgroup.cli.frame.peers import ANY, OPTIONS, forms

HERE = Path(__file__).parent
HEAD = """\
# Coming from another tool

<!-- Written by `make docs` from the table in kgroup/cli/frame/peers.py. -->

These lines of other tools can be typed at kgroup, without the tool's name or with it. What only reads is
run, and kgroup says on stderr as which line. What changes something is answered with the line to type (exit
code 2); it shows a plan, and `--execute` carries it out. Options that both have may stand anywhere.

KIND is what kafkactl and kubectl write before a name: `group`, `consumer-group`, `cg`; OFFSETS what kafkactl
does: `offset`, `consumer-group-offset`, `cgo`. `group lag G` is read as `lag G`, and so on.
[What Kafka's own tools do not do](kafka-tools.md).

"""
ALSO = """\
## Options

kgroup's commands also take these options, where they mean something.

| option | means |
|---|---|
| `--group G`, `-g G` | the argument GROUP |
| `--members`, `--offsets`, `--state` | `--section members`, `offsets`, `summary` of `describe` |
| `--export` | `-o csv --no-headers` of `reset-offsets` |
| `--dry-run` | the default of every command with `--execute` |
| `--all-topics` | the default of `describe`, `lag` and `offsets export` |
| `--json`, `--format F` | `-o json`, `-o F` |
| `-y`, `-t T` | `--yes`, `--topic T` |

Other spellings are named in the error: """


def document() -> str:
    """The whole page."""
    by_tool: dict[str, list[str]] = {}
    for tool, theirs, ours, reads in forms():
        says = f"`{ours if ours.startswith('kgroup') else f'kgroup {ours}'}`"
        by_tool.setdefault(tool, []).append(f"| `{theirs}` | {says} | {'runs' if reads else 'answers'} |")
    text = HEAD
    for tool, rows in by_tool.items():
        title = "Words of any tool" if tool == ANY else tool
        text += "\n".join([f"## {title}", "", "| typed | kgroup | |", "|---|---|---|", *rows, "", ""])
    spellings = ", ".join(f"`{theirs}` ({ours})" for theirs, ours in OPTIONS.items())
    return f"{text}{ALSO}{spellings}.\n"


if __name__ == "__main__":
    (HERE / "other-tools.md").write_text(document(), encoding="utf-8")
