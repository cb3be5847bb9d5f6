"""Tables of a backup in an object store: row by row those of the same backup on a disk."""

import json
import pickle
import random
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kgroup.errors import StorageChanged
from kgroup.history.sources.splits import plan_splits
from kgroup.pipeline.ask.jobs import IN_MANIFEST, QUERIES, progress, question
from kgroup.pipeline.ask.queries import _Fetch
from kgroup.pipeline.ask.spark_views import rows_of
from kgroup.pipeline.read.inputs import Segments
from kgroup.pipeline.read.source import OffsetsLogSource
from kgroup.pipeline.schemas import COMMITS, plain
from kgroup.pipeline.spark.workers import InProcess
from kgroup.pipeline.tables.ingest import fill, ingest
from kgroup.pipeline.tables.place import Place
from kgroup.pipeline.tables.store import Store
from kgroup.storage.location import Location
from kgroup.storage.objects import Objects
from kgroup.storage.options import StorageOptions
from kgroup.storage.store import Found
from tests.pipeline.local_run import run
from tests.pipeline.made_logs import write_log
from tests.pipeline.stored_rows import check_same
from tests.ran import Ran
from tests.s3 import ACCESS, S3Server
from tests.sampled import FULL


@pytest.fixture
def there(s3: S3Server, made: Path) -> Segments:
    place = Location.parse(f"s3://{s3.bucket(made, 'kafka')}/kafka")
    return Segments.of([place], options=StorageOptions.of(s3.options, 20))


def test_the_same_tables_from_s3_and_from_a_disk(there: Segments, made: Path, tmp_path: Path) -> None:
    here, away = Store(tmp_path / "here"), Store(tmp_path / "away")
    run([made], here, 20_000, 2)
    fill(InProcess(), there, away, 20_000, 2)
    check_same(away, here)
    assert [span["records"] for span in away.manifest.spans] == [s["records"] for s in here.manifest.spans]
    assert away.manifest.names == here.manifest.names
    assert all(url.startswith("s3://") for about in away.manifest.runs for url in about["files"])


def test_what_was_read_from_s3_is_not_read_again(there: Segments, tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert fill(InProcess(), there, store, 20_000, 1).run is not None
    again = fill(InProcess(), there, store, 20_000, 1)
    assert (again.run, sum(again.rows.values())) == (None, 0)


def test_an_object_that_changes_during_a_run_leaves_nothing(
    there: Segments, s3: S3Server, tmp_path: Path
) -> None:
    store, found = Store(tmp_path / "tables"), there.looked_at()
    url = str(found.logs[1].files[0])
    s3.put(url, s3.get(url) + b"\0")
    with pytest.raises(StorageChanged, match="changed while it was read"):
        fill(InProcess(), found, store, 20_000, 1)
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
    ingest(context, there, away, split_bytes=20_000, shares=2)
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


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_questions_to_tables_in_s3_are_answered_as_those_on_a_disk(
    s3: S3Server, tmp_path: Path, spark: object
) -> None:
    write_log(tmp_path / "in" / "__consumer_offsets-7", seed=7, batches=150)
    here = Store(tmp_path / "out")
    run([tmp_path / "in"], here, 1 << 20, 1)
    there = Store(f"s3://{s3.bucket(tmp_path / 'out', 'tables')}/tables", StorageOptions.of(s3.options))
    (busiest, *_) = rows_of(spark, here, question("top_writers", None, None, 1))  # type: ignore[arg-type]
    group = busiest["group_id"]
    middle = (busiest["first_ts"] + busiest["last_ts"]) // 2
    names = [name for name in QUERIES if name not in IN_MANIFEST]
    for name, groups, at in product(names, (None, group), (None, middle)):
        query = QUERIES[name]
        if bool(groups) <= query.grouped and bool(at) <= query.timed:
            if not FULL and (bool(groups), bool(at)) != (query.grouped, query.timed):
                continue
            asked = question(name, groups, at, 0)
            expected = rows_of(spark, here, asked)  # type: ignore[arg-type]
            assert rows_of(spark, there, asked) == expected, query  # type: ignore[arg-type]
    drawn, expected = (
        sorted(map(repr, rows_of(spark, store, progress(group, 60_000))))  # type: ignore[arg-type]
        for store in (there, here)
    )
    assert drawn == expected and expected


def test_of_a_table_in_s3_the_columns_and_row_groups_of_a_question_are_fetched(
    s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, name = 200_000, "commits/part=3/date=2026-03-01/made.parquet"
    chance = random.Random(3)
    columns = {
        "log_offset": range(count),
        "ts": range(count),
        "group_id": [f"group-{number // 10_000}" for number in range(count)],
        "offset": [chance.getrandbits(60) for _ in range(count)],
        "run": [1] * count,
    }
    schema = pa.schema([pa.field("run", pa.int32()) if n == "run" else COMMITS.field(n) for n in columns])
    (tmp_path / name).parent.mkdir(parents=True)
    made = pa.table([pa.array(columns[f.name], f.type) for f in schema], schema=schema)
    pq.write_table(made, tmp_path / name, row_group_size=10_000)
    whole = (tmp_path / name).stat().st_size
    place = Place.of(f"s3://{s3.bucket(tmp_path, 'tables')}/tables", StorageOptions.of(s3.options))
    fetched: list[int] = []
    read = Objects.read

    def counted(self: Objects, found: Found, start: int, end: int) -> bytes:
        fetched.append(end - start)
        return read(self, found, start, end)

    monkeypatch.setattr(Objects, "read", counted)

    def asked(columns: Sequence[str], group: str | None = None) -> tuple[int, int]:
        """Bytes fetched and rows found."""
        fetched.clear()
        wanted = pa.schema([plain(COMMITS).field(each) for each in columns])
        batch = pa.RecordBatch.from_pydict({"name": [name]})
        found = list(_Fetch(place, wanted, group)(iter([batch])))
        assert all(rows.schema.names == list(columns) for rows in found)
        return sum(fetched), sum(rows.num_rows for rows in found)

    every = asked(("part", "log_offset", "ts", "group_id", "offset"))
    some = asked(("part", "ts"))
    one = asked(("part", "log_offset", "offset"), "group-7")
    none = asked(("part", "offset"), "group-77")
    assert (every[1], some[1], one[1], none[1]) == (count, count, 10_000, 0)
    assert every[0] < 1.2 * whole
    assert max(some[0], 2 * one[0], 2 * none[0]) < whole / 3


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_commands_ask_tables_in_s3_as_those_on_a_disk(
    s3: S3Server, tmp_path: Path, kgroup: Callable[..., Ran]
) -> None:
    write_log(tmp_path / "in" / "__consumer_offsets-7", seed=7, batches=150)
    run([tmp_path / "in"], Store(tmp_path / "out"), 1 << 20, 2)
    url = f"s3://{s3.bucket(tmp_path / 'out', 'tables')}/tables"
    for words in (["state_at", "--group", "simple-7-1"], ["members"], ["top_writers"], ["events"]):
        here, there = (
            kgroup("pipeline", "query", *words, *place, "-o", "ndjson")
            for place in ([str(tmp_path / "out"), "--master", "local[2]"], [url, *s3.flags])
        )
        assert (here.code, there.code) == (0, 0), there.err
        assert there.out == here.out and here.out
