"""Questions in SQL: the same rows from DuckDB, Spark and `pipeline query`, and nothing else in reach."""

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("duckdb")

import pyarrow as pa
from jsonschema import validate

from kgroup.cli.schemas import schema_for
from kgroup.errors import ConfigError
from kgroup.pipeline.ask import jobs
from kgroup.pipeline.ask.jobs import QUERIES
from kgroup.pipeline.ask.spark_views import rows_of, views_in_spark
from kgroup.pipeline.ask.sql import answered
from kgroup.pipeline.tables.store import Store
from tests.pipeline import local_run
from tests.pipeline.processes import process
from tests.ran import Ran, ran

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
QUESTIONS = re.findall(r"^## (.*?)\n.*?```sql\n(.*?)```", (ROOT / "docs/sql.md").read_text(), re.S | re.M)


@pytest.fixture(scope="module")
def store(incidents, made, tmp_path_factory) -> Store:
    """What was recorded, and made-up history for what no recorded incident has: suspicious commits."""
    local_run.run([*incidents, made], found := Store(tmp_path_factory.mktemp("store")), 1 << 20, 2)
    return found


@pytest.fixture(scope="module")
def session(spark, store):
    views_in_spark(spark, store)
    return spark


def plain(table: pa.Table) -> list[dict]:
    """Rows whose times are ms, whatever unit and zone they came in."""
    for at, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            ms = table[field.name].cast(pa.timestamp("ms", field.type.tz), safe=False).cast(pa.int64())
            table = table.set_column(at, field.name, ms)
    return table.to_pylist()


def placed(question: str, store: Store) -> str:
    """The question about a group and a moment that these tables have."""
    (busy,) = answered(
        store,
        "select group_id, epoch_ms(max(ts)) as ms from events where event = 'rebalance-completed' "
        "group by group_id order by count(*) desc, group_id limit 1",
    ).rows
    (at,) = answered(
        store, f"select strftime(make_timestamp({busy['ms']} * 1000), '%Y-%m-%d %H:%M:%S.%g') as t"
    ).rows
    question = question.replace("'orders'", f"'{busy['group_id']}'")
    return question.replace("'2026-03-01 03:00:00'", f"'{at['t']}'")


def test_there_are_ten_questions():
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize(("title", "question"), QUESTIONS, ids=[title for title, _ in QUESTIONS])
def test_duckdb_and_spark_answer_alike(session, store, title, question):
    asked = placed(question, store)
    by_duckdb = answered(store, asked)
    assert by_duckdb.rows or title.startswith(("10.", "4."))
    assert plain(session.sql(asked).toArrow()) == by_duckdb.rows


def test_coverage_and_runs_are_asked_too(store):
    """The numbers of `query coverage`, and every run with what it read."""
    found = answered(store, "select * from coverage").rows
    assert found == jobs.rows_in_manifest(store, "coverage") and found
    runs = answered(
        store, "select run, kind, len(files) as files, ended > timestamp '2020-01-01' as late from runs"
    )
    (run,) = runs.rows
    assert (run["run"], run["kind"], run["late"]) == (1, "run", True) and run["files"] > 1


VIEWS = ["members", "rebalances", "top_writers", "commit_rates", "suspicious_commits", "events", "commits"]


@pytest.mark.parametrize("name", [*VIEWS, "control", "markers", "batches"])
def test_a_view_has_the_rows_of_a_query(session, store, name):
    query = QUERIES[name]
    expected = rows_of(session, store, jobs.question(name, None, None, 0))
    columns = ", ".join(f'"{column}"' for column in query.schema.names)
    found = answered(store, f"select {columns} from {name}").rows
    assert found and sorted(map(repr, found)) == sorted(map(repr, expected))
    ticked = columns.replace('"', "`")
    by_spark = plain(session.sql(f"select {ticked} from {name}").toArrow())
    assert sorted(map(repr, by_spark)) == sorted(map(repr, expected))


