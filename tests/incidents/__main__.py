"""Play incidents by hand: `python -m tests.incidents kafka|kgroup NAME…` prints marks and answers.

A name stands for all incidents that begin with it.
"""

from __future__ import annotations

import sys
import tempfile
import traceback
from pathlib import Path

from . import everything  # noqa: F401
from .playing import INCIDENTS, Theatre


def main(kind: str, *names: str) -> None:
    chosen = [each for name, each in INCIDENTS.items() if name.startswith(names) and kind in each.kinds]
    with tempfile.TemporaryDirectory(prefix="incidents-") as folder:
        futures = Theatre(kind, Path(folder)).play(chosen)
    for name, future in futures.items():
        if failed := future.exception():
            print(f"== {name} could not be played")
            traceback.print_exception(failed)
            continue
        played = future.result()
        for command, ran in played.answers.items():
            print(f"-- {name}: {command} ended with {ran.code}\n{ran.out}{ran.err}")
        for cell, mark in played.marks.items():
            print(f"== {name} on {kind}: {cell} {mark.verdict} {mark.why}")


if __name__ == "__main__":
    main(*sys.argv[1:])
