"""Both kinds of log, for the tests that hold for either."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgroup.log.interface import Log
from kgroup.log.memory import MemoryLog
from kgroup.log.partition import PartitionLog


@pytest.fixture(params=["memory", "folder", "folder of small segments"])
def new_log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Log]]:
    """Makes empty logs of one kind; they are closed after the test."""
    made: list[Log] = []

    def make() -> Log:
        log: Log
        if request.param == "memory":
            log = MemoryLog()
        else:
            size = 1 << 20 if request.param == "folder" else 300
            log = PartitionLog(tmp_path / f"t-{len(made)}", segment_bytes=size)
        made.append(log)
        return log

    yield make
    for log in made:
        log.close()


@pytest.fixture
def log(new_log: Callable[[], Log]) -> Log:
    return new_log()