@pytest.mark.parametrize("name", ["commits", "control", "batches"])
def test_others_read_the_tables_without_us(spark, store, name):
    """deltalake with pyarrow; DuckDB and Spark by the Parquet files that Delta's log names."""
    import duckdb
    from deltalake import DeltaTable

    told = DeltaTable(store.place.uri(name))
    files = [uri.removeprefix("file://") for uri in told.file_uris()]
    columns = ["log_offset", "group_id"] if name != "batches" else ["log_offset", "records"]
    by_pyarrow = told.to_pyarrow_table(columns=columns).to_pylist()
    listed = ", ".join(columns)
    by_duckdb = duckdb.sql(f"select {listed} from read_parquet({files!r})").fetchall()
    by_spark = spark.read.parquet(*files).select(*columns).collect()
    ours = answered(store, f"select {listed} from {name}").rows
    rows = sorted(tuple(row.values()) for row in ours)
    assert rows
    for found in ((tuple(row.values()) for row in by_pyarrow), by_duckdb, map(tuple, by_spark)):
        assert sorted(found) == rows


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 1.0, None])
def test_state_at_any_moment_is_that_of_a_query(session, store, share):
    (span,) = answered(
        store, "select epoch_ms(min(max_ts)) as a, epoch_ms(max(max_ts)) as b from batches"
    ).rows
    at = None if share is None else int(span["a"] + share * (span["b"] - span["a"]))
    expected = rows_of(session, store, jobs.question("state_at", None, at, 0))
    moment = "null" if at is None else f"make_timestamp({at} * 1000)"
    columns = ", ".join(f's."{name}"' for name in QUERIES["state_at"].schema.names)
    found = answered(store, f"select {columns} from state_at({moment}) s").rows
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    moment = "null" if at is None else f"timestamp_millis({at})"
    by_spark = plain(session.sql(f"select * from state_at({moment})").toArrow())
    assert sorted(repr(sorted(row.items())) for row in by_spark) == sorted(
        repr(sorted(row.items())) for row in expected
    )


@pytest.mark.parametrize(
    "question",
    [
        "copy commits to '{out}'",
        "copy (select 1) to '{out}' (format csv)",
        "create table t as select 1",
        "insert into commits select * from commits",
        "attach '{out}'",
        "export database '{out}'",
        "install httpfs",
        "load httpfs",
        "set threads = 1",
        "set enable_external_access = true",
        "pragma enable_profiling",
        "call pragma_version()",
        "drop view commits",
        "select * from read_csv('{secret}')",
        "select * from read_text('{secret}')",
        "select * from read_parquet('{secret}')",
        "select * from '{secret}'",
        "select * from glob('/*')",
        "select * from secret_in_python",
        "explain analyze copy commits to '{out}'",
        "from query('copy commits to ''{out}''')",
        "select 1; copy commits to '{out}'",
        "",
    ],
)
def test_it_can_only_be_asked(store, tmp_path, question):
    secret_in_python = pa.table({"secret": ["kept"]})
    (secret := tmp_path / "secret.csv").write_text("secret\nkept\n")
    asked = question.format(out=tmp_path / "out", secret=secret)
    with pytest.raises(ConfigError) as refused:
        print(answered(store, asked).rows)
    assert "kept" not in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]
    assert secret_in_python.num_rows == 1


@pytest.mark.parametrize(
    ("question", "place"),
    [
        ("slect 1", "(line 1, column 1)"),
        ("select nothing\nfrom commits", "(line 1, column 8)"),
        ("select 1,\n  2,\n  nothing from commits", "(line 3, column 3)"),
        ("select " + "1, " * 100 + "nothing from commits", "(line 1, column 308)"),
        ("select * from nowhere", "(line 1, column 15)"),
    ],
)
def test_an_error_has_its_place(store, question, place):
    with pytest.raises(ConfigError) as refused:
        answered(store, question)
    assert str(refused.value).endswith(place)
    assert "\n" not in str(refused.value)


def test_two_columns_of_one_name_are_refused(store):
    with pytest.raises(ConfigError, match="two columns of the answer are called n"):
        answered(store, "select 1 as n, 2 as n")


def test_the_command(store, tmp_path, capsys):
    def kgroup(*words: str) -> Ran:
        return ran(capsys, *words)

    where = str(store.place.folder)
    question = "select group_id, first_ts, bytes, commits_per_minute from top_writers order by bytes desc"
    document = json.loads(kgroup("pipeline", "sql", question, where, "--limit", "2", "-o", "json").out)
    validate(document, schema_for("pipeline sql"))
    assert document["data"]["more"] and len(document["data"]["rows"]) == 2
    assert [c["name"] for c in document["data"]["columns"]] == [
        "group_id",
        "first_ts",
        "bytes",
        "commits_per_minute",
    ]
    assert {"first_ts", "first_ts_ms"} < set(document["data"]["rows"][0])
    assert kgroup("pipeline", "sql", "select unowned from rebalances", where).code == 0
    lines = kgroup("pipeline", "sql", question, where, "-o", "csv").out.splitlines()
    assert lines[0].startswith("group_id,first_ts,") and len(lines) > 3
    wrong = kgroup("pipeline", "sql", "select 1 +", where)
    assert wrong.code == 2 and wrong.err.startswith("error: SQL: ")
    nothing = kgroup("pipeline", "sql", "select 1", str(tmp_path))
    assert nothing.code == 2 and "holds no tables" in nothing.err


def test_the_command_as_a_process_is_silent_on_stderr(store):
    """DuckDB's bindings print what they hold when Python ends, if that did not collect."""
    done = process("pipeline", "sql", "select count(*) as n from commits", str(store.place.folder))
    assert (done.code, done.err) == (0, "") and done.out.split()[0] == "N"
