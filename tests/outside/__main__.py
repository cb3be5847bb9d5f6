"""`python -m tests.outside SUITE [--python PYTHON] [FILE ...]`: the suite of quix-streams on both brokers.

SUITE is a checkout, PYTHON one that has what the suite needs (SUITE/.venv/bin/python). Nothing of the suite
is changed: where it asks for a container it gets a broker on loopback (tests/outside/containers). It prints
how many tests pass on Kafka, which of them fail on kgroup, and how long each run took; 1 if one of them does.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
TESTS = "tests/test_quixstreams"
FILES = tuple(
    f"{TESTS}/{name}"
    for name in (
        "test_kafka",
        "test_app.py",
        "test_checkpointing.py",
        "test_internal_consumer",
        "test_internal_producer.py",
        "test_models/test_topics",
        "test_sources",
        "test_state/test_recovery",
        "test_state/test_manager.py",
        "test_platforms",
    )
)
"""Where quix-streams asks for a broker; its other tests need none, or other services."""


def outcomes(suite: Path, python: Path, server: str, files: list[str]) -> tuple[dict[str, str], float]:
    """What came of each test on a server, and the seconds that it took."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent / "containers"), str(suite)]),
            "OUTSIDE_SERVER": server,
            "OUTSIDE_PYTHON": sys.executable,
            "OUTSIDE_ROOT": str(ROOT),
        }
        options = ["-q", "-p", "no:cacheprovider", "-o", "addopts=", "-o", "log_cli=false"]
        command = [str(python), "-m", "pytest", *options, f"--junit-xml={report}", *files]
        began = time.monotonic()
        subprocess.run(command, cwd=suite, env=environment, check=False)
        took_s = time.monotonic() - began
        cases = ElementTree.parse(report).getroot().iter("testcase")  # noqa: S314 - pytest has written it
        return {f"{case.get('classname')}.{case.get('name')}": _outcome(case) for case in cases}, took_s


def _outcome(case: ElementTree.Element) -> str:
    return next((each.tag for each in case if each.tag in ("failure", "error", "skipped")), "passed")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.outside")
    parser.add_argument("suite", type=Path)
    parser.add_argument("--python", type=Path)
    parser.add_argument("files", nargs="*", default=[*FILES])
    given = parser.parse_intermixed_args()
    suite = given.suite.resolve()
    python = (given.python or suite / ".venv/bin/python").absolute()
    ours, ours_s = outcomes(suite, python, "kgroup", given.files)
    theirs, theirs_s = outcomes(suite, python, "kafka", given.files)
    passed = [name for name, outcome in theirs.items() if outcome == "passed"]
    wrong = [name for name in passed if ours.get(name) != "passed"]
    for name in wrong:
        print(f"passes on Kafka, not on kgroup ({ours.get(name, 'not run')}): {name}")
    print(f"{len(passed) - len(wrong)} of {len(passed)} that pass on Kafka pass on kgroup, of {len(theirs)}")
    print(f"Kafka {theirs_s:.0f} s, kgroup {ours_s:.0f} s")
    return int(bool(wrong) or not passed)


if __name__ == "__main__":
    sys.exit(main())
