"""Random runs of the simulated cluster of the ZooKeeper era, and what must hold in them.

`chaos` plays a seed, `invariants` and `rest` judge it, `faults` plants a bug to show that it is found.
`python -m tests.simulation.era` runs seeds in several processes.
"""
