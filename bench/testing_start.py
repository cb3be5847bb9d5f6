"""What does a test pay for its cluster? The import in a new process, and a start in one that has imported it.

python -m bench testing_start [processes=15] [clusters=50]
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

from kgroup.testing import Cluster

CLOCKS = "time.perf_counter(), time.process_time()"
IMPORT = f"import time; was = {CLOCKS}; import kgroup.testing; now = {CLOCKS}; print(*was, *now)"


def imported() -> tuple[float, float]:
    """Wall and processor seconds."""
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    wall, processor, wall_then, processor_then = map(float, done.stdout.split())
    return wall_then - wall, processor_then - processor


def ready() -> tuple[float, float]:
    """The same, of all threads of this process."""
    wall, processor = time.perf_counter(), time.process_time()
    with Cluster({"orders": 6}):
        return time.perf_counter() - wall, time.process_time() - processor


def main(arguments: list[str]) -> None:
    given = [int(each) for each in arguments]
    processes, clusters = [*given, *(15, 50)[len(given) :]]
    imported(), ready()  # what the disk and the interpreter keep
    imports = [imported() for _ in range(processes)]
    starts = [ready() for _ in range(clusters)]
    for what, took in (("import kgroup.testing", imports), ("a cluster, with one topic", starts)):
        wall, processor = ([1000 * each[column] for each in took] for column in (0, 1))
        print(
            f"{what:26} processor {median(processor):5.1f} ms; "
            f"wall {median(wall):5.1f} ms, least {min(wall):5.1f}, most {max(wall):5.1f}"
        )
