"""Printing: results as tables, JSON, YAML, CSV or names; errors; times and numbers in words.

A command returns a `Result` with its data, its blocks for people and its exit code; `show` prints it in the
format requested. Text from a cluster is escaped before it reaches a terminal. Nothing here knows a command.
"""
