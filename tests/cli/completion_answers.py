"""What shells ask kgroup at a TAB, answered by one process instead of one per TAB.

`python -m tests.cli.completion_answers FOLDER` reads requests from the pipe FOLDER/ask and answers into
FOLDER/reply, by the code that runs in `kgroup`.
"""

import contextlib
import io
import os
import sys
from pathlib import Path

from kgroup.cli.frame import completions
from kgroup.cli.frame.tree import run

STAND_IN = """#!/bin/sh
if [ -n "$_KGROUP_COMPLETE" ]; then
    printf '%s\\0' "$_KGROUP_COMPLETE" "$@" > "{folder}/ask"
    exec cat "{folder}/reply"
fi
printf '%s\\0' "$@" > "{folder}/argv.new"
mv "{folder}/argv.new" "{folder}/argv"
"""
"""A `kgroup` that asks that process, and keeps what it is run with."""


def main(folder: Path) -> None:
    """Answer until the process is killed."""
    # A busy machine may need more than the second that a person waits.
    completions.PATIENCE_S = 60
    while True:
        shell, *asked = (os.fsdecode(word) for word in (folder / "ask").read_bytes().split(b"\0")[:-1])
        os.environ["_KGROUP_COMPLETE"] = shell
        answer = io.TextIOWrapper(io.BytesIO())
        with contextlib.redirect_stdout(answer):
            run(asked)
        answer.flush()
        (folder / "reply").write_bytes(answer.buffer.getvalue())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
