"""Questions to a store: as DataFrames, by name, as a story like that of a replay in process, as pictures.

Built-in functions only where rows are many: commits meet no Python in a query. Nothing here writes to a
store.
"""
