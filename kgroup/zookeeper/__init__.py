"""Everything about ZooKeeper: the groups that Kafka 0.8 to 1.1 keeps there, and the coordinator of its era.

That coordinator is the one of a draft for 0.9: elected, pushing, and never shipped. Nothing else of kgroup
imports any of this but `entry`, and that only when it is asked for.

`LegacyCoordinator` and `LegacyConsumer` are machines free of I/O, clock and chance: events in, effects out,
timers by `wake`. Marks such as `era 7.10` name the rules in docs/zookeeper-era.md. They share nothing with
`kgroup.coordinator`, whose protocols came after.
"""
