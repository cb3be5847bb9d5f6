"""What a command is worth at a version: the data behind docs/broker-versions.md."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.ran import Ran

RESULTS = Path(__file__).with_name("results.json")
UNSUPPORTED = "UNSUPPORTED_VERSION"


@dataclass(frozen=True)
class Outcome:
    """`works`, `partly` with what is missing, or `needs` with the first version that has what it takes."""

    verdict: str
    why: str = ""
    since: str = ""

    @property
    def row(self) -> dict[str, str]:
        return {key: value for key, value in asdict(self).items() if value}


WORKS = Outcome("works")


def partly(why: str) -> Outcome:
    return Outcome("partly", why)


def needs_later(told: Ran) -> Outcome:
    """Of a command that the broker is too old for: it says so, and from which release on it works."""
    assert told.code not in (0, 8), told
    assert UNSUPPORTED in told.out, told
    found = re.search(r"Kafka (\d+\.\d+) and later", told.out)
    assert found, f"no release is named: {told}"
    return Outcome("needs", since=found[1])


def recorded() -> dict[str, Any]:
    """The committed results: by version, the release and each command's outcome."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}


def record(version: str, seen: dict[str, Any]) -> None:
    """Keep what was seen at one version."""
    every = {**recorded(), version: seen}
    ordered = {key: every[key] for key in sorted(every, key=lambda v: tuple(map(int, v.split("."))))}
    RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
