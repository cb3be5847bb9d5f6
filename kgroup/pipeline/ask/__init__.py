"""Queries of a store: as DataFrames, by name, as a replay in process would show it, as pictures.

Only built-in functions where rows are many: queries of commits need no Python. Nothing here writes to a
store.
"""
