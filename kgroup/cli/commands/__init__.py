"""One file per command: options, example, exit codes in the docstring, and the code it runs.

A command turns options into calls of `kgroup.admin`, a replay or a server, and the result into a view. It is
found by `cli.frame.registry` and imported on use; it imports what it needs where it needs it (decision 0066).
What two commands share is in `inputs`, `views` or `output`: no command imports another but its own parts.
"""
