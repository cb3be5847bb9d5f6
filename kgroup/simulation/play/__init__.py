"""What is played on a simulated world: random runs with faults, and scenarios on groups of each kind.

`chaos` is one seed's run, told as a log by `trace`; `planning` plays a `scenario` and says what it costs.
"""
