"""Tables of an older format: read as they are, and gone on with, although the topic has been compacted."""

import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("deltalake")

from deltalake import DeltaTable

from kgroup.errors import ConfigError
from kgroup.history.fold.events import Event
from kgroup.history.replay import replay
from kgroup.history.sources.logs import segment_logs, topic_names_near
from kgroup.pipeline.ask.sql import answered
from kgroup.pipeline.ask.story import story_in
from kgroup.pipeline.schemas import TABLES
from kgroup.pipeline.spark.workers import InProcess
from kgroup.pipeline.tables import folding, manifest, store, upkeep
from kgroup.pipeline.tables.store import Store
from tests.pipeline import local_run
from tests.pipeline.made_logs import made_batches, write_names
from tests.pipeline.stored_rows import rows, without_runs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
KEPT = Path(__file__).resolve().parents[1] / "data" / "tables"
FOLDED = ("events", "events_open", "folds")


class Log:
    """A partition's log of which a run reads a part at a time, each time without what it has read."""

    def __init__(self, root: Path, batches: list[bytes]) -> None:
        self.source, self.whole, self.batches = root / "in", root / "whole", batches
        for folder in (self.source, self.whole):
            (folder / "__consumer_offsets-6").mkdir(parents=True)
            write_names(folder)

    def show(self, first: int, last: int) -> None:
        """Let the source have the batches from `first` to before `last`, `whole` all up to there."""
        for folder, begin in ((self.source, first), (self.whole, 0)):
            for old in (folder / "__consumer_offsets-6").glob("*.log"):
                old.unlink()
            base = int.from_bytes(self.batches[begin][:8], "big")
            segment = folder / "__consumer_offsets-6" / f"{base:020d}.log"
            segment.write_bytes(b"".join(self.batches[begin:last]))

    def events(self) -> list[Event]:
        return list(replay(segment_logs([self.whole]), topic_names=topic_names_near([self.whole])).events)


def without_words(events: list[Event]) -> list[Event]:
    """Return the events without what an older kgroup worded, or doubted, otherwise."""
    return [replace(event, cause=None, detail="", suspicious=False) for event in events]


def unpacked(root: Path) -> Log:
    """Tables that kgroup 0.1.0 wrote in format 9, from 70 of 110 batches in two runs."""
    with tarfile.open(KEPT / "format-9.tar.xz") as archive:
        # Python 3.11 knows filters from 3.11.4 on, and Debian's is older.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(root / "kept")
    shutil.move(root / "kept" / "tables", root / "tables")
    data = (root / "kept" / "whole.log").read_bytes()
    batches = []
    while data:
        size = 12 + int.from_bytes(data[8:12], "big")
        batches.append(data[:size])
        data = data[size:]
    return Log(root, batches)


def run(source: Path, out: Path) -> None:
    local_run.run([source], Store(out), 1 << 20, 2)


def raise_formats(monkeypatch: pytest.MonkeyPatch, *tables: str) -> None:
    raised = {table: manifest.FORMATS[table] + 1 for table in tables}
    for module in (manifest, store, "kgroup.pipeline.tables.record", "kgroup.pipeline.tables.ingest"):
        target = module if isinstance(module, str) else module.__name__
        monkeypatch.setattr(f"{target}.FORMATS", {**manifest.FORMATS, **raised})


def test_tables_of_format_9_are_read(tmp_path: Path) -> None:
    log = unpacked(tmp_path)
    log.show(0, 70)
    found = Store(tmp_path / "tables")
    assert without_words(story_in(found).events) == without_words(log.events())
    answer = answered(found, "select count(*) as events, max(run) as run from events")
    assert answer.rows == [{"events": len(log.events()), "run": 2}]
    assert len(answered(found, "select * from state_at(null)").rows) > 0


def test_tables_of_format_9_go_on_where_the_log_before_is_gone(tmp_path: Path) -> None:
    log = unpacked(tmp_path)
    log.show(70, 110)
    run(log.source, tmp_path / "tables")
    grown = Store(tmp_path / "tables")
    assert story_in(grown).events == log.events()
    run(log.whole, tmp_path / "fresh")
    fresh = Store(tmp_path / "fresh")
    for table in TABLES:
        assert without_runs(grown, table) == without_runs(fresh, table), table
    assert grown.manifest.formats == fresh.manifest.formats == dict(manifest.FORMATS)


