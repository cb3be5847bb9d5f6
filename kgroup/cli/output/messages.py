"""Messages on stderr: an error and its remedy; and the end of a plan."""

import contextlib
import sys

from kgroup.cli.env.escaping import clean

NOT_YET = "Nothing changed. Add --execute."
"""The last line of a plan that was only shown."""


def print_error(message: str, hint: str | None = None) -> None:
    """Print an `error:` line and, if there is a next step, a `hint:` line, both on stderr.

    A line feed or a control character in them came with a name: it is shown as an escape.
    """
    with contextlib.suppress(OSError):
        print(f"error: {clean(message)}", file=sys.stderr)
        if hint:
            print(f"hint: {clean(hint)}", file=sys.stderr)
