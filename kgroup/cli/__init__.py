"""The command line: one file a command, found by `frame.registry`, imported when it is used.

To be used from above: `app.main`. Promised: help and the names a shell completes cost no more than they need.
"""
