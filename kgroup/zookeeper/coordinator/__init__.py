"""The coordinator of the ZooKeeper era as a machine: events in, effects out, timers by `wake`.

`machine` takes events; `election` decides which broker is active, `reign` is the time for which one is.
Groups are `registries` and `rebalancers`: a rebalance is a `run` of `moves`, each a Stop and a Start that
wait in `purgatory`. `writes` and `committer` put into the tree what was decided, `recovery` reads it after
a takeover, `answers` and `telling` are what consumers and operators hear. The tree's paths are in `paths`.

Its hosts: `broker.legacy.host` on sockets, `legacy.world` in virtual time. Promised: no partition has two
owners.
"""
