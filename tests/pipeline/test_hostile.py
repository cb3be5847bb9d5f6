"""Tables from somebody else: what is not what a run leaves is said, and nothing in it runs."""

import pickle
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kgroup.errors import KgroupError, StorageError
from kgroup.pipeline.tables.store import Store
from tests.pipeline import local_run
from tests.pipeline.made_logs import write_log
from tests.ran import Ran

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
SAID = "column state of table folds is not what a run leaves there"


class Bomb:
    """A pickle of it runs a command."""

    def __init__(self, proof: Path) -> None:
        self.proof = proof

    def __reduce__(self) -> tuple[object, ...]:
        return (subprocess.check_call, (["touch", str(self.proof)],))


def states(proof: Path) -> dict[str, object]:
    return {
        "pickle": pickle.dumps(Bomb(proof)),
        "random": random.Random(7).randbytes(350),
        "types": b'[true,"7",null,{},[]]',
        "numbers": b"[7,%s,0,0,null]" % (b"9" * 30),
        "nested": b"[" * 10_000_000,
        "text": "a column of another type",
        "null": None,
    }


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Tables of half a log, and the folder where the whole of it is now."""
    root = tmp_path_factory.mktemp("hostile")
    write_log(root / "log" / "__consumer_offsets-7", seed=3, batches=60, segments=1)
    (segment,) = (root / "log").rglob("*.log")
    whole = segment.read_bytes()
    segment.write_bytes(whole[: len(whole) // 2])
    local_run.run([root / "log"], Store(root / "tables"), 1 << 20, 1)
    segment.write_bytes(whole)
    return root / "tables", root / "log"


def spoilt(tables: Path, table: str, column: str, value: object, to: Path) -> Path:
    """A copy of the tables in which one column of a table says something else."""
    shutil.copytree(tables, to)
    for path in (to / table).rglob("*.parquet"):
        rows = pq.ParquetFile(path).read()
        kind = pa.string() if isinstance(value, str) else rows.schema.field(column).type
        hostile = pa.array([value] * rows.num_rows, kind)
        pq.write_table(rows.set_column(rows.column_names.index(column), column, hostile), path)
    return to


@pytest.mark.parametrize("name", states(Path()))
def test_a_hostile_state_is_said_and_nothing_of_it_runs(
    tables: tuple[Path, Path], tmp_path: Path, name: str
) -> None:
    out, log = tables
    hostile = spoilt(out, "folds", "state", states(tmp_path / "proof")[name], tmp_path / "tables")
    before = Store(hostile).manifest.runs
    with pytest.raises(StorageError, match=SAID) as said:
        local_run.run([log], Store(hostile), 1 << 20, 1)
    assert len(said.value.message) < 400 and said.value.hint == "read the segments into a new folder"
    assert Store(hostile).manifest.runs == before and not (tmp_path / "proof").exists()


@pytest.mark.parametrize("swapped", ["group", "partition"])
def test_states_of_others_are_said(tables: tuple[Path, Path], tmp_path: Path, swapped: str) -> None:
    """Each is sound by itself: that of another group, or of another partition."""
    hostile = tmp_path / "tables"
    shutil.copytree(tables[0], hostile)
    (path,) = (hostile / "folds").rglob("*.parquet")
    rows = pq.ParquetFile(path).read()
    found = rows.column("state").to_pylist()
    if swapped == "group":
        found[1], found[2] = found[2], found[1]
    else:
        found[:] = [state.replace(b"[7,", b"[8,", 1) for state in found]
    at = rows.column_names.index("state")
    pq.write_table(rows.set_column(at, "state", pa.array(found, pa.binary())), path)
    with pytest.raises(StorageError, match=SAID):
        local_run.run([tables[1]], Store(hostile), 1 << 20, 1)


@pytest.mark.parametrize(
    ("column", "value"),
    [("format", "4"), ("names", "all"), ("versions", None), ("spans", None), ("run", None), ("token", 5)],
)
def test_a_hostile_record_of_runs_is_said(
    tables: tuple[Path, Path], tmp_path: Path, column: str, value: object
) -> None:
    if value == 5:
        hostile = tmp_path / "tables"
        shutil.copytree(tables[0], hostile)
        (path,) = (hostile / "runs").rglob("*.parquet")
        path.write_bytes(random.Random(5).randbytes(500))
    else:
        hostile = spoilt(tables[0], "runs", column, value, tmp_path / "tables")
    with pytest.raises(KgroupError) as said:
        Store(hostile)
    assert str(hostile) in said.value.message


def test_the_commands_say_it_and_end_with_their_exit_codes(
    tables: tuple[Path, Path], tmp_path: Path, kgroup: Callable[..., Ran]
) -> None:
    out, log = tables
    hostile = spoilt(out, "folds", "state", states(tmp_path / "proof")["pickle"], tmp_path / "tables")
    done = kgroup("pipeline", "run", str(log), "--out", str(hostile), "--master", "local[1]")
    assert (done.code, SAID in done.err) == (1, True), done.err
    # A question does not look at what is kept for the next run.
    asked, expected = (kgroup("pipeline", "query", "top_writers", str(each)) for each in (hostile, out))
    assert (asked.code, asked.out) == (0, expected.out), asked.err
    assert expected.out
    spoilt(out, "runs", "versions", None, other := tmp_path / "other")
    asked = kgroup("pipeline", "query", "top_writers", str(other))
    assert (asked.code, asked.err.count("\n") < 4) == (1, True), asked.err
    assert "Traceback" not in done.err + asked.err and not (tmp_path / "proof").exists()
