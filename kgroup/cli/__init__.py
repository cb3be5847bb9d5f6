"""The command line: one file per command, found by `frame.registry`, imported on use.

Entry point for callers: `app.main`. Promised: help imports no command that it does not show.
"""

from kgroup.cli.frame.light import leave_for_later

leave_for_later("typer")
