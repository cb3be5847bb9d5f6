"""The history of groups as Parquet tables, made and asked by Spark: `kgroup.history` at work on many cores.

`ingest` fills a store in runs: `inputs` say what there is to read and cut it into splits, `rows` makes the
rows of a split (commits by `commits` and `values`, without an object each), `folding` folds a share of the
groups into events. `store` keeps the tables and their manifest, `schemas` their columns. `queries` are
questions to a store as DataFrames, with `members`; `jobs` are those that have a name. `source` is Spark's
data source; `replaying` and `story` tell a store as `history.replay` would; `timeline`, `picture` and `plot`
draw it. `session` and `java` start Spark, `package` ships kgroup to executors.

To be used from outside: `ingest`, `Store`, `queries`, `jobs`, `schemas`, and the data source by its name.

Promised: a run adds all of what is new or, on failure, nothing, and never an offset twice; the events are
those of a replay in process, however the input was cut; commits meet no Python in a query.
"""
