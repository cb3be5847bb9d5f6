"""Play incidents by hand: `python -m tests.incidents kafka|kgroup NAME…` prints marks and answers.

A name stands for all incidents that begin with it. With KGROUP_INCIDENTS=record what was seen is recorded.
"""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from concurrent.futures import Future
from pathlib import Path

from . import HOW, everything  # noqa: F401
from .playing import INCIDENTS, Played, Theatre
from .results import record, row

BEGUN = time.monotonic()


def show(kind: str, name: str, future: Future[Played]) -> None:
    """What an incident came to, as soon as it has."""
    print(f"## {name} ended after {time.monotonic() - BEGUN:.0f} s", flush=True)
    if failed := future.exception():
        print(f"== {name} could not be played on {kind}")
        traceback.print_exception(failed)
        return
    played = future.result()
    if HOW == "record":
        record(row(INCIDENTS[name], kind, cell, played) for cell in played.marks)
    for command, ran in played.answers.items():
        print(f"-- {name}: {command} ended with {ran.code}\n{ran.out}{ran.err}")
    for cell, mark in played.marks.items():
        print(f"== {name} on {kind}: {cell} {mark.verdict} {mark.why}", flush=True)


def main(kind: str, *names: str) -> None:
    chosen = [each for name, each in INCIDENTS.items() if name.startswith(names) and kind in each.kinds]
    with tempfile.TemporaryDirectory(prefix="incidents-") as folder:
        Theatre(kind, Path(folder)).play(chosen, lambda name, future: show(kind, name, future))


if __name__ == "__main__":
    main(*sys.argv[1:])
