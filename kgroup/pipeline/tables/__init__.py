"""The tables of a store and how a run fills them: all of what is new, or nothing, and never an offset twice.

`store` knows the tables and the runs that count, `delta` commits versions of one table, `ingest` runs the
job, `folding` folds a share of the groups into events and keeps where it stopped.
"""
