"""The coordinator of the ZooKeeper era as a machine: events in, effects out, timers by `wake`.

`machine` takes events; `election` decides which broker is active, `term` is the time for which one is.
Groups are in `registries`; `rebalancers` queue them, and each attempt `moves` partitions by Stop and Start,
which wait for answers in `requests`. `writes` puts into the tree what was decided, `recovery` reads it after
a takeover.
`answers` takes what consumers say, `describe` answers operators. The tree's paths are in `paths`.

Its hosts: `zookeeper.hosts` on sockets, `zookeeper.world` in virtual time. No partition has two owners.
"""
