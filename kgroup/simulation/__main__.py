"""Run many seeds: `python -m kgroup.simulation --seeds 10000 --jobs 2`."""

import argparse
import gc
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pool

from kgroup.domain import count_of
from kgroup.simulation.play.chaos import run


@dataclass(frozen=True, slots=True)
class Summary:
    """What is kept of one run among many."""

    seed: int
    steps: int
    simulated_ms: int
    violation: str | None


def summary_of(seed: int) -> Summary:
    """Run a seed and return what a report needs."""
    result = run(seed)
    violation = None if result.violation is None else str(result.violation)
    return Summary(seed, result.steps, result.simulated_ms, violation)


def summaries(seeds: Sequence[int], jobs: int) -> Iterator[Summary]:
    """Yield the runs of all seeds, in order; in `jobs` processes."""
    if jobs <= 1:
        yield from map(summary_of, seeds)
        return

    with Pool(jobs) as pool:
        yield from pool.imap(summary_of, seeds, chunksize=8)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the given seeds; return 1 if an invariant was violated."""
    parser = argparse.ArgumentParser(prog="python -m kgroup.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=300, help="how many (default 300)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    options = parser.parse_args(arguments)
    steps = simulated_ms = failed = 0
    for done in summaries(range(options.first, options.first + options.seeds), options.jobs):
        steps += done.steps
        simulated_ms += done.simulated_ms
        if done.violation is not None:
            failed += 1
            _say(f"seed {done.seed}, step {done.steps}: {done.violation}")
            _say(f"  replay: kgroup simulate --seed {done.seed}")
    _say(
        f"{options.seeds} seeds, {failed} with a violation; {count_of(steps, 'event')}, "
        f"{simulated_ms / 3_600_000:.1f} simulated hours"
    )
    return 1 if failed else 0


def collect_seldom() -> None:
    """Collect cycles seldom: nearly all garbage has none, and the search is a tenth of the time."""
    gc.set_threshold(50_000, 20, 100)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    collect_seldom()
    sys.exit(main())
