"""The history of groups as Parquet tables, made and asked by Spark: `kgroup.history` at work on many cores.

`read` says what there is to read, cuts it into splits and makes their rows; `tables` fills a store with
them in runs, and folds the groups into events; `ask` asks a store, tells it as a replay would, draws it;
`spark` starts Spark. `schemas` are the columns of all tables.

To be used from outside: `ingest`, `Store`, `queries`, `jobs`, `schemas`, and the data source by its name.

Promised: a run adds all of what is new or, on failure, nothing, and never an offset twice; the events are
those of a replay in process, however the input was cut; commits meet no Python in a query.
"""
