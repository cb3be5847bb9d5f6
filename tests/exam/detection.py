"""How soon `doctor` suspects a reader that stopped, and calls it an error, by how records come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .asking import ran, seen
from .machine import Machine, group_name
from .playing import Group
from .states import State, possible

OWNERS = {
    "dead-static": "a static member was killed",
    "hung": "a reader hangs between two polls",
    "none": "all members left",
}
FEEDS = {
    "steady": "a record every 2 s",
    "bursts": "50 records every 10 s",
    "hourly": "one batch of 500 an hour, none elsewhere",
}
PROTOCOLS = ("classic", "consumer")
LOOKS_S = (*range(2, 62, 2), *range(65, 125, 5), *range(130, 430, 10), *range(440, 1_300, 20))
"""How long after the reader stopped somebody looks."""
HOURS_AGO_MS = 1_500_000
AT_ONCE = 60


class Fed(Group):
    """A group whose reader stops so long before the look, and whose records come in this way."""

    def __init__(self, machine: Machine, state: State, name: str, feed: str, stopped_s: int) -> None:
        self.feed, self.stopped_s = feed, stopped_s
        super().__init__(machine, state, name)

    def _plan(self) -> None:
        self.since_ms = self.stopped_s * 1_000
        self.period_ms, self.phase_ms = {"steady": (2_000, 100), "bursts": (10_000, 100)}.get(
            self.feed, (0, 0)
        )
        super()._plan()

    def _log(self) -> None:
        if self.feed != "hourly":
            begin = self.ago.fed + self.since_ms
            self._feed(self.subject, begin - begin % self.period_ms, 0, 1 if self.feed == "steady" else 50)
            return
        # The batch comes a second after the reader stopped; the one before was read at once.
        for ago in (HOURS_AGO_MS, self.since_ms - 1_000):
            self._at(ago, lambda: self.produce(self.subject, 500))


@dataclass(frozen=True)
class Detected:
    """The seconds after which the first warning and the first error were said; None if never."""

    protocol: str
    owner: str
    feed: str
    warned_s: int | None
    failed_s: int | None


def detected(looks_s: Sequence[int] = LOOKS_S) -> Iterator[Detected]:
    """Yield for each protocol, owner and feed how soon the doctor saw it."""
    for protocol in PROTOCOLS:
        for owner in OWNERS:
            for feed in FEEDS:
                said = weights(protocol, owner, feed, looks_s)
                warned = next((s for s in looks_s if said[s] & {"warn", "error"}), None)
                yield Detected(
                    protocol, owner, feed, warned, next((s for s in looks_s if "error" in said[s]), None)
                )


def weights(protocol: str, owner: str, feed: str, looks_s: Sequence[int]) -> dict[int, frozenset[str]]:
    """Return the weights of the subject's status and of the findings about it, by the second of the look."""
    others = "quiet" if feed == "hourly" else "busy"
    state = possible(State.parse(f"protocol={protocol} owner={owner} others={others}"))
    found: dict[int, frozenset[str]] = {}
    for first in range(0, len(looks_s), AT_ONCE):
        machine = Machine()
        try:
            groups = [
                Fed(machine, state, group_name(number), feed, stopped_s)
                for number, stopped_s in enumerate(looks_s[first : first + AT_ONCE])
            ]
            machine.run()
            with seen(machine, "all", "right"):
                answer = ran("doctor", *(group.name for group in groups), "--patience", "0s")
            for group in groups:
                row = answer.by_group[group.name]
                place = str(group.subject)
                found[group.stopped_s] = frozenset(
                    alike["weight"] for alike in row["statuses"] if place in alike["partitions"]
                )
        finally:
            machine.close()
    return found


def table(rows: Sequence[Detected]) -> str:
    """The seconds as a Markdown table: first warning / first error."""
    lines = [f"| | {' | '.join(FEEDS.values())} |", "|---" * (len(FEEDS) + 1) + "|"]
    by = {(row.protocol, row.owner, row.feed): row for row in rows}
    for owner, words in OWNERS.items():
        for protocol in PROTOCOLS:
            cells = [_cell(by[protocol, owner, feed]) for feed in FEEDS]
            lines.append(f"| {words}, {protocol} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(row: Detected) -> str:
    return " / ".join("-" if each is None else f"{each} s" for each in (row.warned_s, row.failed_s))


if __name__ == "__main__":
    print(table([*detected()]), end="")
