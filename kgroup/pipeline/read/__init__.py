"""What a run reads: segments or a live topic, cut into splits, as rows of Arrow tables and items for the
folds.

`commits` and `values` make columns of commits without an object for each; `rows` does a split; `source` is
Spark's data source `kafka_offsets_log` over the same.
"""
