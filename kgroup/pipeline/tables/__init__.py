"""The tables of a store and how a run fills them: all new input or nothing, and never an offset twice.

`store` knows the tables and the valid runs, `delta` commits versions of one table, `ingest` runs the job,
`folding` folds a share of the groups into events and stores where it stopped.
"""
