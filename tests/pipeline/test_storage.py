"""Tables of a backup in an object store: row by row those of the same backup on a disk."""

import json
import pickle
from pathlib import Path

import pytest

from kgroup.errors import StorageChanged
from kgroup.history.sources.splits import plan_splits
from kgroup.pipeline.read.inputs import Segments
from kgroup.pipeline.read.source import OffsetsLogSource
from kgroup.pipeline.tables.ingest import fill, ingest
from kgroup.pipeline.tables.store import Store
from kgroup.storage.location import Location
from kgroup.storage.options import StorageOptions
from tests.pipeline.local_run import run
from tests.pipeline.stored_rows import check_same
from tests.s3 import ACCESS, S3Server


@pytest.fixture
def there(s3: S3Server, made: Path) -> Segments:
    place = Location.parse(f"s3://{s3.bucket(made, 'kafka')}/kafka")
    return Segments.of([place], options=StorageOptions.of(s3.options, 20))


def test_the_same_tables_from_s3_and_from_a_disk(there: Segments, made: Path, tmp_path: Path) -> None:
    here, away = Store(tmp_path / "here"), Store(tmp_path / "away")
    run([made], here, 20_000, 2)
    fill(lambda task, work: [task(one) for one in work], there, away, 20_000, 2)
    check_same(away, here)
    assert [span["records"] for span in away.manifest.spans] == [s["records"] for s in here.manifest.spans]
    assert away.manifest.names == here.manifest.names
    assert all(url.startswith("s3://") for about in away.manifest.runs for url in about["files"])


def test_what_was_read_from_s3_is_not_read_again(there: Segments, tmp_path: Path) -> None:
    store = Store(tmp_path)
    each = lambda task, work: [task(one) for one in work]  # noqa: E731
    assert fill(each, there, store, 20_000, 1).run is not None
    again = fill(each, there, store, 20_000, 1)
    assert (again.run, sum(again.rows.values())) == (None, 0)


def test_an_object_that_changes_during_a_run_leaves_nothing(
    there: Segments, s3: S3Server, tmp_path: Path
) -> None:
    store, found = Store(tmp_path / "tables"), there.looked_at()
    url = str(found.logs[1].files[0])
    s3.put(url, s3.get(url) + b"\0")
    with pytest.raises(StorageChanged, match="changed while it was read"):
        fill(lambda task, work: [task(one) for one in work], found, store, 20_000, 1)
    assert store.empty and not list(tmp_path.rglob("*.parquet"))


def test_a_split_that_travels_shows_no_secret(there: Segments) -> None:
    (split, *_) = plan_splits(there.logs, 20_000)
    assert ACCESS[1] not in f"{split} {there} {split.pieces[0].file}"
    assert pickle.loads(pickle.dumps(split)).pieces[0].file.read_bytes()


@pytest.mark.spark
def test_executors_open_the_objects_and_nothing_of_spark_shows_the_secret(
    there: Segments, made: Path, tmp_path: Path, spark: object
) -> None:
    context = spark.sparkContext  # type: ignore[attr-defined]
    here, away = Store(tmp_path / "here"), Store(tmp_path / "away")
    ingest(context, there, away, split_bytes=20_000, buckets=2)
    run([made], here, 20_000, 2)
    check_same(away, here)
    assert ACCESS[1] not in json.dumps(context.getConf().getAll())


@pytest.mark.spark
def test_the_data_source_reads_urls_and_its_plan_shows_no_secret(
    there: Segments, made: Path, spark: object
) -> None:
    spark.dataSource.register(OffsetsLogSource)  # type: ignore[attr-defined]
    reader = spark.read.format("kafka_offsets_log")  # type: ignore[attr-defined]
    frame = reader.options(**there.options.values).load(str(there.paths[0]))
    local = spark.read.format("kafka_offsets_log").load(str(made))  # type: ignore[attr-defined]
    order = ("part", "log_offset")
    assert frame.orderBy(*order).collect() == local.orderBy(*order).collect()
    plan = frame._jdf.queryExecution().toString()
    assert ACCESS[1] not in plan and "kafka_offsets_log" in plan
