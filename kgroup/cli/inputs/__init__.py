"""What commands are given beside the shared options: names and patterns of groups, files of offsets, sources
of a history.

Each turns text into values or raises ConfigError with what to write instead.
"""
