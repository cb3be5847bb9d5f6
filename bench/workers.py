"""The memory of Spark's Python workers at its most, read from /proc while they work."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def watched() -> Iterator[list[float]]:
    """One number: MB of the largest worker below this process until the block's end."""
    most, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            most[0] = max([most[0], *(peak(pid) for pid in workers_of(os.getpid()))])

    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    try:
        yield most
    finally:
        ended.set()
        watching.join()


def workers_of(pid: int) -> list[int]:
    """Python processes below this one."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    found, level = [], {pid}
    while level := {child for child, parent in parents.items() if parent in level}:
        found += [child for child in level if "pyspark" in command(child)]
    return found


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().partition("\0-cp")[0]
    except OSError:
        return ""


def peak(pid: int) -> float:
    """Its memory at its most, in MB; 0 of one that has gone, or that is a JVM."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    if "Name:\tpython" not in status or "VmHWM" not in status:
        return 0.0
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
