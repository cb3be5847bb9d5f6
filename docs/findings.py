"""Writes docs/findings.md from the table of codes and statuses: `python docs/findings.py`."""

from pathlib import Path

from kgroup.admin.codes import CODES, STATUSES

HERE = Path(__file__).parent
HEAD = """# Statuses and findings

From the tables that `describe`, `lag`, `wait`, `watch`, `doctor` and `kgroup explain NAME` use.

## The status of a partition

Every partition that a group subscribes to, owns or has committed has one status. The first that holds
counts, in the order of the table. A fact that was not seen makes it `unknown`, and never another status.
`lag` is the distance in offsets, as in Kafka's own tools; `unreadable` says how many of them hold no record,
and conditions (`lag --fail-above`, `wait --for lag=N`) do not count those.

"""
VERDICT = """
## The verdict of `doctor`

An error, of a partition's status or in the table below, makes a group *sick* (exit code 8). Without one,
anything that was not seen makes it *unknown* (5, or 6 where rights are missing). Else it is *healthy* (0):
every partition has a status that was shown. Warnings are listed and change no exit code.

## Findings

"""


def document() -> str:
    """The whole page."""
    codes = {known.status: code for code, known in CODES.items() if known.status}
    rows = ["| status | means | shown by | finding |", "|---|---|---|---|"]
    for status, meaning in STATUSES.items():
        code = codes.get(status, "")
        rows.append(f"| `{status}` | {meaning.means} | {meaning.shown_by} | {code} |")
    found = ["| code | severity | means | do | begin with |", "|---|---|---|---|---|"]
    for code, known in sorted(CODES.items()):
        begin = "<br>".join(f"`{line}`" for line in known.next)
        found.append(f"| {code} | {known.severity} | {known.title} | {known.remedy} | {begin} |")
    return HEAD + "\n".join(rows) + "\n" + VERDICT + "\n".join(found) + "\n"


if __name__ == "__main__":
    (HERE / "findings.md").write_text(document(), encoding="utf-8")
