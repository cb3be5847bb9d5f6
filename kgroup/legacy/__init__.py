"""The coordinator of the ZooKeeper era as its design document has it: elected, pushing, and never shipped.

`LegacyCoordinator` and `LegacyConsumer` are machines free of I/O, clock and chance: events in, effects out,
timers by `wake`. They share nothing with `kgroup.coordinator`, whose protocols came after.
"""
