"""Run many seeds: `python -m tests.simulation.era --first 1 --seeds 2000 [--fault NAME]`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tests.simulation.era.chaos import run
from tests.simulation.era.faults import FAULTS


@dataclass(frozen=True, slots=True)
class Summary:
    """What is kept of a run when there are many."""

    seed: int
    steps: int
    simulated_ms: int
    rest_ms: int
    violation: str | None
    troubles: tuple[str, ...]


def summary_of(seed: int, fault: str | None) -> Summary:
    """Run a seed and keep what is needed to tell of it."""
    result = run(seed, FAULTS[fault] if fault else None)
    violation = None if result.violation is None else str(result.violation)
    return Summary(seed, result.steps, result.simulated_ms, result.rest_ms, violation, tuple(result.log))


def summaries(seeds: Sequence[int], jobs: int, fault: str | None) -> Iterator[Summary]:
    """The runs of all seeds, in order; in `jobs` processes."""
    if jobs <= 1:
        yield from map(partial(summary_of, fault=fault), seeds)
        return
    from multiprocessing import Pool

    with Pool(jobs) as pool:
        yield from pool.imap(partial(summary_of, fault=fault), seeds, chunksize=4)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the seeds asked for; 1 if an invariant was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.era", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many (default 300)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="break a rule, and see who notices")
    parser.add_argument("--tell", action="store_true", help="tell what went wrong in a violating run")
    options = parser.parse_args(arguments)
    steps = simulated_ms = failed = slowest_ms = 0
    for done in summaries(range(options.first, options.first + options.seeds), options.jobs, options.fault):
        steps += done.steps
        simulated_ms += done.simulated_ms
        slowest_ms = max(slowest_ms, done.rest_ms)
        if done.violation is not None:
            failed += 1
            _say(f"seed {done.seed}, step {done.steps}, {done.simulated_ms} ms: {done.violation}")
            for line in done.troubles if options.tell else ():
                _say(f"  {line}")
    _say(
        f"{options.seeds} seeds, {failed} with a violation; {steps} events, "
        f"{simulated_ms / 3_600_000:.1f} simulated hours, at rest within {slowest_ms / 1000:.1f} s"
    )
    return 1 if failed else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
