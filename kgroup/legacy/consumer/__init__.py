"""A consumer of the ZooKeeper era that leaves its group to the coordinator: `machine`, free of I/O (9)."""
