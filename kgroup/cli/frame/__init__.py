"""The frame of all commands: the tree and its registry, shared options, how a command runs and ends.

`tree.run` runs a command line; `registry` names every command; `options` declares shared options; the other
modules hold what several commands do alike. Commands import from here, nothing here imports a command.
"""
