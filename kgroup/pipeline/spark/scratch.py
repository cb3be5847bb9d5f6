"""Temporary folders that are gone after their process: the next one removes what a killed one has left."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kgroup.portable import lock

_PREFIX = "kgroup-pipeline-"
_OWNER = "owner"
"""A file in each folder, locked by its process: the system unlocks it whatever ends that."""
_YOUNG_S = 60
"""A folder younger than this may be about to be locked."""
_LOG_S = 86_400
LOG = "spark.log"
"""Kept for a day where a job has failed: the error names it."""


@contextmanager
def scratch(keeps_log: Callable[[Exception], bool] = lambda error: False) -> Iterator[Path]:
    """Yield a new folder; at the end it is removed, but for the `LOG` after an error that `keeps_log`."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    kept = False
    try:
        with (folder / _OWNER).open("wb") as owner:
            lock(owner.fileno())
            yield folder
    except Exception as error:
        kept = keeps_log(error) and (folder / LOG).exists()
        raise
    finally:
        _remove(folder, kept)


def sweep() -> None:
    """Remove the folders of processes that have ended; of those that failed the log stays for a day."""
    now = time.time()
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError):
            about = folder.stat()
            others = sys.platform != "win32" and about.st_uid != os.getuid()
            if others or now - about.st_mtime < _YOUNG_S or _in_use(folder):
                continue
            only_log = [path.name for path in folder.iterdir()] == [LOG]
            if not only_log or now - about.st_mtime > _LOG_S:
                _remove(folder, keep_log=False)


def _in_use(folder: Path) -> bool:
    try:
        with (folder / _OWNER).open("r+b") as owner:
            lock(owner.fileno())
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _remove(folder: Path, keep_log: bool) -> None:
    if not keep_log:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != LOG:
            path.unlink(missing_ok=True)
