"""What holds the commands together: the tree and its registry, shared options, how a command runs and ends.

`tree.run` runs a command line; `registry` names every command; `options` declares what commands share; the
others are what several commands do alike. Commands import from here, nothing here imports a command.
"""