def test_what_an_older_kgroup_folded_is_folded_again_from_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The states of another layout are not even opened: here they are no states at all."""
    log = unpacked(tmp_path)
    log.show(70, 110)
    out = tmp_path / "tables"
    for file in (out / "folds").rglob("*.parquet"):
        file.write_bytes(b"of a layout that nobody knows")
    raise_formats(monkeypatch, "folds")
    assert len(story_in(Store(out)).events) > 0
    run(log.source, out)
    run(log.whole, tmp_path / "fresh")
    grown, fresh = Store(out), Store(tmp_path / "fresh")
    assert story_in(grown).events == log.events()
    for table in (*TABLES, *FOLDED):
        assert without_runs(grown, table) == without_runs(fresh, table), table
    assert {row["run"] for table in FOLDED for row in rows(grown, table)} == {3}


@pytest.mark.parametrize("seed", [2, 5, 31, 211])
def test_folding_again_tells_what_the_log_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Gaps, transactions, compressed batches and kinds of groups; nothing new to read, then more of it."""
    log = Log(tmp_path, made_batches(seed, 160))
    out = tmp_path / "out"
    for first, last in ((0, 60), (60, 120)):
        log.show(first, last)
        run(log.source, out)
    raise_formats(monkeypatch, "folds", "events")
    run(log.source, out)
    assert story_in(Store(out)).events == log.events()
    assert not Store(out).manifest.outdated
    log.show(120, 160)
    run(log.source, out)
    assert story_in(Store(out)).events == log.events()
    run(log.whole, tmp_path / "fresh")
    for table in TABLES:
        assert without_runs(Store(out), table) == without_runs(Store(tmp_path / "fresh"), table), table


def lacking(monkeypatch: pytest.MonkeyPatch, columns: dict[str, str]) -> None:
    """Let runs write tables that lack a column each."""
    for table, column in columns.items():
        schema = store.KEPT[table]
        smaller = schema.remove(schema.get_field_index(column))
        monkeypatch.setitem(store.KEPT, table, smaller)
        if table == "events":
            monkeypatch.setattr(folding, "EVENTS", smaller)
            monkeypatch.setitem(store.KEPT, "events_open", smaller)


def test_columns_are_added_in_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are empty in the rows that were there, but for what is folded again."""
    log, out = Log(tmp_path, made_batches(8, 120)), tmp_path / "out"
    log.show(0, 60)
    with monkeypatch.context() as patch:
        lacking(patch, {"events": "count"})
        run(log.source, out)
    before = Store(out)
    assert "count" not in DeltaTable(out / "events").to_pyarrow_table().column_names
    assert [event.count for event in story_in(before).events] == [None] * len(story_in(before).events)
    question = "select count(*) as rows, count(count) as counts from events"
    assert [row["counts"] for row in answered(before, question).rows] == [0]
    raise_formats(monkeypatch, "events")
    log.show(60, 120)
    run(log.source, out)
    assert story_in(Store(out)).events == log.events()
    field = {f.name: f for f in DeltaTable(out / "events").schema().fields}["count"]
    assert field.metadata["comment"]
    assert answered(Store(out), question).rows[0]["counts"] > 0
    upkeep.vacuum(Store(out), 24, InProcess())
    assert story_in(Store(out)).events == log.events()


def test_a_column_that_is_not_folded_is_empty_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, out = Log(tmp_path, made_batches(9, 80)), tmp_path / "out"
    log.show(0, 40)
    with monkeypatch.context() as patch:
        patch.setattr(
            "kgroup.pipeline.tables.delta.created", _without(store.delta.created, "batches", "bytes")
        )
        patch.setattr(
            "kgroup.pipeline.tables.delta.widened", lambda place, name, table, schema: table.version()
        )
        run(log.source, out)
    log.show(40, 80)
    run(log.source, out)
    assert "bytes" in DeltaTable(out / "batches").to_pyarrow_table().column_names
    assert story_in(Store(out)).events == log.events()
    assert answered(Store(out), "select count(*) as n from batches").rows == [{"n": 80}]


def _without(create, table, column):  # type: ignore[no-untyped-def]
    def created(place, name, schema):  # type: ignore[no-untyped-def]
        names = [n for n in schema.names if (name, n) != (table, column)]
        return create(place, name, pa.schema([schema.field(n) for n in names]))

    return created


@pytest.mark.parametrize("table", ["runs", "commits", "folds"])
def test_a_newer_format_of_any_table_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    log, out = Log(tmp_path, made_batches(9, 40)), tmp_path / "out"
    log.show(0, 40)
    with monkeypatch.context() as patch:
        raise_formats(patch, table)
        run(log.source, out)
    number = manifest.FORMATS[table] + 1
    with pytest.raises(ConfigError, match=rf"written by another version, .*\(format {number} of {table}\)"):
        Store(out)
