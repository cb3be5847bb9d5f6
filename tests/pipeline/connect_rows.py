"""Prints the rows of tables as JSON, asked of a Spark Connect server: URL TABLES NAME….

A process of its own: beside a session of Spark's own, functions of columns would be of either kind.
"""

import json
import sys
from pathlib import Path

from kgroup.pipeline.ask.jobs import QUERIES, rows_of
from kgroup.pipeline.spark.remote import remote_session
from kgroup.pipeline.tables.store import Store

if __name__ == "__main__":
    url, tables, *names = sys.argv[1:]
    with remote_session(url) as spark:
        store = Store(Path(tables))
        print(
            json.dumps({n: [str(r) for r in rows_of(spark, store, QUERIES[n], None, None, 0)] for n in names})
        )
