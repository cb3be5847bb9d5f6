"""Writes the flags in docs/kafka-tools.md, from the words of peers that kgroup understands."""

import re
from collections.abc import Mapping
from pathlib import Path

from kgroup.cli.frame.lazy import walk
from kgroup.cli.frame.peers import forms

PAGE = Path(__file__).parent / "kafka-tools.md"
BEGIN = "<!-- Written by `make docs` from the table in kgroup/cli/frame/peers.py. -->\n"
TOOL = "kafka-consumer-groups.sh"
FLAG = re.compile(r"--[a-z-]+")
OF_RESETS = FLAG.findall(
    "--bootstrap-server --command-config --timeout --verbose --all-topics --topic --execute --dry-run "
    "--to-earliest --to-latest --to-current --to-offset --shift-by --by-duration --to-datetime --from-file "
    "--export"
)
"""Flags of Kafka's tool that kgroup may have under the same name."""
OTHERWISE = {
    "--timeout": "`--timeout 30s`: a unit is demanded, where Kafka's are milliseconds",
    "--dry-run": "the default; accepted",
    "--export": "`-o csv --no-headers`; `--export` is accepted",
    "--verbose": "`--verbose`: which cluster is used, and why",
}
"""Of these, what is not the same."""


def document() -> str:
    """The page, its last section anew."""
    known = {theirs: (ours, reads) for tool, theirs, ours, reads in forms() if tool == TOOL}
    flags = {flag for line in known for flag in FLAG.findall(line)}
    own = {
        name
        for command in walk()
        if command.path == "reset-offsets"
        for p in command.params
        for name in p.opts
    }
    rows = [f"| `{flag}` | {_row(flag, known)} |" for flag in sorted(flags)]
    rows += [
        f"| `{flag}` | `--reset-offsets` | {OTHERWISE.get(flag, 'the same')} |"
        for flag in OF_RESETS
        if (flag in own or flag in OTHERWISE) and flag not in flags
    ]
    table = ["| flag | as in | kgroup |", "|---|---|---|", *rows, ""]
    head = (
        f"\n## The flags of {TOOL}, one by one\n\nAll lines that kgroup understands: "
        f"[other-tools](other-tools.md).\n\n"
    )
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[0] + BEGIN + head + "\n".join(table)


def _row(flag: str, known: Mapping[str, tuple[str, bool]]) -> str:
    """Return the plainest line with a flag: one that reads, else one about a named group."""
    having = [line for line in known if flag in FLAG.findall(line)]
    line = min(having, key=lambda each: (not known[each][1], "--all-groups" in each, len(each)))
    ours = known[line][0]
    return f"`{line}` | `{ours if ours.startswith('kgroup') else f'kgroup {ours}'}`"


if __name__ == "__main__":
    PAGE.write_text(document(), encoding="utf-8")
