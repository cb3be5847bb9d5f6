"""The history of groups as Parquet tables, made and queried by Spark: `kgroup.history` on many cores.

`read` finds the input, cuts it into splits and makes their rows; `tables` fills a store with them in runs,
and folds the groups into events; `ask` queries a store, replays it, draws it; `spark` starts Spark. `schemas`
has the columns of all tables.

Other packages use `ingest`, `Store`, `queries`, `jobs`, `schemas`, and the data source by its name.

A run adds everything new or, on failure, nothing, and never an offset twice; the events are those of a replay
in process, however the input was cut; queries of commits need no Python.
"""
