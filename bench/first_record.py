"""Does a test that waits for its consumer fail on a slow machine? The race of dd-trace-py#17794, repaired.

    python -m bench first_record [runs=1000] [core=0.3]

Each run has a cluster of its own and plays the repaired form of tests/unit/testing/test_first_record.py. The
process that plays is bound to a core and gets that share of it: another stops it by SIGSTOP for the rest of
each tenth of a second, with all of its threads, those of the broker and of the client.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from multiprocessing import Process, Value
from multiprocessing.sharedctypes import Synchronized

from kgroup.testing import Cluster
from tests.unit.testing.test_first_record import repaired, subscribed

PERIOD_S = 0.1


def play(runs: int, done: Synchronized[int], failed: Synchronized[int]) -> None:
    for number in range(runs):
        try:
            with Cluster({"orders": 1}) as kafka, subscribed(kafka) as consumer:
                record = repaired(kafka, consumer)
                assert record is not None and record.value() == b"test"
        except Exception as error:
            failed.value += 1
            print(f"run {number}: {error!r}", flush=True)
        done.value = number + 1
        if done.value % 500 == 0:
            print(f"{done.value} runs, {failed.value} failed", file=sys.stderr, flush=True)


def limited(player: Process, core: float) -> None:
    """Let a process run for `core` of each period, until it ends."""
    assert player.pid is not None
    while player.is_alive():
        time.sleep(PERIOD_S * core)
        os.kill(player.pid, signal.SIGSTOP)
        time.sleep(PERIOD_S * (1 - core))
        os.kill(player.pid, signal.SIGCONT)


def main(arguments: list[str]) -> None:
    runs = int(arguments[0]) if arguments else 1_000
    core = float(arguments[1]) if len(arguments) > 1 else 0.3
    done, failed = Value("i", 0), Value("i", 0)
    player = Process(target=play, args=(runs, done, failed))
    began = time.monotonic()
    player.start()
    assert player.pid is not None
    os.sched_setaffinity(player.pid, {min(os.sched_getaffinity(0))})
    limited(player, core)
    took_s = time.monotonic() - began
    print(
        f"{done.value} runs at {core:g} of a core, {failed.value} failed, {took_s / max(runs, 1):.2f} s a run"
    )
    sys.exit(done.value != runs or failed.value > 0)
