"""The command line: one file a command, found by `registry`, imported when it is used.

To be used from above: `app.main`. Promised: help and the names a shell completes cost no more than they need.
"""

from kgroup.cli.light import leave_for_later

# Help and completion need a third of typer; a command that runs needs all of it.
leave_for_later("typer")
