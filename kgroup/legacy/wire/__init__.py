"""Bytes and messages of the coordinator of the ZooKeeper era: `messages` the values, `codec` their bytes."""
