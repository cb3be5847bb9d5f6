"""Scenarios of what happened in a group: written from its log, read from a file, played on a cluster.

They use the language of `kgroup simulate`, with named members: `recorded` is the file, `recording` makes it
from a log, `naming` replaces the names in it. `playing` plays it; its members use the wire protocol.
"""
