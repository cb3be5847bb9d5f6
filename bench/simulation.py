"""What does the simulator cost, and does it grow with events or with the square of members?

`python bench/simulation.py [MEMBERS…]`: ten members of N restart, one at a time, and a quiet minute before.
CPU time, so that other work on the machine counts as little as it can. Then random runs, as
`python -m kgroup.simulation` makes them: CPU time for an hour of the simulated world.
"""

from __future__ import annotations

import sys
import time

from kgroup.simulation.__main__ import collect_seldom, summary_of
from kgroup.simulation.play.planning import Size, play
from kgroup.simulation.play.scenario import Scenario, ScenarioStep

SEEDS = range(100, 180)
KINDS = (("classic", False), ("classic", True), ("consumer", False), ("consumer", True))


def main(sizes: list[int]) -> None:
    print(f"{'members':>8} {'group':<18} {'events':>10} {'CPU s':>8} {'us/event':>9} {'rebalances':>10}")
    for members in sizes:
        steps = (ScenarioStep("wait", wait_ms=60_000), ScenarioStep("restart", share=10 / members))
        scenario = Scenario("ten restarts", steps)
        for protocol, static in KINDS:
            began = time.process_time()
            result = play(scenario, Size(members=members, partitions=members), protocol, static=static)
            spent = time.process_time() - began
            kind = f"{protocol} {'static' if static else 'dynamic'}"
            print(
                f"{members:>8} {kind:<18} {result.events:>10} {spent:>8.2f} "
                f"{1e6 * spent / result.events:>9.1f} {result.rebalances:>10}",
                flush=True,
            )
    random_runs()


def random_runs() -> None:
    """What an hour of random runs costs one core."""
    collect_seldom()
    began, simulated_ms, events = time.process_time(), 0, 0
    for seed in SEEDS:
        done = summary_of(seed)
        simulated_ms += done.simulated_ms
        events += done.steps
    spent, hours = time.process_time() - began, simulated_ms / 3_600_000
    print(f"{len(SEEDS)} seeds: {events} events, {hours:.1f} simulated hours, {spent / hours:.2f} CPU s each")


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [100, 1_000, 10_000])
