"""The coordinator of the ZooKeeper era as a state machine: events in, effects out, timers by `wake`.

`machine` takes events and answers operators; `election` decides which broker is active, `term` is the time
for which one is, with all that consumers, topics and takeovers ask of it. What it knows and writes is in
`registries`; `rebalancers` queue groups and move partitions by Stop and Start. `directory` knows the tree's
brokers and topics, `paths` where things lie in it.

Its hosts: `zookeeper.hosts` on sockets, `zookeeper.world` in virtual time. No partition has two owners.
"""
