"""The input of a run: segments or a live topic, cut into splits, as rows of Arrow tables and items for folds.

`commits` and `values` make columns of commits without an object per commit; `rows` processes a split;
`source` is Spark's data source `kafka_offsets_log` on the same code.
"""
