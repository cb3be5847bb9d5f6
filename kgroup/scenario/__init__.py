"""Scenarios of what happened in a group: written from its log, read from a file, played on a cluster.

They are the language of `kgroup simulate`, with members that have names: `recorded` is the file, `recording`
makes it from a log, `naming` has other names in it. `playing` plays it; its members speak over the wire.
"""
