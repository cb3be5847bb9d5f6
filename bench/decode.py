"""How fast is the history? Whole processes against kafka-dump-log on the same segments, in turns.

    python -m bench.decode DIR GROUP [ROUNDS]     DIR: folders `__consumer_offsets-N` with segments

Prints the median of wall and CPU seconds, the peak memory, and the ratio to kafka-dump-log. What is compiled
runs as plain Python too, from a copy of the package.
"""

import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.history import ROOT, Ratio, keep
from tests.interop.jvm import TOOLS, java

KGROUP = [sys.executable, "-m", "kgroup.cli.app"]
PLAIN = ", plain Python"


def commands(folder: Path, group: str) -> dict[str, list[str]]:
    """What is compared; kafka-dump-log is given the heap that its own script gives it."""
    files = ",".join(str(path) for path in sorted(folder.rglob("*.log")))
    dump = ("--offsets-decoder", "--print-data-log", "--files", files)
    compiled = {
        "replay-log, one group": [*KGROUP, "replay-log", group, "--files", str(folder)],
        "replay-log, all groups": [*KGROUP, "replay-log", "--files", str(folder)],
        "offsets-topic stats": [*KGROUP, "offsets-topic", "stats", "--files", str(folder)],
    }
    return {
        "kafka-dump-log": java(TOOLS["kafka-dump-log"], *dump, jvm=("-Xmx256M",)),
        **compiled,
        **{f"{name}{PLAIN}": command for name, command in compiled.items()},
    }


def plain_copy(folder: Path) -> None:
    """Put the package there without what was compiled of it."""
    shutil.copytree(ROOT / "kgroup", folder / "kgroup", ignore=shutil.ignore_patterns("*.so"))


def run(command: list[str], cwd: Path) -> tuple[float, float]:
    """Wall and CPU seconds of one run; `-m` takes kgroup from `cwd`."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, cwd=cwd)
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: list[str]) -> None:
    """Print a line for each command, with its ratio to kafka-dump-log."""
    folder, group = Path(arguments[0]).resolve(), arguments[1]
    rounds = int(arguments[2]) if len(arguments) > 2 else 3
    size = sum(path.stat().st_size for path in folder.rglob("*.log"))
    taken: dict[str, list[tuple[float, float]]] = {}
    with TemporaryDirectory() as copy:
        plain_copy(Path(copy))
        for _ in range(rounds):
            for name, command in commands(folder, group).items():
                cwd = Path(copy) if name.endswith(PLAIN) else ROOT
                taken.setdefault(name, []).append(run(command, cwd))
    base = [wall for wall, _ in taken["kafka-dump-log"]]
    print(f"{size / 1e6:.0f} MB, median of {rounds}")
    for name, times in taken.items():
        wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
        ratio = Ratio.of([each for each, _ in times], base)
        said = keep(f"decode {size >> 20} {name}", ratio.middle) if name != "kafka-dump-log" else ""
        print(
            f"{name:<36} {wall:7.2f} s wall {cpu:7.2f} s CPU   {1 / ratio.middle:5.1f} x   {ratio!s:24}{said}"
        )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"largest process: {peak / 1024:.0f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
