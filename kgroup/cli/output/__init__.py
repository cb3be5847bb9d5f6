"""How things are printed: results as tables, JSON, YAML, CSV or names; errors; moments and numbers in words.

A command hands over a `Result` with its data, its blocks for people and its exit code; `show` prints it in
the format asked for. What comes from a cluster is escaped before it reaches a terminal. Nothing here knows a
command.
"""
