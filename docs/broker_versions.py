"""Writes docs/broker-versions.md from what the interop run recorded: `python docs/broker_versions.py`."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE.parent / "tests" / "interop" / "versions" / "results.json"
HEAD = """# Commands by broker version

`make versions` runs each command at brokers of {releases}, with static and dynamic members of the Java client
of the same release alive (members of the consumer protocol too from 4.0 on). Outcomes are compared with that
release's own `kafka-consumer-groups` and `kafka-dump-log` (at 4.4.0 those of 4.3.1). Nothing unknown may
appear as zero, none or empty, and what is missing must be named with an exit code. The interop suite plays
2.4, and fails where an outcome differs from this page. Commands that ask no broker are left out, and so
are `upgrade execute`, `downgrade`, `config set` and `pipeline`, which this run does not play.

Everywhere as documented: {everywhere}.

*partly*: the note says what is missing; the command says so too. *needs X*: refused with exit code 1 and
`UNSUPPORTED_VERSION`, and that release is named; nothing is changed or shown.

"""


def document() -> str:
    """The whole page."""
    seen: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    notes: dict[str, int] = {}
    commands = list(dict.fromkeys(command for each in seen.values() for command in each["commands"]))
    lines = ["| command | " + " | ".join(seen) + " |", "|---|" + "---|" * len(seen)]
    everywhere = []
    for command in commands:
        cells = [_cell(each["commands"].get(command), notes) for each in seen.values()]
        if set(cells) == {"yes"}:
            everywhere.append(f"`{command}`")
        else:
            lines.append(f"| `{command}` | " + " | ".join(cells) + " |")
    releases = ", ".join(each["release"] for each in seen.values())
    listed = "".join(f"{number}. {why}\n" for why, number in notes.items())
    head = HEAD.format(releases=releases, everywhere=", ".join(everywhere))
    return head + "\n".join(lines) + "\n\n## Notes\n" + listed


def _cell(outcome: dict[str, str] | None, notes: dict[str, int]) -> str:
    if outcome is None:
        return "not tried"
    if outcome["verdict"] == "needs":
        return f"needs {outcome['since']}"
    if outcome["verdict"] == "works":
        return "yes"
    return f"partly ({notes.setdefault(outcome['why'], len(notes) + 1)})"


if __name__ == "__main__":
    (HERE / "broker-versions.md").write_text(document(), encoding="utf-8")
