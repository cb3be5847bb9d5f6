"""The tables of a store and how a run fills them: all of what is new, or nothing, and never an offset twice.

`store` keeps files and the manifest that says which count; `ingest` runs the job; `folding` folds a share of
the groups into events and keeps where it stopped.
"""
