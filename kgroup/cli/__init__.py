"""The command line: one file a command, found by `frame.registry`, imported when it is used.

To be used from above: `app.main`. Promised: help imports no command that it does not show.
"""
