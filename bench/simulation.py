"""What does the simulator cost, and does it grow with events or with the square of members?

`python bench/simulation.py [MEMBERS…]`: ten members of N restart, one at a time, and a quiet minute before.
CPU time, so that other work on the machine does not count.
"""

from __future__ import annotations

import sys
import time

from kgroup.simulation.planning import Size, play
from kgroup.simulation.scenario import Scenario, Step

KINDS = (("classic", False), ("classic", True), ("consumer", False), ("consumer", True))


def main(sizes: list[int]) -> None:
    print(f"{'members':>8} {'group':<18} {'events':>10} {'CPU s':>8} {'us/event':>9} {'rebalances':>10}")
    for members in sizes:
        steps = (Step("wait", wait_ms=60_000), Step("restart", share=10 / members))
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


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [100, 1_000, 10_000])
