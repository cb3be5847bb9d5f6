"""Play incidents by hand: `python -m tests.incidents kafka|kgroup NAME…` prints marks and answers.

A name stands for all incidents that begin with it. With KGROUP_FULL=record what was seen is recorded.
"""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from concurrent.futures import Future
from pathlib import Path

from tests.sampled import RECORD

from . import everything  # noqa: F401
from .playing import INCIDENTS, Played, Theatre
from .results import record, row
from .truth import MISSING, WRONG

BEGUN = time.monotonic()


def show(kind: str, name: str, future: Future[Played]) -> bool:
    """Print what an incident came to, as soon as it has; whether it was played and all of it is right."""
    print(f"## {name} ended after {time.monotonic() - BEGUN:.0f} s", flush=True)
    if failed := future.exception():
        print(f"== {name} could not be played on {kind}")
        traceback.print_exception(failed)
        return False
    played = future.result()
    if RECORD:
        record(row(INCIDENTS[name], kind, cell, played) for cell in played.marks)
    for command, ran in played.answers.items():
        print(f"-- {name}: {command} ended with {ran.code}\n{ran.out}{ran.err}")
    for cell, mark in played.marks.items():
        print(f"== {name} on {kind}: {cell} {mark.verdict} {mark.why}", flush=True)
    return not {mark.verdict for mark in played.marks.values()} & {WRONG, MISSING}


def main(kind: str, *names: str) -> int:
    """Play the incidents; 1 when one could not be played, or an answer is not right."""
    chosen = [each for name, each in INCIDENTS.items() if name.startswith(names) and kind in each.kinds]
    with tempfile.TemporaryDirectory(prefix="incidents-") as folder:
        right: list[bool] = []
        Theatre(kind, Path(folder)).play(chosen, lambda name, future: right.append(show(kind, name, future)))
    return 0 if right and all(right) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
