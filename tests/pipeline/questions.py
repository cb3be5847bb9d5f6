"""Ten questions to tables, wherever these are and whoever answers.

    python -m tests.pipeline.questions WHERE TABLES [SETTING…]

WHERE is a master, or the URL of a Spark Connect server. Prints the answers as JSON. A process of its own:
beside a session of Spark's own, functions of columns would be of either kind.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from kgroup.pipeline.ask.jobs import question
from kgroup.pipeline.ask.spark_views import rows_of
from kgroup.pipeline.spark.remote import remote_session
from kgroup.pipeline.spark.session import spark_session
from kgroup.pipeline.tables.store import Store
from kgroup.storage.options import StorageOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEN = (
    ("state_at", None, False),
    ("state_at", None, True),
    ("state_at", "GROUP", False),
    ("members", None, True),
    ("rebalances", None, False),
    ("commit_rates", "GROUP", False),
    ("suspicious_commits", None, False),
    ("events", "GROUP", False),
    ("commits", "c*-0", False),
    ("top_writers", None, False),
)
"""A table, of which groups (GROUP is the one that writes most), and whether of a moment in the middle."""
Answers = dict[str, list[str]]


def answers(spark: SparkSession, store: Store) -> Answers:
    """Return the rows of each of the ten, as texts, in their order."""
    (busiest,) = rows_of(spark, store, question("top_writers", None, None, 1))
    middle = (busiest["first_ts"] + busiest["last_ts"]) // 2
    found: Answers = {}
    for name, groups, timed in TEN:
        chosen, at = busiest["group_id"] if groups == "GROUP" else groups, middle if timed else None
        rows = rows_of(spark, store, question(name, chosen, at, 0))
        found[f"{name} of {groups} at {at}"] = [str(row) for row in rows]
    return found


def asked_there(where: str, tables: str, environ: Mapping[str, str] | None = None, *settings: str) -> Answers:
    """Return what a process answers that asks there; `settings` are Spark's."""
    command = [sys.executable, "-m", "tests.pipeline.questions", where, tables, *settings]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0, done.stderr
    told: Answers = json.loads(done.stdout)
    return told


if __name__ == "__main__":
    where, tables, *settings = sys.argv[1:]
    given = dict(setting.split("=", 1) for setting in settings)
    with remote_session(where) if where.startswith("sc:") else spark_session(where, given) as session:
        print(json.dumps(answers(session, Store(tables, StorageOptions.of({})))))
