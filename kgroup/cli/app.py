"""`kgroup`: entry of the command line."""

import codecs
import gc
import io
import os
import sys

from kgroup.cli.exit_codes import ExitCode
from kgroup.cli.frame.tree import run
from kgroup.cli.output.messages import print_error

AT_A_TIME = 200_000
"""New objects between two runs of the garbage collector: those of a round of groups, which have no cycles."""


def main() -> None:
    """Run the console script."""
    gc.set_threshold(AT_A_TIME)
    if sys.stderr is None:
        # A closed descriptor: messages must not end up among the data.
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        print_error("standard output is closed", "send it to /dev/null to discard it")
        sys.exit(ExitCode.FAILED)
    if (sys.stdout.encoding or "").lower() != "utf-8":
        widen()

    try:
        code = run(sys.argv[1:])
    finally:
        # Python collects again as it ends, which takes a tenth of a short command for nothing. DuckDB would
        # then report on stderr what it still holds.
        if "duckdb" not in sys.modules:
            gc.freeze()
    sys.exit(code)


_SIGNS = {"·": "-", "…": "...", "→": "->", "└": "`", "█": "#", "░": "."}


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """Return the characters as ASCII: kgroup's own symbols as look-alikes, others as JSON escapes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    import json

    taken = error.object[error.start : error.end]
    return "".join(_SIGNS.get(c) or json.dumps(c)[1:-1] for c in taken), error.end


def widen() -> None:
    """Let no output fail for its encoding, and read stdin as UTF-8, as files are."""
    codecs.register_error("kgroup", _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="kgroup")
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8")


if __name__ == "__main__":
    main()
