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
    sys.unraisablehook = _unraised

    try:
        code = run(sys.argv[1:])
    finally:
        # Python collects again as it ends, which takes a tenth of a short command for nothing. DuckDB would
        # then report on stderr what it still holds.
        if "duckdb" not in sys.modules:
            gc.freeze()
    # Where SIGINT came while a string ran, as it does under @dataclass, Python would end the process by the
    # signal however it was answered; the next string takes that back.
    exec("")
    sys.exit(code)


def _unraised(lost: "sys.UnraisableHookArgs") -> None:
    """Interrupt again where Python dropped an interrupt, as it does in a weak reference's callback."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)
        return
    import _thread
    import signal
    import time
    from functools import partial
    from threading import Event, Thread, main_thread

    again = _thread.interrupt_main
    if sys.platform != "win32":
        # A wait in the main thread ends only by a signal of its own.
        again = partial(signal.pthread_kill, main_thread().ident or 0, signal.SIGINT)
    ended = Event()

    def later() -> None:
        # Neither this nor the callback that drops interrupts has ended yet.
        ended.wait()
        time.sleep(0.01)
        again()

    Thread(target=later).start()
    ended.set()


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
