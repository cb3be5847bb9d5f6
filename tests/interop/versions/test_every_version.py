"""Each command at a broker of each version: it works, says what it cannot see, or names the version it needs.

`make versions` plays all of them and compares with results.json; the interop suite plays a sample.
`make versions FULL=record` writes what was seen there, and docs/broker-versions.md of it.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sampled import FULL, RECORD

from ..conftest import require
from . import changing, logs, reading
from .broker import RELEASES, OldKafka
from .ground import Ground, playing
from .outcomes import record, recorded

pytestmark = pytest.mark.interop
SAMPLE = ("2.4",)
CHOSEN = tuple(RELEASES) if FULL else SAMPLE
CHECKS = {**reading.CHECKS, **logs.CHECKS, **changing.CHECKS}


@pytest.fixture(params=CHOSEN)
def ground(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Ground]:
    """A broker with its groups."""
    require("java", "javac", "mvn")
    with OldKafka(request.param, tmp_path / "broker") as kafka, playing(kafka, tmp_path, monkeypatch) as made:
        yield made


@pytest.mark.timeout(1200)
def test_what_the_commands_are_worth(ground: Ground) -> None:
    seen, failed = {}, []
    for command, check in CHECKS.items():
        try:
            outcome = check(ground)
            assert not outcome.since or _numbers(outcome.since) > ground.kafka.version, outcome
            seen[command] = outcome.row
        except Exception:
            failed.append(f"{command}: {traceback.format_exc(limit=-2)}")
    version = ".".join(map(str, ground.kafka.version))
    found = {"release": ground.kafka.release, "commands": seen}
    print(json.dumps(found, indent=1))
    assert not failed, "\n".join(failed)
    if RECORD:
        record(version, found)
    assert recorded().get(version) == found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
