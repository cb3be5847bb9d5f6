"""`kgroup`: entry of the command line."""

import gc
import os
import sys

from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.tree import run
from kgroup.cli.output.messages import print_error

AT_A_TIME = 50_000
"""New objects between two runs of the garbage collector; with Python's 700 it goes through every import."""


def main() -> None:
    """The console script."""
    gc.set_threshold(AT_A_TIME)
    if sys.stderr is None:
        # A closed descriptor: what is said there must not end up among the data.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        print_error("standard output is closed", "send it to /dev/null to discard it")
        sys.exit(ExitCode.FAILED)
    if (sys.stdout.encoding or "").lower() != "utf-8":
        from kgroup.cli.output.narrow import widen

        widen()

    try:
        code = run(sys.argv[1:])
    finally:
        # Python collects once more as it ends: a tenth of the time of a short command, for nothing.
        gc.freeze()
    sys.exit(code)


if __name__ == "__main__":
    main()
