"""One file a command: its options, its example and its exit codes in the docstring, and what it runs.

A command turns options into a call of `Admin`, a replay or a server, and what comes back into a view. It is
found by `cli.frame.registry` and imported when it is used, with what it needs imported where it is needed
(decision 0066). What two commands share is in `inputs`, `views` or `output`: no command imports another but
its own parts.
"""
