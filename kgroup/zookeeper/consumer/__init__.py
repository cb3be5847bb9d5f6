"""A consumer of the ZooKeeper era that leaves its group to the coordinator (chapter 9 of its design).

`machine.LegacyConsumer` takes events and answers with effects, free of I/O. Its host on a socket is
`kgroup.zookeeper.entry.member`. It stops before the coordinator may assign its partitions to others.
"""
