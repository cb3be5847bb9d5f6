"""What is played on a simulated world: random runs with faults, and scenarios on groups of each kind.

`chaos` is one seed's run, which `trace` shows as a log; `planning` plays a `scenario` and reports its cost.
"""
