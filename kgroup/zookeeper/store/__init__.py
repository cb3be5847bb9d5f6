"""ZooKeeper for kgroup: operations and answers, a tree in memory, and real ensembles through kazoo.

Nothing here knows Kafka's groups. `operations` are values, free of I/O, and all that a machine may import.
`tree` is an ensemble of one in memory. `session` talks to a real ensemble and needs the extra `zookeeper`.
"""
