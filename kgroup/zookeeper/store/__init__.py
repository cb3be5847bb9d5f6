"""ZooKeeper as kgroup meets it: what is asked and answered, a tree in memory, and the real one through kazoo.

Nothing here knows Kafka's groups. `operations` are values, free of I/O, and all that a machine may import;
`tree` is an ensemble of one in memory; `session` speaks to a real ensemble and needs the extra `zookeeper`.
"""
