"""Both kinds of log, for the tests that hold for either."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgroup.log.interface import Log
from kgroup.log.memory import MemoryLog
from kgroup.log.open_files import Closable, OpenFiles
from kgroup.log.partition import PartitionLog


class CrowdedFiles(OpenFiles):
    """As if other logs had closed the file of a log before each of its appends."""

    def use(self, file: Closable) -> None:
        self.forget(file)
        file.close()
        super().use(file)


@pytest.fixture(params=["memory", "folder", "folder of small segments", "folder of files closed meanwhile"])
def new_log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Log]]:
    """Makes empty logs of one kind; they are closed after the test."""
    made: list[Log] = []

    def make() -> Log:
        log: Log
        if request.param == "memory":
            log = MemoryLog()
        else:
            size = 1 << 20 if request.param == "folder" else 300
            files = CrowdedFiles() if "closed" in request.param else None
            log = PartitionLog(tmp_path / f"t-{len(made)}", segment_bytes=size, files=files)
        made.append(log)
        return log

    yield make
    for log in made:
        log.close()


@pytest.fixture
def log(new_log: Callable[[], Log]) -> Log:
    return new_log()
