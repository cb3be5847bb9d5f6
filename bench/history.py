"""What earlier runs on this machine came to, so that a run can say what got slower since.

Ratios to a peer are kept, not seconds: they change less with what else the machine is doing. One line of JSON
for each, in `.cache/bench/history.jsonl` of the checkout.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
HISTORY = ROOT / ".cache" / "bench" / "history.jsonl"
WORSE = 1.2  # times the median of the runs before
LOOKED_AT = 5  # runs before, the newest
ENOUGH = 3  # runs before, to judge one by


@dataclass(frozen=True)
class Ratio:
    """Ours to theirs over alternating rounds: of the medians, and of the rounds one by one."""

    middle: float
    least: float
    most: float

    @classmethod
    def of(cls, ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
        """The ratio of two series that were measured in turns; ValueError where they are not as long."""
        each = [mine / other for mine, other in zip(ours, theirs, strict=True)]
        return cls(median(ours) / median(theirs), min(each), max(each))

    def __str__(self) -> str:
        return f"{self.middle:.3f} ({self.least:.3f}..{self.most:.3f})"


def keep(name: str, ratio: float, history: Path = HISTORY) -> str:
    """Write down a ratio to a peer (less is better); what is to be said of it beside those before, or ""."""
    before = _before(name, history)
    history.parent.mkdir(parents=True, exist_ok=True)
    line = {"name": name, "ratio": ratio, "commit": _commit(), "time": int(time.time())}
    with history.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    if len(before) < ENOUGH:
        return ""
    usual = median(before)
    if ratio > usual * WORSE:
        return f"SLOWER: {ratio / usual:.2f} times the {usual:.2f} of the last {len(before)} runs"
    return f"before: {usual:.2f}"


def kept(name: str, ratio: Ratio) -> str:
    """A ratio to a peer as it is printed, its spread and what `keep` says of it."""
    return f"{ratio!s:24}{keep(name, ratio.middle)}"


def _before(name: str, history: Path) -> list[float]:
    """The newest ratios of that name, the newest last."""
    if not history.exists():
        return []
    lines = [json.loads(line) for line in history.read_text(encoding="utf-8").splitlines()]
    return [line["ratio"] for line in lines if line["name"] == name][-LOOKED_AT:]


def _commit() -> str:
    """Which source was measured; "" outside a repository."""
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
