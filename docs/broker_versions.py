"""Writes docs/broker-versions.md from what the interop run recorded: `python docs/broker_versions.py`."""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE.parent / "tests" / "interop" / "versions" / "results.json"
HEAD = """# Commands by broker version

Written by `docs/broker_versions.py` from what `make versions` saw: each command run at brokers of {releases},
with static and dynamic members of the Java client of the same release alive (members of the consumer
protocol too from 4.0 on), and compared with that release's own `kafka-consumer-groups` and
`kafka-dump-log` (at 4.4.0 those of 4.3.1: no newer ones are published). The interop suite holds
the record to what it sees ([decision 27](decisions/0027-versions-are-played.md)).

*yes*: ends as documented, and says what the broker's own tools say. *partly*: the note says what is missing;
the command says so too. *needs X*: refused with exit code 1 and `UNSUPPORTED_VERSION`, and that release is
named; nothing is changed or shown. Commands that ask no broker are left out, and so are `upgrade execute`,
`downgrade`, `config set` and `pipeline`, which this run does not play.

"""


def document() -> str:
    """The whole page."""
    seen: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    notes: dict[str, int] = {}
    commands = list(dict.fromkeys(command for each in seen.values() for command in each["commands"]))
    lines = ["| command | " + " | ".join(seen) + " |", "|---|" + "---|" * len(seen)]
    for command in commands:
        cells = [_cell(each["commands"].get(command), notes) for each in seen.values()]
        lines.append(f"| `{command}` | " + " | ".join(cells) + " |")
    releases = ", ".join(each["release"] for each in seen.values())
    listed = "".join(f"{number}. {why}\n" for why, number in notes.items())
    return HEAD.format(releases=releases) + "\n".join(lines) + "\n\n## Notes\n" + listed


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
