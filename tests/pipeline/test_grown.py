"""Tables that grew in many runs are those of one run: the same rows, with the same numbers."""

from pathlib import Path

import pytest

pytest.importorskip("deltalake")

from kgroup.pipeline.tables.store import Store
from kgroup.protocol.batches import LogRecord, encode_batch
from tests.pipeline import local_run
from tests.pipeline.made_logs import START_MS, World, write_names
from tests.pipeline.stored_rows import check_same_but_runs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1800)]
RUNS = 8


@pytest.mark.parametrize("group", ["classic-g-0", "consumer-g-0", "streams-g-0"])
def test_grown_in_many_runs_or_read_at_once_the_rows_are_the_same(tmp_path: Path, group: str) -> None:
    """`seq` orders the events of a group at one offset: so the order of members must not depend on runs.

    The members change their subscriptions all at once, so that events report several of them.
    """
    world, batches, base = World(4), [], 0
    for step in range(4 * RUNS):
        ts = START_MS + step * 60_000
        pairs = [*world.change(group, ts), *world.commits(group, ts)]
        batches.append(
            encode_batch([LogRecord(key, value, timestamp_ms=ts) for key, value in pairs], base_offset=base)
        )
        base += len(pairs)
    log = tmp_path / "in" / "__consumer_offsets-6" / f"{0:020d}.log"
    log.parent.mkdir(parents=True)
    write_names(tmp_path / "in")
    for run in range(RUNS):
        log.write_bytes(b"".join(batches[: 4 * run + 4]))
        local_run.run([tmp_path / "in"], Store(tmp_path / "grown"), 1 << 20, 1)
    local_run.run([tmp_path / "in"], Store(tmp_path / "fresh"), 1 << 20, 1)
    check_same_but_runs(Store(tmp_path / "grown"), Store(tmp_path / "fresh"))
