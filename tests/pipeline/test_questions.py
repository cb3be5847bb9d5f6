"""The same ten questions and the same answers, wherever the tables lie and whatever Spark answers."""

from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from kgroup.pipeline.tables.store import Store
from kgroup.storage.options import StorageOptions
from tests.pipeline import local_run
from tests.pipeline.processes import cluster
from tests.pipeline.questions import TEN, Answers, answers, asked_there
from tests.pipeline.test_connect import TOKEN, connect_server
from tests.s3 import S3Server
from tests.sampled import in_full

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(1800),
    in_full("test_storage asks tables in S3 for all that these are asked for"),
]


@pytest.fixture(scope="module")
def tables(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    local_run.run([made], Store(folder), 200_000, 2)
    return folder


@pytest.fixture(scope="module")
def expected(tables: Path, spark: object) -> Answers:
    """What one process answers of a folder."""
    found = answers(spark, Store(tables))  # type: ignore[arg-type]
    assert len(found) == len(TEN) == 10
    assert [name for name, rows in found.items() if not rows] == []
    return found


def test_tables_in_s3_are_answered_as_those_in_a_folder(
    tables: Path, expected: Answers, spark: object, s3: S3Server
) -> None:
    there = Store(f"s3://{s3.bucket(tables, 'tables')}/tables", StorageOptions.of(s3.options))
    assert answers(spark, there) == expected  # type: ignore[arg-type]


def test_a_standalone_cluster_answers_as_one_process(tables: Path, expected: Answers, tmp_path: Path) -> None:
    settings = ("spark.driver.host=127.0.0.1", "spark.executor.memory=500m", "spark.sql.shuffle.partitions=2")
    with cluster(tmp_path) as url:
        assert asked_there(url, str(tables), None, *settings) == expected


def test_a_spark_connect_server_answers_as_one_process(
    tables: Path, expected: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", TOKEN)
    with connect_server(tmp_path) as (url, _):
        assert asked_there(url, str(tables)) == expected
