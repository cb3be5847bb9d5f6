"""A simulated cluster of the ZooKeeper era: brokers, a tree, consumers, a network that fails.

`chaos.run` plays one run that `chance` decides, `seeds` by number; `invariants` judges what was told and
written, `rest` whether all comes to rest. `faults` plants a bug, to show that it is found. `python -m
kgroup.zookeeper.world` runs seeds in several processes.
"""
