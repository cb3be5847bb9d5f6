"""What goes to stderr: an error and what to do about it; and how a plan ends."""

import contextlib
import sys

from kgroup.cli.env.escaping import clean

NOT_YET = "Nothing changed. Add --execute."
"""How the text of a plan ends when it was only asked for."""


def print_error(message: str, hint: str | None = None) -> None:
    """One `error:` line and, if there is a next step, one `hint:` line, both on stderr.

    A line feed or a control character in them came with a name: it is shown as an escape.
    """
    with contextlib.suppress(OSError):
        print(f"error: {clean(message)}", file=sys.stderr)
        if hint:
            print(f"hint: {clean(hint)}", file=sys.stderr)
