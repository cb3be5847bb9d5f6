"""The coordinator of the ZooKeeper era as a draft for 0.9 has it: elected, pushing, and never shipped.

`LegacyCoordinator` and `LegacyConsumer` are machines free of I/O, clock and chance: events in, effects out,
timers by `wake`. Marks such as `era 7.10` name the rules in docs/zookeeper-era.md. They share nothing with
`kgroup.coordinator`, whose protocols came after.
"""
