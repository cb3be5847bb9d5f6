"""Writes docs/rights.md from the table that `doctor --rights` uses: `python docs/rights.py`."""

from pathlib import Path

from kgroup.admin.rights.needs import COMMANDS, STAND_INS, WITHOUT_CLUSTER, Need, Needs
from kgroup.security.rights import EVERY

HERE = Path(__file__).parent
HEAD = """# Rights

From the table that `kgroup doctor --rights` uses. An interop test gives a principal exactly these rights on
Kafka 4.3.1, runs the command, and takes each of them away again. Share groups take the same rights. Read,
Write and Delete bring Describe with them, AlterConfigs brings DescribeConfigs.

`kgroup doctor GROUP --rights` says which commands this principal can use on a group (without a name: on every
group). `--for COMMAND` writes the ACLs to ask for as lines of kafka-acls, `--principal User:NAME` those of
another principal: an administrator who may see the group gets the names of its topics, where one without
rights gets *every topic*. It changes nothing; what no broker reports is unknown (`?`).

A refusal names the missing right. The exit code is 6, or 5 where some of a batch was done. The rights to
*every* group or topic prove that an answer is complete
([decision 23](decisions/0023-what-cannot-be-seen.md)). A command with a pattern or `--all-groups` needs what
`list` needs as well.

"""


def document() -> str:
    """The whole page."""
    alike: dict[str, list[str]] = {}
    for name, needs in COMMANDS.items():
        alike.setdefault(_cell(needs), []).append(f"`{name}`")
    rows = [f"| {', '.join(names)} | {cell} |" for cell, names in alike.items()]
    without = ", ".join(f"`{name}`" for name in sorted(WITHOUT_CLUSTER))
    lines = [
        "| command | needs |",
        "|---|---|",
        *rows,
        "",
        f"No right is needed by {without}, and by `explain` without -b, -C and --local.",
        "",
    ]
    return HEAD + "\n".join(lines)


def _cell(needs: Needs) -> str:
    return "; ".join(_right(need) for need in needs.needs)


def _right(need: Need) -> str:
    name = STAND_INS.get(need.name, f"every {need.resource.lower()}" if need.name == EVERY else need.name)
    on = f"{need.operation} on {name or 'the cluster'}"
    return f"{on} (where {need.when})" if need.when else on


if __name__ == "__main__":
    (HERE / "rights.md").write_text(document(), encoding="utf-8")
